#include "controllers/label_index.h"

#include <random>

#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::controllers {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

kube::TextMap Map(std::vector<std::pair<std::string, std::string>> entries) {
  std::vector<kube::TextMap::Entry> texts;
  for (const auto& [key, value] : entries) texts.emplace_back(kube::SharedText(key), kube::SharedText(value));
  return kube::TextMap(std::move(texts));
}
kube::ObjectKey Key(std::string name, std::string ns = "a") { return {std::move(ns), std::move(name)}; }

TEST(SelectorIndex, FindsTheSelectorsThatLabelsMatch) {
  SelectorIndex index;
  index.Set(Key("both"), Map({{"job", "j"}, {"index", "1"}}));
  index.Set(Key("job"), Map({{"job", "j"}}));
  index.Set(Key("other"), Map({{"job", "k"}}));
  index.Set(Key("nothing"), Map({}));
  index.Set(Key("job", "b"), Map({{"job", "j"}}));
  EXPECT_THAT(index.Match("a", Map({{"job", "j"}, {"index", "1"}, {"more", "x"}})),
              ElementsAre(Key("both"), Key("job")));
  EXPECT_THAT(index.Match("a", Map({{"job", "j"}})), ElementsAre(Key("job")));
  EXPECT_THAT(index.Match("b", Map({{"job", "j"}})), ElementsAre(Key("job", "b")));
  EXPECT_THAT(index.Match("a", Map({})), IsEmpty());
  index.Set(Key("job"), Map({{"job", "k"}}));
  index.Remove(Key("other"));
  EXPECT_THAT(index.Match("a", Map({{"job", "j"}})), IsEmpty());
  EXPECT_THAT(index.Match("a", Map({{"job", "k"}})), ElementsAre(Key("job")));
}

TEST(LabelIndex, FindsTheObjectsThatASelectorSelects) {
  LabelIndex index;
  index.Set(Key("p1"), Map({{"job", "j"}, {"index", "1"}}));
  index.Set(Key("p2"), Map({{"job", "j"}, {"index", "2"}}));
  index.Set(Key("p1", "b"), Map({{"job", "j"}}));
  EXPECT_THAT(index.Match("a", Map({{"job", "j"}})), ElementsAre(Key("p1"), Key("p2")));
  EXPECT_THAT(index.Match("a", Map({{"job", "j"}, {"index", "2"}})), ElementsAre(Key("p2")));
  EXPECT_THAT(index.Match("a", Map({{"job", "j"}, {"index", "3"}})), IsEmpty());
  EXPECT_THAT(index.Match("a", Map({})), IsEmpty());
  index.Set(Key("p2"), Map({{"job", "k"}}));
  index.Remove(Key("p1"));
  EXPECT_THAT(index.Match("a", Map({{"job", "j"}})), IsEmpty());
}

// Both indexes say what comparing everything with everything says, whatever was set and removed before.
TEST(LabelIndexes, AgreeWithComparingAll) {
  std::mt19937 random(7);
  const auto any = [&](int count) { return std::uniform_int_distribution<>(0, count - 1)(random); };
  const auto labels = [&] {
    std::vector<std::pair<std::string, std::string>> entries;
    for (int i = any(4); i > 0; --i) entries.emplace_back(StrCat("k", any(3)), StrCat("v", any(3)));
    return Map(entries);
  };
  std::map<kube::ObjectKey, kube::TextMap> selectors;
  std::map<kube::ObjectKey, kube::TextMap> objects;
  SelectorIndex by_selector;
  LabelIndex by_label;
  for (int round = 0; round < 2000; ++round) {
    const kube::ObjectKey key = Key(StrCat("x", any(12)), StrCat("ns", any(2)));
    switch (any(4)) {
      case 0:
        by_selector.Set(key, selectors[key] = labels());
        break;
      case 1:
        by_label.Set(key, objects[key] = labels());
        break;
      case 2:
        selectors.erase(key);
        by_selector.Remove(key);
        break;
      default:
        objects.erase(key);
        by_label.Remove(key);
    }
    const kube::TextMap probe = labels();
    std::vector<kube::ObjectKey> selecting;
    std::vector<kube::ObjectKey> selected;
    for (const auto& [k, selector] : selectors) {
      if (k.ns == key.ns && Selects(selector, probe)) selecting.push_back(k);
    }
    for (const auto& [k, of] : objects) {
      if (k.ns == key.ns && Selects(probe, of)) selected.push_back(k);
    }
    ASSERT_EQ(by_selector.Match(key.ns, probe), selecting) << "round " << round;
    ASSERT_EQ(by_label.Match(key.ns, probe), selected) << "round " << round;
  }
}

}  // namespace
}  // namespace trainyard::controllers
