#include "kube/pod_end.h"

#include "gtest/gtest.h"

namespace trainyard::kube {
namespace {

std::string EndOf(int exit_code, std::string message) {
  CompactPod pod{.node = SharedText("node-1")};
  pod.containers.push_back({.state = {.kind = ContainerState::Kind::kTerminated,
                                      .reason = SharedText("Error"),
                                      .exit_code = exit_code,
                                      .message = std::move(message)}});
  return DescribeEnd(pod);
}

TEST(DescribeEnd, HasTheFirstLineOfTheTerminationMessageUnlessItSaysTheSame) {
  EXPECT_EQ(EndOf(3, "no data in /x\nread 7 files\n"), "exited 3: no data in /x on node-1");
  EXPECT_EQ(EndOf(3, ""), "exited 3 on node-1");
  EXPECT_EQ(EndOf(3, "exited 3"), "exited 3 on node-1");
  EXPECT_EQ(EndOf(134, "was killed by signal 6 (SIGABRT)\nbug: x\n"),
            "was killed by signal 6 (SIGABRT) on node-1");
  EXPECT_EQ(EndOf(134, "x.cc:7: bug: x"), "was killed by signal 6 (SIGABRT): x.cc:7: bug: x on node-1");
}

}  // namespace
}  // namespace trainyard::kube
