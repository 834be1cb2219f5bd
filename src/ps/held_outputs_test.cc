#include "ps/held_outputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::ps {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

std::map<int, std::vector<std::string>> All(const HeldOutputs& held) {
  return held.Find([](int, const HeldOutputs::Entry&) { return true; });
}

TEST(HeldOutputs, KeepWhatIsNotInTheStoreYet) {
  HeldOutputs held;
  held.Add(0, {1, 0, "a"}, 0);
  held.Add(0, {1, 1, "b"}, 1);
  held.Add(1, {1, 0, "x"}, 0);
  EXPECT_THAT(All(held), ElementsAre(Pair(0, ElementsAre("a", "b")), Pair(1, ElementsAre("x"))));
  held.Add(0, {1, 2, "c"}, 1);
  EXPECT_THAT(All(held).at(0), ElementsAre("b", "c"));
  held.Add(0, {1, 3, ""}, 0);
  EXPECT_EQ(All(held).count(0), 0);
}

TEST(HeldOutputs, ToldTwiceAreToldOnce) {
  HeldOutputs held;
  held.Add(0, {1, 5, "a"}, 0);
  held.Add(0, {1, 5, "a"}, 0);
  held.Add(0, {1, 4, "older"}, 0);
  EXPECT_THAT(All(held).at(0), ElementsAre("a"));
}

TEST(HeldOutputs, OfAnEarlierIncarnationStayUntilTheyAreDropped) {
  HeldOutputs held;
  held.Add(0, {1, 0, "a"}, 0);
  held.Add(0, {1, 1, "b"}, 1);
  held.Add(0, {2, 2, "c"}, 0);
  held.Add(0, {2, 3, "d"}, 0);
  EXPECT_THAT(All(held).at(0), ElementsAre("a", "b", "d"));
  const auto gone = [](int, const HeldOutputs::Entry& entry) { return entry.incarnation < 2; };
  EXPECT_THAT(held.Find(gone), ElementsAre(Pair(0, ElementsAre("a", "b"))));
  held.Drop(gone);
  EXPECT_THAT(held.Find(gone), IsEmpty());
  EXPECT_THAT(All(held).at(0), ElementsAre("d"));
}

}  // namespace
}  // namespace trainyard::ps
