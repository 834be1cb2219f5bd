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

constexpr std::size_t kMostUnpacked = 1 << 18;
constexpr std::string_view kMark = "ff060000734e61507059";

std::string Stream(std::string_view frames) { return FromHex(StrCat(kMark, frames)); }

absl::StatusOr<std::string> UnpackAll(const std::string& stream) {
  const std::string room = stream + std::string(kSnappySlop, 'x');
  SnappyFrameReader frames(std::string_view(room).substr(0, stream.size()));
  std::string text(kMostUnpacked + kSnappySlop, '\0');
  std::size_t size = 0;
  ByteBuffer aside;
  SnappyUnpacker unpacker(aside);
  for (SnappyFrame frame; frames.Next(frame); size += frame.block.unpacked) {
    TY_RETURN_IF_ERROR(unpacker.Add(frame, text.data() + size));
  }
  TY_RETURN_IF_ERROR(unpacker.Flush());
  EXPECT_TRUE(unpacker.empty());
  TY_RETURN_IF_ERROR(frames.status());
  text.resize(size);
  return text;
}

// Packed and stored frames, as the letters say.
std::string Mixed(std::string_view kinds, std::string& stream) {
  std::string text;
  AppendSnappyMark(stream);
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    std::string part(kinds[i] == 'p' ? 500 + i : i % 7, static_cast<char>('a' + i % 26));
    if (kinds[i] == 'p') part += StrCat("frame ", i);
    AppendSnappyFrames(part, stream);
    text += part;
  }
  return text;
}

std::string_view WhyNoStream(const std::string& stream) {
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

TEST(SnappyFrames, AreUnpackedInWhateverOrderTheirKindsCome) {
  for (const char* kinds : {"", "p", "s", "pp", "ps", "sp", "ppp", "spsp", "pspsps", "ssssssssss",
                            "pssssssssssp", "sssssssppsssssssspp", "ppppppppppppppppppp"}) {
    std::string stream;
    const std::string text = Mixed(kinds, stream);
    EXPECT_EQ(UnpackAll(stream).value(), text) << kinds;
  }
}

TEST(SnappyFrames, AreVerifiedEachOnItsOwn) {
  std::string good;
  const std::string text = Mixed("spspp", good);
  for (std::size_t at = kMark.size() / 2; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] ^= 1;
    // A copy of the same bytes from elsewhere is no damage.
    EXPECT_EQ(UnpackAll(bad).value_or(text), text) << at;
  }
}

TEST(SnappyFrames, SayWhatIsWrong) {
  EXPECT_THAT(WhyNoStream("Hello"), HasSubstr("does not begin with its mark"));
  EXPECT_THAT(WhyNoStream(Stream("0109")), HasSubstr("the header of a snappy frame is cut"));
  EXPECT_THAT(WhyNoStream(Stream("010900008aeeb9be48656c6c")), HasSubstr("a snappy frame is cut"));
  EXPECT_THAT(WhyNoStream(Stream("010300008aeeb9")), HasSubstr("has no checksum"));
  EXPECT_THAT(WhyNoStream(Stream("010900008aeeb9bf48656c6c6f")),
              HasSubstr("checksum of a snappy frame does not match"));
  EXPECT_THAT(WhyNoStream(Stream("02000000")), HasSubstr("unknown type 2"));
  EXPECT_THAT(WhyNoStream(Stream("ff060000734e61507058")), HasSubstr("mark of the snappy data is wrong"));
  EXPECT_THAT(WhyNoStream(Stream("0009000000000000ffffffffff")), HasSubstr("does not say how long"));
  EXPECT_THAT(WhyNoStream(Stream("000900000000000005ffffffff")), HasSubstr("cannot be unpacked"));
}

TEST(SnappyFrames, MayNotClaimMoreThanTheyCanHold) {
  // 64 KiB and a byte; and 64 KiB from five bytes.
  EXPECT_THAT(WhyNoStream(Stream(StrCat("00881300", "00000000", "818004", std::string(2 * 4993, '0')))),
              HasSubstr("says that it has 65537 bytes"));
  EXPECT_THAT(WhyNoStream(Stream("0009000000000000 808004 0000")), HasSubstr("does not say how long"));
}

}  // namespace
}  // namespace trainyard::data
