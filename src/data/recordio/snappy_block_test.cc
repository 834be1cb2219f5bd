#include "data/recordio/snappy_block.h"

#include <snappy.h>

#include <optional>
#include <string>

#include "base/text.h"
#include "data/data_testing.h"
#include "gtest/gtest.h"
#include "rapidcheck/gtest.h"

namespace trainyard::data {
namespace {

std::string PackBlock(const std::string& text) {
  std::string packed;
  snappy::Compress(text.data(), text.size(), &packed);
  return packed;
}

// With exactly the room that is promised around it, and nothing written beyond.
std::optional<std::string> Unpack(std::string packed) {
  const std::size_t size = packed.size();
  packed.append(kSnappySlop, 'p');
  SnappyBlock block;
  if (!ParseSnappyBlock(std::string_view(packed).substr(0, size), block)) return std::nullopt;
  const std::string room(block.unpacked + kSnappySlop + 8, 'o');
  std::string out = room;
  const bool good = UnpackSnappyBlock(block, out.data());
  EXPECT_EQ(out.substr(block.unpacked + kSnappySlop), "oooooooo");
  // Beside a short one and beside itself, it is the same.
  const std::string other_packed = StrCat(PackBlock("other"), std::string(kSnappySlop, 'p'));
  SnappyBlock other;
  EXPECT_TRUE(
      ParseSnappyBlock(std::string_view(other_packed).substr(0, other_packed.size() - kSnappySlop), other));
  std::string first = room;
  std::string second = room;
  std::string third(5 + kSnappySlop, 'o');
  EXPECT_EQ(UnpackSnappyBlocks(block, first.data(), block, second.data()), good);
  EXPECT_TRUE(!good || (first.substr(0, block.unpacked) == out.substr(0, block.unpacked) && first == second));
  EXPECT_EQ(UnpackSnappyBlocks(other, third.data(), block, first.data()), good);
  EXPECT_EQ(UnpackSnappyBlocks(block, second.data(), other, third.data()), good);
  EXPECT_EQ(first.substr(block.unpacked + kSnappySlop), "oooooooo");
  if (!good) return std::nullopt;
  EXPECT_EQ(third.substr(0, 5), "other");
  out.resize(block.unpacked);
  return out;
}

std::optional<std::string> UnpackByLibrary(const std::string& packed) {
  std::string out;
  if (!snappy::Uncompress(packed.data(), packed.size(), &out)) return std::nullopt;
  return out;
}

TEST(SnappyBlock, RepeatsWhatItHasJustWrittenForEveryDistanceAndSize) {
  const std::string start = "0123456789abcdefghijklmnopqrstuvwxyz";
  for (std::size_t distance = 1; distance <= start.size(); ++distance) {
    for (std::size_t size = 1; size <= 64; ++size) {
      std::string expected = start;
      for (std::size_t i = 0; i < size; ++i) expected += expected[expected.size() - distance];
      std::string packed;
      packed += static_cast<char>(expected.size());
      packed += static_cast<char>((start.size() - 1) << 2U);
      packed += start;
      packed += static_cast<char>((size - 1) << 2U | 2U);
      packed += static_cast<char>(distance);
      packed += '\0';
      EXPECT_EQ(Unpack(packed), expected) << distance << " " << size;
    }
  }
}

TEST(SnappyBlock, ReadsEveryKindOfElement) {
  const std::string start(300, 'x');
  const std::string blocks[] = {
      FromHex("0108 61"),
      FromHex("02 00 61 00 62"),
      FromHex("06 00 61 05 01"),
      FromHex("02 00 61 02 0100"),
      FromHex("02 00 61 03 01000000"),
      FromHex("01 f0 00 61"),
      FromHex("01 f4 0000 61"),
      FromHex("01 f8 000000 61"),
      FromHex("01 fc 00000000 61"),
      FromHex("00"),
      FromHex("b002 f4 2b01") + start.substr(0, 300) + FromHex("25 2c"),
  };
  for (const std::string& block : blocks) EXPECT_EQ(Unpack(block), UnpackByLibrary(block));
}

TEST(SnappyBlock, RefusesWhatIsNotOne) {
  for (const char* block :
       {"", "80", "ffffffffff01", "01", "01 00", "02 00 61", "01 00 61 00 62", "05 05 01", "05 00 61 01 00",
        "05 00 61 01 02", "05 00 61 02 01", "01 fc ffffffff 61", "17 00 61"}) {
    EXPECT_EQ(Unpack(FromHex(block)), std::nullopt) << block;
  }
}

RC_GTEST_PROP(SnappyBlockProperties, UnpacksWhatTheLibraryPacks, ()) {
  // Of a few words, so that there is something to copy.
  const auto words = *rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
      "a", "ab", "abc", "abcdefg", "the same again and again, ", std::string(70, 'z')));
  std::string text = *rc::gen::arbitrary<std::string>();
  for (const std::string& word : words) text += word;
  RC_ASSERT((Unpack(PackBlock(text)) == std::optional<std::string>(text)));
}

RC_GTEST_PROP(SnappyBlockProperties, TakesAndRefusesWhatTheLibraryDoes, ()) {
  std::string packed = PackBlock(*rc::gen::container<std::string>(rc::gen::element('a', 'b')));
  packed += *rc::gen::arbitrary<std::string>();
  for (int i = *rc::gen::inRange(0, 4); i > 0; --i) {
    packed[*rc::gen::inRange<std::size_t>(0, packed.size())] = *rc::gen::arbitrary<char>();
  }
  SnappyBlock block;
  if (ParseSnappyBlock(packed, block) && block.unpacked > 1 << 20) return;
  RC_ASSERT((Unpack(packed) == UnpackByLibrary(packed)));
}

}  // namespace
}  // namespace trainyard::data
