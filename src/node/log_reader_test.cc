#include "node/log_reader.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "base/text.h"
#include "gtest/gtest.h"
#include "shim/cri_lines.h"
#include "tests/support/temp_folder.h"

namespace trainyard::node {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
// 2024-05-01T10:00:00Z
constexpr std::uint64_t kStart = std::uint64_t{1714557600} * kSecond;

class LogReaderTest : public testing::Test {
 protected:
  std::string Path() const { return folder_.path() + "/0.log"; }
  void Write(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::app) << text; }
  // An entry a second, of "line N".
  std::string Lines(int from, int to) const {
    std::string text;
    for (int line = from; line < to; ++line) {
      StrAppend(text, shim::LogTime(kStart + static_cast<std::uint64_t>(line) * kSecond), " stdout F line ",
                line, "\n");
    }
    return text;
  }
  static std::string Plain(int from, int to) {
    std::string text;
    for (int line = from; line < to; ++line) StrAppend(text, "line ", line, "\n");
    return text;
  }
  std::string ReadAll(const LogView& view, LogReader::Progress* last = nullptr) const {
    LogReader reader(Path(), view);
    const absl::Status opened = reader.Open();
    EXPECT_TRUE(opened.ok()) << opened;
    std::string out;
    LogReader::Progress progress = LogReader::Progress::kMore;
    while (progress == LogReader::Progress::kMore) progress = reader.Read(1000, out);
    if (last != nullptr) *last = progress;
    return out;
  }

  // As the shim does with a file that is full; four are kept.
  void Cut() {
    for (int part = 3; part > 0; --part) {
      const std::string newer = part == 1 ? Path() : StrCat(Path(), ".", part - 1);
      std::error_code ignored;
      std::filesystem::rename(newer, StrCat(Path(), ".", part), ignored);
    }
    Write(Path(), "");
  }

  testing_support::TempFolder folder_;
};

TEST_F(LogReaderTest, SaysThatThereIsNoLog) {
  LogReader reader(Path(), {});
  EXPECT_TRUE(absl::IsNotFound(reader.Open()));
}

TEST_F(LogReaderTest, ReadsAllPartsOldestFirst) {
  Write(Path() + ".2", Lines(0, 3));
  Write(Path() + ".1", Lines(3, 5));
  Write(Path(), Lines(5, 9));
  EXPECT_EQ(ReadAll({}), Plain(0, 9));
}

TEST_F(LogReaderTest, TailCountsAcrossParts) {
  Write(Path() + ".2", Lines(0, 30));
  Write(Path() + ".1", Lines(30, 50));
  Write(Path(), Lines(50, 90));
  for (const int lines : {0, 1, 39, 40, 41, 59, 60, 61, 89, 90, 91, 1000}) {
    EXPECT_EQ(ReadAll({.tail_lines = lines}), Plain(std::max(0, 90 - lines), 90)) << lines;
  }
}

TEST_F(LogReaderTest, TailFindsItsWayThroughManyBlocks) {
  Write(Path(), Lines(0, 20'000));
  EXPECT_EQ(ReadAll({.tail_lines = 15'001}), Plain(4'999, 20'000));
}

TEST_F(LogReaderTest, ALongLineIsOneLine) {
  const std::string time = shim::LogTime(kStart);
  Write(Path(), StrCat(time, " stdout F before\n", time, " stdout P one ", "\n", time, " stdout P two ", "\n",
                       time, " stdout F three\n", time, " stderr P no end", "\n"));
  EXPECT_EQ(ReadAll({}), "before\none two three\nno end");
  EXPECT_EQ(ReadAll({.tail_lines = 1}), "no end");
  EXPECT_EQ(ReadAll({.tail_lines = 2}), "one two three\nno end");
  EXPECT_EQ(ReadAll({.timestamps = true, .tail_lines = 2}),
            StrCat(time, " one two three\n", time, " no end"));
}

TEST_F(LogReaderTest, SinceLeavesOutWhatIsOlder) {
  Write(Path(), Lines(0, 10));
  EXPECT_EQ(ReadAll({.since = absl::FromUnixNanos(kStart + 7 * kSecond)}), Plain(7, 10));
  EXPECT_EQ(ReadAll({.since = absl::FromUnixNanos(kStart + 7 * kSecond + 1)}), Plain(8, 10));
  EXPECT_EQ(ReadAll({.tail_lines = 5, .since = absl::FromUnixNanos(kStart)}), Plain(5, 10));
}

TEST_F(LogReaderTest, StopsAtTheLimit) {
  Write(Path(), Lines(0, 10));
  LogReader::Progress last{};
  EXPECT_EQ(ReadAll({.limit_bytes = 10}, &last), "line 0\nlin");
  EXPECT_EQ(last, LogReader::Progress::kFull);
  EXPECT_EQ(ReadAll({.limit_bytes = 0}, &last), "");
  EXPECT_EQ(ReadAll({.limit_bytes = 1000}, &last), Plain(0, 10));
  EXPECT_EQ(last, LogReader::Progress::kCaught);
}

TEST_F(LogReaderTest, LeavesOutWhatIsNoEntry) {
  Write(Path(), "garbage\n" + Lines(0, 1) + "\n\x01\xff more\n" + Lines(1, 2));
  EXPECT_EQ(ReadAll({}), Plain(0, 2));
}

TEST_F(LogReaderTest, GoesOnWithWhatIsWrittenLater) {
  const std::string lines = Lines(0, 3);
  Write(Path(), lines.substr(0, lines.size() - 4));  // a torn entry
  LogReader reader(Path(), {});
  ASSERT_TRUE(reader.Open().ok());
  std::string out;
  EXPECT_EQ(reader.Read(1 << 20, out), LogReader::Progress::kCaught);
  EXPECT_EQ(out, Plain(0, 2));
  Write(Path(), lines.substr(lines.size() - 4));
  EXPECT_EQ(reader.Read(1 << 20, out), LogReader::Progress::kCaught);
  EXPECT_EQ(out, Plain(0, 3));
}

// The log is cut while it is followed: whatever is still on disk when the reader comes to it is read once and
// in order.
TEST_F(LogReaderTest, FollowsALogThatIsCut) {
  std::mt19937 random(7);
  Write(Path(), "");
  LogReader reader(Path(), {});
  ASSERT_TRUE(reader.Open().ok());
  std::string out;
  int line = 0;
  for (int turn = 0; turn < 300; ++turn) {
    for (unsigned part = 0, parts = random() % 3; part < parts; ++part) {
      const int next = line + static_cast<int>(random() % 20);
      Write(Path(), Lines(line, next));
      line = next;
      if (random() % 2 == 0) Cut();
    }
    EXPECT_EQ(reader.Read(1 << 20, out), LogReader::Progress::kCaught);
  }
  EXPECT_EQ(out, Plain(0, line));
}

// A reader that falls behind misses what has been forgotten, and goes on with the oldest that there is.
TEST_F(LogReaderTest, GoesOnWithTheOldestPartThatIsLeft) {
  Write(Path(), Lines(0, 2));
  LogReader reader(Path(), {});
  ASSERT_TRUE(reader.Open().ok());
  std::string out;
  EXPECT_EQ(reader.Read(1 << 20, out), LogReader::Progress::kCaught);
  for (int line = 2; line < 12; line += 2) {
    Cut();
    Write(Path(), Lines(line, line + 2));
  }
  EXPECT_EQ(reader.Read(1 << 20, out), LogReader::Progress::kCaught);
  EXPECT_EQ(out, Plain(0, 2) + Plain(4, 12));
}

}  // namespace
}  // namespace trainyard::node
