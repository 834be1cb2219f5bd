#include "client/manifests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"

namespace trainyard::client {
namespace {

using graph::GraphRole;
using ::testing::HasSubstr;

JobSettings Settings() {
  return {.name = "test_1",
          .store_url = "etcd://trainyard-store.lab:2379",
          .store_has_token = true,
          .checkpoints = "/mnt/yard/jobs/lab/test_1/u",
          .pods = {.ns = "lab", .image = "my/trainyard", .storage = SharedFolder{"/mnt/yard"}}};
}

// The variable of a group's only container, as JSON.
std::string VariableOf(const Document& group, std::string_view name) {
  const Array& containers = *ArrayAt(group, {"template", "spec", "containers"});
  EXPECT_EQ(containers.size(), 1U);
  for (const Document& variable : *ArrayAt(containers[0], {"env"})) {
    if (StringAt(variable, {"name"}) == name) return PrintJson(variable);
  }
  return "";
}

TEST(Resources, AreWrittenAsKubernetesDoes) {
  const auto resource = CheckResource({.cpu = "0.5", .gpu = "0", .memory = "1024Ki"});
  ASSERT_TRUE(resource.ok()) << resource.status();
  EXPECT_EQ(*resource, (graph::Resource{.cpu = "500m", .gpu = "", .memory = "1Mi"}));
  EXPECT_EQ(*CheckResource({}), graph::Resource());
}

TEST(Resources, SayWhichIsWrongAndWhy) {
  EXPECT_THAT(Message(CheckResource({.cpu = "two"}).status()), HasSubstr("cpu: 'two' is no amount"));
  EXPECT_THAT(Message(CheckResource({.gpu = "0.5"}).status()), HasSubstr("gpu: '0.5' is not whole"));
  EXPECT_THAT(Message(CheckResource({.memory = "-1Gi"}).status()),
              HasSubstr("mem: '-1Gi' is negative: write 512Mi"));
}

TEST(GroupObject, TellsAPodWhatItNeedsAndNoMore) {
  const Document trainer = GroupObject(Settings(), {.role = GraphRole::kTrainer, .replicas = 4});
  EXPECT_EQ(VariableOf(trainer, "TRAINYARD_JOB"), R"({"name":"TRAINYARD_JOB","value":"lab/test_1"})");
  EXPECT_THAT(VariableOf(trainer, "TRAINYARD_POD_IP"), HasSubstr("status.podIP"));
  EXPECT_THAT(VariableOf(trainer, "TRAINYARD_JOB_TOKEN"), HasSubstr("-token"));
  EXPECT_THAT(VariableOf(trainer, "TRAINYARD_ETCD_TOKEN"), HasSubstr("trainyard-store"));
  EXPECT_EQ(VariableOf(trainer, "TRAINYARD_CHECKPOINT_DIR"), "");
  EXPECT_EQ(IntAt(trainer, {"replicas"}), 4);
  EXPECT_EQ(StringAt(trainer, {"completePolicy"}), "All");
  EXPECT_EQ(Find(trainer, {"edlPolicy"}), nullptr);

  const Document pserver = GroupObject(Settings(), {.role = GraphRole::kPserver});
  EXPECT_THAT(VariableOf(pserver, "TRAINYARD_CHECKPOINT_DIR"), HasSubstr("/mnt/yard/jobs/lab/test_1/u"));
  EXPECT_EQ(StringAt(pserver, {"completePolicy"}), "None");
}

TEST(GroupObject, LeavesTheSizeOfAnElasticGroupToTheAutoscaler) {
  const Document trainer = GroupObject(Settings(), {.replicas = 2, .elastic = {{.least = 1, .most = 8}}});
  EXPECT_EQ(StringAt(trainer, {"edlPolicy"}), "Auto");
  EXPECT_EQ(IntAt(trainer, {"minReplicas"}), 1);
  EXPECT_EQ(IntAt(trainer, {"maxReplicas"}), 8);
}

TEST(GroupObject, LimitsMemoryAndAcceleratorsButNotSpeed) {
  const Document group = GroupObject(Settings(), {.resource = {.cpu = "1", .gpu = "2", .memory = "512Mi"}});
  const Document& container = (*ArrayAt(group, {"template", "spec", "containers"}))[0];
  EXPECT_EQ(PrintJson(*Find(container, {"resources", "requests"})),
            R"({"cpu":"1","memory":"512Mi","nvidia.com/gpu":"2"})");
  EXPECT_EQ(PrintJson(*Find(container, {"resources", "limits"})),
            R"({"memory":"512Mi","nvidia.com/gpu":"2"})");
}

TEST(GroupObject, HasTheAgentAsTheParentOfAGraphWhichTheOperatorRestarts) {
  const Document group = GroupObject(Settings(), {});
  const Document& container = (*ArrayAt(group, {"template", "spec", "containers"}))[0];
  EXPECT_EQ(
      PrintJson(*Find(container, {"command"})),
      R"(["trainyard","agent","keep","--restarts","0","--","trainyard","graph-worker","--log-level","info"])");
}

TEST(JobObject, RestartsWhateverARestartMayMend) {
  const Document job = GraphJobObject(Settings());
  EXPECT_EQ(StringAt(job, {"spec", "restartingExitCode"}), "1-2,4-255");
  EXPECT_EQ(StringAt(job, {"metadata", "labels", kJobLabel}), "test_1");
  EXPECT_EQ(StringAt(job, {"spec", "cleanPodPolicy"}), "None");
}

TEST(TokenSecret, HasTheToken) {
  EXPECT_EQ(StringAt(TokenSecret("lab", "x-token", "secret"), {"data", "token"}), "c2VjcmV0");
}

TEST(OwnerPatch, NamesTheOwnerAndChangesNothingElse) {
  const Document patch = OwnerPatch(Object{{"metadata", Object{{"name", "x"}, {"uid", "u-1"}}}});
  EXPECT_EQ(StringAt((*ArrayAt(patch, {"metadata", "ownerReferences"}))[0], {"uid"}), "u-1");
  EXPECT_EQ(patch.get_object().size(), 1U);
}

TEST(StoreObjects, BelongTogether) {
  const Document job = StoreJob(Settings().pods);
  EXPECT_EQ(StringAt(job, {"metadata", "name"}), kStoreName);
  EXPECT_EQ(StringAt(job, {"metadata", "labels", kServiceLabel}), kStoreName);
  EXPECT_EQ(StringAt(StoreService("lab"), {"spec", "selector", "TrainingJobName"}), kStoreName);
  EXPECT_EQ(StoreUrl("lab"), "etcd://trainyard-store.lab:2379");
}

}  // namespace
}  // namespace trainyard::client
