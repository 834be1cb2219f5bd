#include "job/members.h"

#include "gtest/gtest.h"
#include "job/names.h"

namespace trainyard::job {
namespace {

TEST(TfConfig, HasTheClusterInIndexOrderAndTheTask) {
  const std::string cluster = PrintTfCluster({{"ps", {"a:1"}}, {"worker", {"b:1", "c:2"}}});
  EXPECT_EQ(PrintTfConfig(cluster, "worker", 1),
            R"({"cluster":{"ps":["a:1"],"worker":["b:1","c:2"]},"task":{"type":"worker","index":1}})");
}

TEST(PodName, EndsWithThePartOfTheUid) {
  EXPECT_EQ(PodName({"mnist", "0a1b2c3d-0000"}, "worker", 12), "mnist-worker-12-0a1b2");
  EXPECT_EQ(LongestPodName({"mnist", "0a1b2c3d"}, "worker", 101),
            PodName({"mnist", "0a1b2c3d"}, "worker", 100).size());
  EXPECT_EQ(LongestPodName({"mnist", ""}, "worker", 0), PodName({"mnist", ""}, "worker", 0).size());
}

}  // namespace
}  // namespace trainyard::job
