#include "reconcile/observe.h"

#include "base/text.h"
#include "gtest/gtest.h"
#include "operator/aijob.h"
#include "operator/tfjob.h"
#include "reconcile/accelerators.h"

namespace trainyard::ops {
namespace {

const absl::Time kTen = absl::FromUnixSeconds(1'714'557'600);  // 2024-05-01T10:00:00Z

job::PodView Observe(std::string_view spec, std::string_view status, std::string_view metadata = "",
                     const reconcile::Kind& kind = TfJobKind()) {
  const auto pod =
      kube::ParsePod(R"({"metadata":{"name":"p","uid":"u")" + std::string(metadata) + R"(},"spec":)" +
                         std::string(spec) + R"(,"status":)" + std::string(status) + "}",
                     {.annotations = {"trainyard.dev/attempt"}});
  EXPECT_TRUE(pod.ok()) << pod.status();
  return reconcile::ObservePod(
      *pod, {.job = "j", .role = "worker", .index = 1}, kind,
      [](const kube::CompactPod&) { return reconcile::NodeSight{.health = job::NodeHealth::kReady}; });
}

constexpr std::string_view kNode = R"({"nodeName":"node-2"})";

TEST(ObservePod, SeesAPodThatRuns) {
  const job::PodView pod = Observe(
      kNode,
      R"({"phase":"Running","containerStatuses":[{"name":"tensorflow","restartCount":2,"state":{"running":{}}},
                {"name":"sidecar","restartCount":1,"state":{"running":{}}}]})",
      R"(,"annotations":{"trainyard.dev/attempt":"4"})");
  EXPECT_EQ(pod.phase, job::Phase::kRunning);
  EXPECT_TRUE(pod.main_runs);
  EXPECT_FALSE(pod.main_succeeded);
  EXPECT_EQ(pod.restarts, 3);
  EXPECT_EQ(pod.attempt, 4);
  EXPECT_EQ(pod.node, "node-2");
  EXPECT_FALSE(pod.owned) << "it has no controller";
}

TEST(ObservePod, SeesASuccessThatTheKubeletHasStartedAgain) {
  const job::PodView pod = Observe(
      kNode,
      R"({"phase":"Running","containerStatuses":[{"name":"tensorflow","restartCount":1,"state":{"running":{}},
                "lastState":{"terminated":{"exitCode":0}}}]})");
  EXPECT_TRUE(pod.main_succeeded);
  EXPECT_TRUE(pod.main_runs);
  EXPECT_TRUE(pod.restarted_after_success);
}

TEST(ObservePod, SeesUntilWhenTheKubeletHoldsAContainerBack) {
  const job::PodView pod = Observe(
      kNode,
      R"({"phase":"Running","containerStatuses":[{"name":"tensorflow","restartCount":1,"state":{"waiting":
                {"reason":"CrashLoopBackOff","message":"back-off 1m20s restarting failed container=tensorflow pod=p"}},
                "lastState":{"terminated":{"exitCode":1,"finishedAt":"2024-05-01T10:00:00Z"}}}]})");
  EXPECT_EQ(pod.resumes, kTen + absl::Seconds(80));
  EXPECT_FALSE(pod.restarted_after_success);
}

TEST(ParseService, SeesWhatItSelectsAndItsPorts) {
  const auto parse = [](std::string_view selector, std::string_view ports) {
    return *reconcile::ParseService(
        StrCat(R"({"metadata":{"name":"s","labels":{"a":"1","b":"2"}},"spec":{"selector":)", selector,
               R"(,"ports":)", ports, "}}"),
        {});
  };
  const reconcile::CompactService made =
      parse(R"({"a":"1","b":"2"})", R"([{"port":7,"targetPort":7},{"port":8}])");
  EXPECT_TRUE(made.selects_by_its_labels);
  EXPECT_EQ(made.selector_size, 2U);
  EXPECT_EQ(made.ports, (std::vector<int>{7, 8}));
  EXPECT_FALSE(parse(R"({"a":"1","b":"3"})", "[]").selects_by_its_labels);
  EXPECT_FALSE(parse("{}", "[]").selects_by_its_labels) << "it selects nothing";
  EXPECT_EQ(parse(R"({"a":"1"})", R"([{"port":7,"targetPort":9}])").ports, std::vector<int>{0});
  EXPECT_EQ(parse(R"({"a":"1"})", R"([{"port":7,"targetPort":"web"}])").ports, std::vector<int>{0});
}

