#include "data/recordio/snappy_frames.h"

#include "base/hex.h"
#include "base/status.h"
#include "data/data_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kMark = "ff060000734e61507059";

std::string Stream(std::string_view frames) { return FromHex(StrCat(kMark, frames)); }

absl::StatusOr<std::string> UnpackAll(const std::string& stream) {
  const std::string room = stream + std::string(kSnappySlop, 'x');
  SnappyFrameReader frames(std::string_view(room).substr(0, stream.size()));
  std::string text;
  for (SnappyFrame frame; frames.Next(frame);) {
    const std::size_t start = text.size();
    text.resize(start + frame.block.unpacked + kSnappySlop);
    TY_RETURN_IF_ERROR(Unpack(frame, text.data() + start));
    text.resize(start + frame.block.unpacked);
  }
  TY_RETURN_IF_ERROR(frames.status());
  return text;
}

std::string_view WhyNot(const std::string& stream) {
  static absl::Status kept;
  kept = UnpackAll(stream).status();
  return Message(kept);
}

TEST(SnappyFrames, StoreWhatPackingWouldNotMakeSmaller) {
  std::string out;
  AppendSnappyMark(out);
  AppendSnappyFrames("Hello", out);
  EXPECT_EQ(HexBytes(out), StrCat(kMark, "010900008aeeb9be48656c6c6f"));
  EXPECT_EQ(UnpackAll(out).value(), "Hello");
}

TEST(SnappyFrames, HaveNoFrameForNoBytes) {
  std::string out;
  AppendSnappyFrames("", out);
  EXPECT_EQ(out, "");
}

TEST(SnappyFrames, CutLongTextsAt64KiB) {
  std::string text(2 * kMaxFrameBytes + 5, 'x');
  std::string out;
  AppendSnappyMark(out);
  AppendSnappyFrames(text, out);
  SnappyFrameReader frames(out);
  std::vector<std::pair<std::uint64_t, bool>> seen;
  for (SnappyFrame frame; frames.Next(frame);) seen.emplace_back(frame.block.unpacked, frame.packed);
  EXPECT_THAT(seen, ElementsAre(std::pair(65536, true), std::pair(65536, true), std::pair(5, false)));
  EXPECT_EQ(UnpackAll(out).value(), text);
  EXPECT_LT(out.size(), 2 * kMaxFrameBytes / 20);
}

TEST(SnappyFrames, SkipPaddingAndFurtherMarksAndWhatIsReserved) {
  const std::string stream = Stream(
      StrCat("010900008aeeb9be48656c6c6f", "fe02000000aa", "80000000", kMark, "010900008aeeb9be48656c6c6f"));
  EXPECT_EQ(UnpackAll(stream).value(), "HelloHello");
}

TEST(SnappyFrames, SayWhatIsWrong) {
  EXPECT_THAT(WhyNot("Hello"), HasSubstr("does not begin with its mark"));
  EXPECT_THAT(WhyNot(Stream("0109")), HasSubstr("the header of a snappy frame is cut"));
  EXPECT_THAT(WhyNot(Stream("010900008aeeb9be48656c6c")), HasSubstr("a snappy frame is cut"));
  EXPECT_THAT(WhyNot(Stream("010300008aeeb9")), HasSubstr("has no checksum"));
  EXPECT_THAT(WhyNot(Stream("010900008aeeb9bf48656c6c6f")),
              HasSubstr("checksum of a snappy frame does not match"));
  EXPECT_THAT(WhyNot(Stream("02000000")), HasSubstr("unknown type 2"));
  EXPECT_THAT(WhyNot(Stream("ff060000734e61507058")), HasSubstr("mark of the snappy data is wrong"));
  EXPECT_THAT(WhyNot(Stream("0009000000000000ffffffffff")), HasSubstr("does not say how long"));
  EXPECT_THAT(WhyNot(Stream("000900000000000005ffffffff")), HasSubstr("cannot be unpacked"));
}

TEST(SnappyFrames, MayNotClaimMoreThanTheyCanHold) {
  // 64 KiB and a byte; and 64 KiB from five bytes.
  EXPECT_THAT(WhyNot(Stream(StrCat("00881300", "00000000", "818004", std::string(2 * 4993, '0')))),
              HasSubstr("says that it has 65537 bytes"));
  EXPECT_THAT(WhyNot(Stream("0009000000000000 808004 0000")), HasSubstr("does not say how long"));
}

}  // namespace
}  // namespace trainyard::data
