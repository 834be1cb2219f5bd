#include "data/gzip.h"

#include <string>
#include <vector>

#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::data {
namespace {

using ::testing::HasSubstr;

std::string Pack(std::string_view text) {
  std::string packed;
  GzipWriter writer(packed);
  writer.Add(text);
  writer.Finish();
  return packed;
}

// Everything, in steps of so many bytes.
absl::StatusOr<std::string> Unpack(std::string_view packed, std::size_t step) {
  GzipReader reader(packed);
  std::string text;
  std::vector<char> block(step);
  while (true) {
    TY_ASSIGN_OR_RETURN(const std::size_t n, reader.Read(block.data(), step));
    text.append(block.data(), n);
    if (n < step) return text;
  }
}

std::string Text() {
  std::string text;
  for (int i = 0; i < 20000; ++i) text += static_cast<char>('a' + i * i % 23);
  return text;
}

TEST(Gzip, ReadsBackInStepsOfAnySize) {
  const std::string text = Text();
  for (const std::size_t step : {1, 7, 4096, 19999, 20000, 20001, 1 << 20}) {
    EXPECT_EQ(Unpack(Pack(text), step).value(), text) << step;
  }
  EXPECT_EQ(Unpack(Pack(""), 10).value(), "");
}

TEST(Gzip, ReadsMembersThatFollowEachOther) {
  EXPECT_EQ(Unpack(Pack("one ") + Pack("") + Pack("two"), 3).value(), "one two");
}

TEST(Gzip, TakesNothingBehindTheLastMember) {
  EXPECT_THAT(Message(Unpack(Pack("text") + "x", 100).status()), HasSubstr("not gzip"));
  EXPECT_THAT(Message(Unpack(Pack("text") + "\x1f\x8b", 100).status()), HasSubstr("cut"));
}

TEST(Gzip, NoticesEveryCut) {
  const std::string packed = Pack(Text().substr(0, 500));
  for (std::size_t length = 1; length < packed.size(); ++length) {
    EXPECT_EQ(Unpack(std::string_view(packed).substr(0, length), 600).status().code(),
              absl::StatusCode::kDataLoss)
        << length;
  }
}

TEST(Gzip, NeverReadsSomethingElseFromAFlippedBit) {
  const std::string text = Text().substr(0, 500);
  const std::string packed = Pack(text);
  for (std::size_t i = 0; i < packed.size() * 8; ++i) {
    std::string damaged = packed;
    damaged[i / 8] = static_cast<char>(damaged[i / 8] ^ (1 << (i % 8)));
    const auto read = Unpack(damaged, 600);
    // Of a time, or the name of a system, nothing depends.
    if (read.ok()) {
      EXPECT_EQ(*read, text) << "bit " << i;
    }
  }
}

}  // namespace
}  // namespace trainyard::data
