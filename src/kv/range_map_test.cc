#include "kv/range_map.h"

#include "base/ids.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::kv {
namespace {

TEST(RangeMap, FindsExactlyTheRangesThatContainAKey) {
  // Against the plain way, over many random ranges and keys of a small alphabet.
  IdSource ids(11);
  const auto text = [&](int length) {
    std::string out;
    for (int i = 0; i < length; ++i) out.push_back("ab\xff"[ids.Below(3)]);
    return out;
  };
  std::vector<KeyRange> ranges;
  for (int i = 0; i < 300; ++i) {
    switch (ids.Below(4)) {
      case 0:
        ranges.push_back(KeyRange::Key(text(static_cast<int>(1 + ids.Below(3)))));
        break;
      case 1:
        ranges.push_back(KeyRange::Prefix(text(static_cast<int>(ids.Below(4)))));
        break;
      case 2:
        ranges.push_back(KeyRange::From(text(static_cast<int>(ids.Below(4)))));
        break;
      default:
        ranges.push_back(KeyRange::Between(text(2), text(2)));
    }
  }
  RangeMap<const KeyRange> map;
  for (const KeyRange& range : ranges) map.Insert(range, &range);
  const auto check = [&](std::size_t first) {
    for (int i = 0; i < 200; ++i) {
      const std::string key = text(static_cast<int>(1 + ids.Below(4)));
      std::vector<const KeyRange*> expected;
      for (std::size_t r = first; r < ranges.size(); ++r) {
        if (ranges[r].Contains(key)) expected.push_back(&ranges[r]);
      }
      std::vector<const KeyRange*> found;
      map.ForEachContaining(key, [&](const KeyRange* range) { found.push_back(range); });
      EXPECT_THAT(found, testing::UnorderedElementsAreArray(expected));
    }
  };
  check(0);
  for (std::size_t r = 0; r < 150; ++r) map.Erase(ranges[r], &ranges[r]);
  check(150);
  for (std::size_t r = 150; r < ranges.size(); ++r) map.Erase(ranges[r], &ranges[r]);
  EXPECT_EQ(map.size(), 0u);
}

TEST(KeyRange, KnowsWhetherItIsOfOneKeyOrOfAPrefix) {
  EXPECT_EQ(KeyRange::Key("a").AsKey(), "a");
  EXPECT_EQ(KeyRange::Prefix("a").AsPrefix(), "a");
  EXPECT_EQ(KeyRange::Prefix("").AsPrefix(), "");
  EXPECT_EQ(KeyRange::Prefix("\xff").AsPrefix(), "\xff");
  EXPECT_EQ(KeyRange::Prefix("a").AsKey(), std::nullopt);
  EXPECT_EQ(KeyRange::Between("a", "c").AsPrefix(), std::nullopt);
  EXPECT_TRUE(KeyRange::Prefix("a\xff").Contains("a\xff\xff"));
  EXPECT_FALSE(KeyRange::Prefix("a\xff").Contains("b"));
}

}  // namespace
}  // namespace trainyard::kv
