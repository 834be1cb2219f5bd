#include "shim/cri_lines.h"

#include "gtest/gtest.h"

namespace trainyard::shim {
namespace {

constexpr std::uint64_t kTime = 1'700'000'000'123'456'789;
constexpr std::string_view kShown = "2023-11-14T22:13:20.123456789Z";

std::string Fed(CriLines& lines, std::string_view bytes) {
  std::string out;
  lines.Feed(bytes, kTime, out);
  return out;
}

TEST(CriLines, GivesEachLineItsTimeAndStream) {
  CriLines lines("stdout");
  EXPECT_EQ(Fed(lines, "one\n\ntwo\n"), std::string(kShown) + " stdout F one\n" + std::string(kShown) +
                                            " stdout F \n" + std::string(kShown) + " stdout F two\n");
}

TEST(CriLines, KeepsALineTogetherThatComesInPieces) {
  CriLines lines("stderr");
  EXPECT_EQ(Fed(lines, "o"), "");
  EXPECT_EQ(Fed(lines, "n"), "");
  EXPECT_EQ(Fed(lines, "e\nt"), std::string(kShown) + " stderr F one\n");
}

TEST(CriLines, MarksWhatEndsWithoutANewlineAsPartial) {
  CriLines lines("stdout");
  std::string out = Fed(lines, "no end");
  lines.End(kTime, out);
  EXPECT_EQ(out, std::string(kShown) + " stdout P no end\n");
  out.clear();
  lines.End(kTime, out);
  EXPECT_EQ(out, "") << "and says it once";
}

TEST(CriLines, CutsLongLinesAt16KiBAndLosesNothing) {
  for (const std::size_t piece : {1u, 100u, 16383u, 16384u, 16385u, 70000u}) {
    for (const std::size_t size : {16383u, 16384u, 16385u, 32768u, 50000u}) {
      CriLines lines("stdout");
      std::string text(size, 'x');
      text += '\n';
      std::string out;
      for (std::size_t at = 0; at < text.size(); at += piece)
        lines.Feed(std::string_view(text).substr(at, piece), kTime, out);
      std::size_t total = 0;
      std::size_t begin = 0;
      while (begin < out.size()) {
        const std::size_t end = out.find('\n', begin);
        const std::size_t head = kShown.size() + std::string_view(" stdout F ").size();
        const std::size_t content = end - begin - head;
        EXPECT_LE(content, kMaxLineBytes);
        const bool last = end + 1 == out.size();
        EXPECT_EQ(out[begin + head - 2], last ? 'F' : 'P') << size << " in pieces of " << piece;
        total += content;
        begin = end + 1;
      }
      EXPECT_EQ(total, size) << "in pieces of " << piece;
    }
  }
}

}  // namespace
}  // namespace trainyard::shim