TEST(ObservePod, SeesTheFailureBeforeASuccess) {
  const job::PodView pod =
      Observe(kNode, R"({"phase":"Running","containerStatuses":[{"name":"tensorflow","restartCount":2,
                "state":{"terminated":{"exitCode":0}},"lastState":{"terminated":{"exitCode":3,"reason":"Error"}}}]})");
  EXPECT_TRUE(pod.main_succeeded);
  ASSERT_TRUE(pod.end);
  EXPECT_EQ(pod.end->exit_code, 3);
}

TEST(ObservePod, BlamesTheMainContainerBeforeOthers) {
  const job::PodView pod = Observe(kNode, R"({"phase":"Failed","containerStatuses":[
                {"name":"sidecar","state":{"terminated":{"exitCode":2,"reason":"Error"}}},
                {"name":"tensorflow","state":{"terminated":{"exitCode":137,"reason":"OOMKilled",
                 "startedAt":"2024-05-01T09:59:00Z","finishedAt":"2024-05-01T10:00:00Z"}}}]})");
  ASSERT_TRUE(pod.end);
  EXPECT_EQ(
      *pod.end,
      (job::ContainerEnd{
          .container = "", .exit_code = 137, .reason = "OOMKilled", .at = kTen, .ran = absl::Minutes(1)}));
}

TEST(ObservePod, SeesAFailureForGoodThoughOtherContainersGoOn) {
  constexpr std::string_view kStatus = R"({"phase":"Running","containerStatuses":[
                {"name":"tensorflow","state":{"terminated":{"exitCode":3}}},
                {"name":"sidecar","state":{"running":{}}}]})";
  EXPECT_TRUE(Observe(R"({"nodeName":"n","restartPolicy":"Never"})", kStatus).main_failed);
  EXPECT_FALSE(Observe(R"({"nodeName":"n","restartPolicy":"OnFailure"})", kStatus).main_failed)
      << "it is started again";
}

TEST(ObservePod, HasEndedWhenItsContainersHaveThoughTheKubeletHasNotSaidSo) {
  const auto phase = [](std::string_view policy, int code, std::string_view metadata = "") {
    return Observe(StrCat(R"({"nodeName":"n","restartPolicy":")", policy, "\"}"),
                   StrCat(R"({"phase":"Running","containerStatuses":[
                {"name":"tensorflow","state":{"terminated":{"exitCode":)",
                          code, R"(}}},
                {"name":"sidecar","state":{"terminated":{"exitCode":0}}}]})"),
                   metadata)
        .phase;
  };
  EXPECT_EQ(phase("Never", 0), job::Phase::kSucceeded);
  EXPECT_EQ(phase("OnFailure", 0), job::Phase::kSucceeded);
  EXPECT_EQ(phase("Never", 3), job::Phase::kFailed);
  EXPECT_EQ(phase("OnFailure", 3), job::Phase::kRunning) << "it is started again";
  EXPECT_EQ(phase("Always", 0), job::Phase::kRunning) << "likewise";
  EXPECT_EQ(phase("Never", 0, R"(,"deletionTimestamp":"2024-05-01T10:00:30Z")"), job::Phase::kRunning)
      << "an end that it was told to come to is no success";
}

TEST(ObservePod, DoesNotBelieveANumberThatIsNotOurs) {
  for (const std::string_view number : {"2147483647", "-1", "x", "99999999999", "1000001"}) {
    const std::string annotations = StrCat(R"(,"annotations":{"trainyard.dev/attempt":")", number, "\"}");
    EXPECT_EQ(Observe(kNode, "{}", annotations).attempt, 0) << number;
  }
}

TEST(ObservePod, NamesAnotherContainerThatFailed) {
  const job::PodView pod = Observe(kNode, R"({"phase":"Failed","containerStatuses":[
                {"name":"tensorflow","state":{"terminated":{"exitCode":0}}},
                {"name":"sidecar","state":{"terminated":{"exitCode":2,"reason":"Error"}}}]})");
  ASSERT_TRUE(pod.end);
  EXPECT_EQ(pod.end->container, "sidecar");
  EXPECT_TRUE(pod.main_succeeded);
}

