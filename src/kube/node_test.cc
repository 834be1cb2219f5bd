#include "kube/node.h"

#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kube/service.h"

namespace trainyard::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CompactNode, TellsWhetherAndWhatItCanRun) {
  const auto node = ParseNode(R"({"metadata": {"name": "gpu-1", "labels": {"zone": "a"}},
    "spec": {"unschedulable": true, "taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]},
    "status": {"allocatable": {"cpu": "3900m", "memory": "16Gi", "nvidia.com/gpu": "8"},
      "capacity": {"cpu": "4"},
      "conditions": [{"type": "MemoryPressure", "status": "True"}, {"type": "DiskPressure", "status": "False"},
        {"type": "Ready", "status": "False", "reason": "KubeletNotReady",
         "lastTransitionTime": "2024-05-01T10:00:00Z"}],
      "addresses": [{"type": "InternalIP", "address": "10.0.0.5"}, {"type": "Hostname", "address": "gpu-1"}]}})");
  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_EQ(node->meta.name, "gpu-1");
  EXPECT_FALSE(node->IsReady());
  EXPECT_EQ(node->ready.reason, "KubeletNotReady");
  EXPECT_EQ(node->ready.since, absl::FromUnixSeconds(1'714'557'600));
  EXPECT_THAT(node->troubles, ElementsAre(SharedText("MemoryPressure")));
  EXPECT_TRUE(node->unschedulable);
  EXPECT_THAT(node->taints,
              ElementsAre(Taint{SharedText("gpu"), SharedText("yes"), SharedText("NoSchedule")}));
  EXPECT_EQ(FindAmount(node->allocatable, "cpu"), 3900);
  EXPECT_EQ(FindAmount(node->allocatable, "nvidia.com/gpu"), 8000);
}

TEST(CompactNode, ThatSaysNothingIsNotReady) {
  const auto node = ParseNode(R"({"metadata": {"name": "n"}})");
  ASSERT_TRUE(node.ok());
  EXPECT_FALSE(node->IsReady());
  EXPECT_FALSE(node->unschedulable);
  EXPECT_THAT(Message(ParseNode(R"({"spec": {"unschedulable": "yes"}})").status()),
              HasSubstr("cannot read a Node: at \"unschedulable\""));
}

TEST(CompactService, TellsWhereItListens) {
  const auto service = ParseService(R"({"metadata": {"name": "ps", "namespace": "a"},
    "spec": {"type": "ClusterIP", "clusterIP": "None", "selector": {"role": "ps"},
      "ports": [{"name": "grpc", "port": 2222, "targetPort": "grpc", "protocol": "TCP"},
                {"port": 80, "targetPort": 8080, "nodePort": 30080}]}})");
  ASSERT_TRUE(service.ok()) << service.status();
  EXPECT_TRUE(service->IsHeadless());
  EXPECT_EQ(service->selector.Get("role"), "ps");
  ASSERT_EQ(service->ports.size(), 2u);
  EXPECT_EQ(service->ports[0].port, 2222);
  EXPECT_EQ(service->ports[0].target_port, "grpc");
  EXPECT_EQ(service->ports[1].target_port, "8080");
  EXPECT_EQ(service->ports[1].node_port, 30080);
  EXPECT_FALSE(service->publish_not_ready);
  EXPECT_FALSE(service->client_affinity);
  const auto other = ParseService(
      R"({"spec": {"publishNotReadyAddresses": true, "sessionAffinity": "ClientIP",
                   "ports": [{"port": 80, "appProtocol": "http"}]}})");
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_TRUE(other->publish_not_ready);
  EXPECT_TRUE(other->client_affinity);
  EXPECT_EQ(other->ports[0].app_protocol, "http");
  EXPECT_THAT(Message(ParseService(R"({"spec": {"ports": [{"port": "x"}]}})").status()),
              HasSubstr("cannot read a Service: at \"port\""));
}

}  // namespace
}  // namespace trainyard::kube
