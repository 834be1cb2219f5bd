#include "node/pod_addresses.h"

#include <set>

#include "base/text.h"
#include "gtest/gtest.h"

namespace trainyard::node {
namespace {

TEST(PodAddresses, GiveEachPodOneOfItsOwnAndTheSameEachTime) {
  PodAddresses addresses(3);
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const auto address = addresses.Allocate(StrCat("pod", i));
    ASSERT_TRUE(address);
    EXPECT_TRUE(address->starts_with("127.19."));
    EXPECT_TRUE(seen.insert(*address).second) << *address;
    EXPECT_EQ(addresses.Allocate(StrCat("pod", i)), address);
  }
}

TEST(PodAddresses, DifferBetweenClusters) {
  EXPECT_NE(PodAddresses(1).Allocate("p"), PodAddresses(2).Allocate("p"));
}

TEST(PodAddresses, OfTwoClustersThatHaveTheSameNetworkBeginApart) {
  EXPECT_NE(PodAddresses(5).Allocate("p"), PodAddresses(5 + 64 * 1000).Allocate("p"));
  EXPECT_TRUE(PodAddresses(0xffffffff).Allocate("p"));
}

TEST(PodAddresses, AreTakenOverFromPodsThatRun) {
  PodAddresses addresses(0);
  EXPECT_TRUE(addresses.Take("old", "127.16.0.1"));
  EXPECT_TRUE(addresses.Take("old", "127.16.0.1"));
  EXPECT_FALSE(addresses.Take("other", "127.16.0.1")) << "it is taken";
  EXPECT_EQ(addresses.Allocate("old"), "127.16.0.1");
  EXPECT_EQ(addresses.Allocate("new"), "127.16.0.2");
  for (const char* foreign : {"127.17.0.1", "10.0.0.1", "127.16.0", "127.16.0.256", "127.16.0.0", "", "x"}) {
    EXPECT_FALSE(addresses.Take("p", foreign)) << foreign;
  }
}

TEST(PodAddresses, ComeBackAsLateAsPossible) {
  PodAddresses addresses(0);
  const auto first = addresses.Allocate("a");
  addresses.Release("a");
  EXPECT_NE(addresses.Allocate("b"), first);
}

TEST(PodAddresses, RunOutAndComeBack) {
  PodAddresses addresses(0);
  int given = 0;
  while (addresses.Allocate(StrCat(given))) ++given;
  EXPECT_EQ(given, 65534);
  addresses.Release("77");
  EXPECT_EQ(addresses.Allocate("late"), "127.16.0.78");
  EXPECT_EQ(addresses.Allocate("later"), std::nullopt);
}

}  // namespace
}  // namespace trainyard::node