TEST(ObservePod, DoesNotTakeAnEndForSuccessThatCameAfterItWasToldToGo) {
  constexpr std::string_view kLeaving =
      R"(,"deletionTimestamp":"2024-05-01T10:00:30Z","deletionGracePeriodSeconds":30)";
  const auto ended = [&](std::string_view at) {
    return Observe(
               kNode,
               R"({"phase":"Succeeded","containerStatuses":[{"name":"tensorflow","state":{"terminated":{"exitCode":0,"finishedAt":")" +
                   std::string(at) + R"("}}}]})",
               kLeaving)
        .main_succeeded;
  };
  EXPECT_TRUE(ended("2024-05-01T09:59:59Z"));
  EXPECT_FALSE(ended("2024-05-01T10:00:00Z"));
  EXPECT_FALSE(ended("2024-05-01T10:00:05Z"));
}

TEST(ObservePod, HasWhatTheProgramSaidOfItsEnd) {
  const job::PodView pod = Observe(
      kNode,
      R"({"phase":"Failed","containerStatuses":[{"name":"tensorflow","state":{"terminated":{"exitCode":3,"reason":"Error","message":"no data in /x\nmore"}}}]})");
  ASSERT_TRUE(pod.end.has_value());
  EXPECT_EQ(pod.end->message, "no data in /x");
}

TEST(ObservePod, KnowsWhenItShouldBeGone) {
  const job::PodView pod =
      Observe(kNode, "{}", R"(,"deletionTimestamp":"2024-05-01T10:00:30Z","deletionGracePeriodSeconds":30)");
  EXPECT_EQ(pod.deletion, (job::Deletion{.asked = kTen, .due = kTen + absl::Seconds(30)}));
}

TEST(ObservePod, SaysWhyAPodDoesNotRunYet) {
  EXPECT_EQ(Observe("{}", R"({"phase":"Pending"})").waits, "not scheduled yet");
  EXPECT_EQ(
      Observe(
          "{}",
          R"({"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable"}]})")
          .waits,
      "Unschedulable");
  EXPECT_EQ(
      Observe(
          "{}",
          R"({"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable",
                        "message":"0/3 nodes are available: 3 Insufficient cpu."}]})")
          .waits,
      "0/3 nodes are available: 3 Insufficient cpu.");
  EXPECT_EQ(
      Observe(
          kNode,
          R"({"phase":"Pending","containerStatuses":[{"name":"tensorflow","state":{"waiting":{"reason":"ImagePullBackOff"}}}]})")
          .waits,
      "ImagePullBackOff");
  EXPECT_EQ(Observe(kNode,
                    R"({"phase":"Pending","initContainerStatuses":[{"name":"wait","state":{"running":{}}}]})")
                .waits,
            "init container wait");
}

TEST(ObservePod, SeesADisruption) {
  EXPECT_TRUE(
      Observe(kNode, R"({"phase":"Failed","conditions":[{"type":"DisruptionTarget","status":"True"}]})")
          .disrupted);
  EXPECT_EQ(Observe(kNode, R"({"phase":"Failed","reason":"Evicted"})").reason, "Evicted");
}

TEST(ObservePod, OfAnAiTrainingJobWorksWithAllContainersThatCount) {
  const auto observe = [](std::string_view statuses, std::string_view phase = "Running") {
    return Observe(R"({"nodeName":"node-2","restartPolicy":"Never"})",
                   StrCat(R"({"phase":")", phase, R"(","containerStatuses":[)", statuses, "]}"), "",
                   AiJobKind());
  };
  constexpr std::string_view kRuns = R"({"name":"aitj-a","state":{"running":{}}})";
  constexpr std::string_view kWaits =
      R"({"name":"aitj-b","state":{"waiting":{"reason":"ContainerCreating"}}})";
  constexpr std::string_view kDone = R"({"name":"aitj-b","state":{"terminated":{"exitCode":0}}})";
  constexpr std::string_view kSideRuns = R"({"name":"side","state":{"running":{}}})";
  constexpr std::string_view kSideFailed = R"({"name":"side","state":{"terminated":{"exitCode":1}}})";
  EXPECT_TRUE(observe(StrCat(kRuns, ",", kDone)).main_runs);
  EXPECT_FALSE(observe(StrCat(kRuns, ",", kWaits)).main_runs);
  EXPECT_FALSE(observe(StrCat(kRuns, ",", kDone)).main_succeeded);
  EXPECT_TRUE(observe(StrCat(kDone, ",", kSideRuns)).main_succeeded);
  EXPECT_FALSE(observe(StrCat(kRuns, ",", kSideFailed)).main_failed);
}

