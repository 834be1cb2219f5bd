#include "kube/pod.h"

#include <malloc.h>

#include <memory>

#include "base/status.h"
#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

CompactPod Parse(std::string json, const MetaOptions& options = {}) {
  auto pod = ParsePod(std::move(json), options);
  EXPECT_TRUE(pod.ok()) << pod.status();
  return pod.ok() ? *std::move(pod) : CompactPod();
}

// A pod of a training job as a cluster has it, 4 KB of text.
std::string TypicalPod(int index) {
  std::string managed;
  for (int i = 0; i < 40; ++i) StrAppend(managed, R"("f:field)", i, R"(": {".": {}, "f:name": {}},)");
  return StrCat(R"({"apiVersion": "v1", "kind": "Pod", "metadata": {
    "name": "resnet-imagenet-worker-)",
                index, R"(", "namespace": "vision-team",
    "uid": "8f6c3b1e-77aa-4d0c-9c3b-)",
                100'000'000'000 + index, R"(", "resourceVersion": ")", 10'000'000 + index,
                R"(", "creationTimestamp": "2024-05-01T10:00:00Z",
    "labels": {"app.kubernetes.io/managed-by": "trainyard", "trainyard.dev/job-name": "resnet-imagenet",
      "trainyard.dev/replica-type": "worker", "trainyard.dev/replica-index": ")",
                index, R"(",
      "trainyard.dev/epoch": "2", "team": "vision", "cost-center": "4711"},
    "annotations": {"sidecar.istio.io/inject": "false"},
    "ownerReferences": [{"apiVersion": "trainyard.dev/v1", "kind": "AITrainingJob", "name": "resnet-imagenet",
      "uid": "0a0a0a0a-1111-4222-8333-444444444444", "controller": true, "blockOwnerDeletion": true}],
    "managedFields": [{"manager": "trainyard", "operation": "Update", "fieldsV1": {)",
                managed, R"( "f:z": {}}}]},
    "spec": {"nodeName": "gpu-node-)",
                index % 100, R"(.cluster.internal", "restartPolicy": "Never",
      "containers": [{"name": "worker", "image": "registry.example.com/vision/resnet:1.4.2",
        "command": ["python", "train.py", "--epochs=90", "--batch-size=256"],
        "env": [{"name": "TF_CONFIG", "value": "{\"cluster\": {\"worker\": [\"a:2222\", \"b:2222\"]}}"}],
        "resources": {"limits": {"nvidia.com/gpu": "8", "cpu": "32", "memory": "256Gi"},
                      "requests": {"nvidia.com/gpu": "8", "cpu": "16", "memory": "128Gi"}},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
      "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
      "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "imagenet"}}]},
    "status": {"phase": "Running", "podIP": "10.42.)",
                index / 250, ".", index % 250, R"(", "hostIP": "10.0.0.)", index % 100,
                R"(", "startTime": "2024-05-01T10:00:05Z", "qosClass": "Burstable",
      "conditions": [
        {"type": "Initialized", "status": "True", "lastTransitionTime": "2024-05-01T10:00:05Z"},
        {"type": "Ready", "status": "True", "lastTransitionTime": "2024-05-01T10:00:25Z"},
        {"type": "ContainersReady", "status": "True", "lastTransitionTime": "2024-05-01T10:00:25Z"},
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2024-05-01T10:00:04Z"}],
      "containerStatuses": [{"name": "worker", "ready": true, "restartCount": 0, "started": true,
        "image": "registry.example.com/vision/resnet:1.4.2", "imageID": "sha256:0123456789abcdef",
        "containerID": "containerd://0123456789abcdef0123456789abcdef0123456789abcdef",
        "state": {"running": {"startedAt": "2024-05-01T10:00:20Z"}}, "lastState": {}}]}})");
}

TEST(CompactPod, HasWhatDecidingNeeds) {
  const CompactPod pod = Parse(TypicalPod(7));
  EXPECT_EQ(pod.meta.Key().Str(), "vision-team/resnet-imagenet-worker-7");
  EXPECT_EQ(pod.meta.labels.Get("trainyard.dev/replica-index"), "7");
  EXPECT_EQ(pod.meta.controller->name, "resnet-imagenet");
  EXPECT_EQ(pod.node, "gpu-node-7.cluster.internal");
  EXPECT_EQ(pod.phase, PodPhase::kRunning);
  EXPECT_EQ(pod.restart_policy, PodRestartPolicy::kNever);
  EXPECT_EQ(pod.pod_ip, "10.42.0.7");
  EXPECT_EQ(pod.host_ip, "10.0.0.7");
  EXPECT_EQ(pod.start_time, absl::FromUnixSeconds(1'714'557'605));
  EXPECT_EQ(pod.ready.status, ConditionStatus::kTrue);
  EXPECT_EQ(pod.ready.since, absl::FromUnixSeconds(1'714'557'625));
  EXPECT_EQ(pod.scheduled.status, ConditionStatus::kTrue);
  EXPECT_EQ(pod.disruption, Condition());
  EXPECT_FALSE(pod.IsBeingDeleted());
  ASSERT_EQ(pod.containers.size(), 1u);
  EXPECT_EQ(pod.FindContainer("worker"), pod.containers.data());
  EXPECT_EQ(pod.FindContainer("other"), nullptr);
  EXPECT_EQ(pod.containers[0].state.kind, ContainerState::Kind::kRunning);
  EXPECT_EQ(pod.containers[0].state.started, absl::FromUnixSeconds(1'714'557'620));
  EXPECT_FALSE(pod.containers[0].last_termination.has_value());
}

TEST(CompactPod, TellsHowContainersEnded) {
  const CompactPod pod = Parse(R"({"metadata": {"name": "x", "deletionTimestamp": "2024-05-01T10:00:00Z"},
    "spec": {"restartPolicy": "OnFailure"},
    "status": {"phase": "Failed", "reason": "Evicted", "message": "The node was low on memory.",
      "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"},
                     {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"},
                     {"type": "Ready", "status": "Unknown"}],
      "initContainerStatuses": [{"name": "fetch", "state": {"waiting": {"reason": "ImagePullBackOff"}}}],
      "containerStatuses": [
        {"name": "a", "restartCount": 3, "ready": false,
         "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}},
         "lastState": {"terminated": {"exitCode": 137, "signal": 9, "reason": "OOMKilled",
           "startedAt": "2024-05-01T10:00:00Z", "finishedAt": "2024-05-01T10:00:09Z"}}},
        {"name": "b", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}]}})");
  EXPECT_EQ(pod.phase, PodPhase::kFailed);
  EXPECT_TRUE(pod.IsFinished());
  EXPECT_TRUE(pod.IsBeingDeleted());
  EXPECT_EQ(pod.restart_policy, PodRestartPolicy::kOnFailure);
  EXPECT_EQ(pod.reason, "Evicted");
  EXPECT_EQ(pod.message, "The node was low on memory.");
  EXPECT_EQ(pod.disruption.status, ConditionStatus::kTrue);
  EXPECT_EQ(pod.disruption.reason, "PreemptionByScheduler");
  EXPECT_EQ(pod.scheduled.status, ConditionStatus::kFalse);
  EXPECT_EQ(pod.scheduled.reason, "Unschedulable");
  EXPECT_EQ(pod.ready.status, ConditionStatus::kUnknown);
  EXPECT_EQ(pod.init_containers.at(0).state.reason, "ImagePullBackOff");
  ASSERT_EQ(pod.containers.size(), 2u);
  EXPECT_EQ(pod.containers[0].restart_count, 3);
  EXPECT_EQ(pod.containers[0].state.kind, ContainerState::Kind::kWaiting);
  EXPECT_EQ(pod.containers[0].state.message, "back-off");
  ASSERT_TRUE(pod.containers[0].last_termination.has_value());
  EXPECT_EQ(pod.containers[0].last_termination->exit_code, 137);
  EXPECT_EQ(pod.containers[0].last_termination->signal, 9);
  EXPECT_EQ(pod.containers[0].last_termination->reason, "OOMKilled");
  EXPECT_EQ(*pod.containers[0].last_termination->finished - *pod.containers[0].last_termination->started,
            absl::Seconds(9));
  EXPECT_EQ(pod.containers[1].state.kind, ContainerState::Kind::kTerminated);
  EXPECT_EQ(pod.containers[1].state.exit_code, 0);
}

TEST(CompactPod, SumsWhatItsContainersAskFor) {
  const CompactPod pod = Parse(R"({"spec": {
    "initContainers": [{"resources": {"requests": {"cpu": "5", "memory": "1Mi"}}},
                       {"resources": {"limits": {"memory": "3Mi", "example.com/tpu": 1}}}],
    "containers": [{"resources": {"requests": {"cpu": "500m"}, "limits": {"cpu": "2", "nvidia.com/gpu": 4}}},
                   {"resources": {"requests": {"cpu": "1500m", "memory": "2Mi"}}}, {"name": "bare"}],
    "overhead": {"cpu": "100m"}}})");
  EXPECT_EQ(FindAmount(pod.requests, "cpu"), 5100) << "an init container needs more than all the others";
  EXPECT_EQ(FindAmount(pod.requests, "memory"), 3LL * 1024 * 1024 * 1000);
  EXPECT_EQ(FindAmount(pod.requests, "nvidia.com/gpu"), 4000);
  EXPECT_EQ(FindAmount(pod.requests, "example.com/tpu"), 1000);
  EXPECT_EQ(FindAmount(pod.requests, "none"), 0);
  EXPECT_EQ(pod.requests.size(), 4u);
}

TEST(CompactPod, TellsAcceleratorsFromOtherResources) {
  EXPECT_TRUE(IsAccelerator("nvidia.com/gpu"));
  EXPECT_FALSE(IsAccelerator("cpu"));
  EXPECT_FALSE(IsAccelerator("hugepages-2Mi"));
  EXPECT_FALSE(IsAccelerator("kubernetes.io/batch-cpu"));
  EXPECT_FALSE(IsAccelerator("x.kubernetes.io/y"));
}

TEST(CompactPod, BoundsMessagesBetweenCharacters) {
  std::string umlauts;
  for (int i = 0; i < 400; ++i) umlauts += "ä";
  const CompactPod pod = Parse(StrCat(R"({"status": {"message": "x)", umlauts, R"("}})"));
  EXPECT_EQ(pod.message.size(), 255u);
  EXPECT_EQ(pod.message, "x" + umlauts.substr(0, 254));
}

TEST(CompactPod, KeepsTheAnnotationsAskedFor) {
  EXPECT_TRUE(Parse(TypicalPod(1)).meta.annotations.entries().empty());
  const CompactPod pod = Parse(TypicalPod(1), {.annotations = {"sidecar.istio.io/inject"}});
  EXPECT_EQ(pod.meta.annotations.Get("sidecar.istio.io/inject"), "false");
}

TEST(CompactPod, NamesTheMemberThatIsWrong) {
  const auto error = [](const char* json) { return std::string(Message(ParsePod(json).status())); };
  EXPECT_THAT(error(R"({"status": {"containerStatuses": [{"restartCount": "many"}]}})"),
              HasSubstr("cannot read a Pod: at \"restartCount\""));
  EXPECT_THAT(error(R"({"status": {"containerStatuses": [{"restartCount": 99999999999}]}})"),
              HasSubstr("at \"restartCount\""));
  EXPECT_THAT(error(R"({"spec": {"containers": [{"resources": {"limits": {"cpu": "lots"}}}]}})"),
              HasSubstr("at \"cpu\""));
  EXPECT_EQ(Parse(R"({"status": {"phase": "Dreaming"}})").phase, PodPhase::kUnknown);
  EXPECT_EQ(PrintPhase(PodPhase::kSucceeded), "Succeeded");
}

TEST(CompactPod, SurvivesBeingCutOffAnywhere) {
  const std::string json = TypicalPod(3);
  for (std::size_t size = 0; size < json.size(); size += 7) {
    const auto pod = ParsePod(json.substr(0, size));
    ASSERT_FALSE(pod.ok()) << size;
  }
}

TEST(CompactPod, SharesWhatPodsHaveInCommon) {
  const CompactPod a = Parse(TypicalPod(1));
  const CompactPod b = Parse(TypicalPod(101));
  EXPECT_EQ(a.node.view().data(), b.node.view().data());
  EXPECT_EQ(a.meta.controller->uid.view().data(), b.meta.controller->uid.view().data());
  EXPECT_EQ(a.meta.labels.Get("team").data(), b.meta.labels.Get("team").data());
}

#ifndef TRAINYARD_SANITIZED
TEST(CompactPod, TakesAtMostTwoKibibytesInMemory) {
  constexpr int kPods = 10'000;
  const std::string sample = TypicalPod(0);
  {
    const CompactPod warm = Parse(sample);
  }
  std::vector<std::shared_ptr<const CompactPod>> pods;
  pods.reserve(kPods);
  const std::size_t before = ::mallinfo2().uordblks;
  for (int i = 0; i < kPods; ++i) pods.push_back(std::make_shared<const CompactPod>(Parse(TypicalPod(i))));
  const std::size_t each = (::mallinfo2().uordblks - before) / kPods;
  RecordProperty("bytes_a_pod", static_cast<int>(each));
  std::cout << "bytes a pod: " << each << " of " << sample.size() << " of JSON, " << sizeof(CompactPod)
            << " of them the object itself\n";
  EXPECT_LE(each, 2048u);
  EXPECT_LE(each * 3, sample.size());
}
#endif

}  // namespace
}  // namespace trainyard::kube