TEST(ObservePod, BlamesTheFirstOfSeveralContainersThatFailed) {
  const job::PodView pod = Observe(
      kNode,
      R"({"phase":"Failed","containerStatuses":[)"
      R"({"name":"aitj-a","state":{"terminated":{"exitCode":143,"finishedAt":"2024-05-01T10:00:05Z"}}},)"
      R"({"name":"aitj-b","state":{"terminated":{"exitCode":7,"finishedAt":"2024-05-01T10:00:00Z"}}},)"
      R"({"name":"side","state":{"terminated":{"exitCode":9,"finishedAt":"2024-05-01T09:00:00Z"}}}]})",
      "", AiJobKind());
  ASSERT_TRUE(pod.end);
  EXPECT_EQ(pod.end->exit_code, 7);
}

TEST(ObservePod, SeesContainersThatCannotBeMade) {
  const auto error = [](std::string_view waiting) {
    return Observe(kNode,
                   StrCat(R"({"phase":"Pending","containerStatuses":[{"name":"aitj-a","state":{"waiting":)",
                          waiting, "}}]}"),
                   "", AiJobKind())
        .creation_error;
  };
  EXPECT_EQ(error(R"({"reason":"ErrImagePull","message":"no such image"})"), "ErrImagePull: no such image");
  EXPECT_EQ(error(R"({"reason":"InvalidImageName"})"), "InvalidImageName");
  EXPECT_EQ(error(R"({"reason":"ContainerCreating"})"), "");
  EXPECT_EQ(error(R"({"reason":"CrashLoopBackOff"})"), "");
}

TEST(AcceleratorSigns, AreConditionsATaintOrALackOnTheNode) {
  const auto node = [](std::string_view conditions, std::string_view taints) {
    return kube::ParseNode(StrCat(R"({"metadata":{"name":"n"},"spec":{"taints":[)", taints,
                                  R"(]},"status":{"allocatable":{"nvidia.com/gpu":"3"},"conditions":[)",
                                  conditions, "]}}"))
        .value();
  };
  const reconcile::AcceleratorSigns signs;
  EXPECT_EQ(signs.FindMark(node("", "")), "");
  EXPECT_EQ(signs.FindMark(node(R"({"type":"GPUFailed","status":"True"})", "")), "condition GPUFailed");
  EXPECT_EQ(signs.FindMark(node(R"({"type":"GPUFailed","status":"False"})", "")), "");
  EXPECT_EQ(signs.FindMark(node("", R"({"key":"trainyard.dev/gpu-failed","effect":"NoSchedule"})")),
            "taint trainyard.dev/gpu-failed");
  EXPECT_EQ(reconcile::FindLack(node("", ""), "nvidia.com/gpu", 3000), "");
  EXPECT_EQ(reconcile::FindLack(node("", ""), "nvidia.com/gpu", 4000), "3 of nvidia.com/gpu are left for 4");
}

TEST(ObserveNode, IsReadyOrNotSinceThen) {
  const auto node = kube::ParseNode(
      R"({"metadata":{"name":"n"},"status":{"conditions":[{"type":"Ready","status":"Unknown","lastTransitionTime":"2024-05-01T10:00:00Z"}]}})");
  const reconcile::NodeSight sight = reconcile::ObserveNode(*node);
  EXPECT_EQ(sight.health, job::NodeHealth::kNotReady);
  EXPECT_EQ(sight.since, kTen);
}

TEST(PodGroupName, DiffersBetweenKindsAndFitsIntoALabel) {
  EXPECT_EQ(reconcile::PodGroupName("TFJob", "mnist"), "mnist-tfjob");
  EXPECT_EQ(reconcile::PodGroupName("AITrainingJob", "mnist"), "mnist-aitrainingjob");
  const std::string longest(59, 'x');
  const std::string name = reconcile::PodGroupName("AITrainingJob", longest);
  EXPECT_EQ(name.size(), 63U);
  EXPECT_NE(name, reconcile::PodGroupName("PyTorchJob", longest));
  EXPECT_NE(name, reconcile::PodGroupName("AITrainingJob", longest.substr(1)));
}

}  // namespace
}  // namespace trainyard::ops
