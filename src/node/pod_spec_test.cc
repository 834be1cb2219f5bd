#include "node/pod_spec.h"

#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "node/plan_testing.h"

namespace trainyard::node {
namespace {

TEST(PodSpec, HasKubernetesDefaults) {
  const PodSpec spec =
      PlannedPod(R"({"containers":[{"name":"m","livenessProbe":{"httpGet":{"port":"web"}}}]})").spec_;
  EXPECT_EQ(spec.restart_policy, RestartPolicy::kAlways);
  EXPECT_EQ(spec.grace, absl::Seconds(30));
  EXPECT_TRUE(spec.service_links);
  const ProbeSpec& probe = *spec.containers[0].liveness;
  EXPECT_EQ(probe.period, absl::Seconds(10));
  EXPECT_EQ(probe.timeout, absl::Seconds(1));
  EXPECT_EQ(probe.failure_threshold, 3);
  EXPECT_EQ(std::get<HttpAction>(probe.action).path, "/");
  EXPECT_EQ(std::get<HttpAction>(probe.action).port, "web");
  EXPECT_EQ(spec.containers[0].termination_path, "/dev/termination-log");
}

TEST(PodSpec, NamesItsHostWithinWhatAHostNameMayBe) {
  PodSpec spec = PlannedPod(R"({"hostname":"h","subdomain":"s","containers":[{"name":"m"}]})").spec_;
  EXPECT_EQ(spec.Hostname(), "h");
  EXPECT_EQ(spec.Fqdn(), "h.s.ns.svc.cluster.local");
  spec.hostname = std::string(62, 'a') + "-bcd";
  EXPECT_EQ(spec.Hostname(), std::string(62, 'a')) << "cut, and not at a dash";
}

TEST(PodSpec, IsRefusedWithoutANameOrContainers) {
  EXPECT_THAT(Message(ParsePodSpec(Object{}).status()), testing::HasSubstr("has no name"));
  const auto pod = ParseJson(R"({"metadata":{"name":"p","uid":"u"},"spec":{}})");
  EXPECT_THAT(Message(ParsePodSpec(*pod).status()), testing::HasSubstr("'default/p' has no containers"));
}

TEST(PodSpec, FindsTheQosClass) {
  const auto qos = [](std::string_view a, std::string_view b) {
    return PrintQos(FindQos(PlannedPod(StrCat(R"({"containers":[{"name":"a","resources":)", a,
                                              R"(},{"name":"b","resources":)", b, "}]}"))
                                .spec_));
  };
  constexpr std::string_view kFull = R"({"limits":{"cpu":"1","memory":"1Gi"}})";
  EXPECT_EQ(qos("{}", "{}"), "BestEffort");
  EXPECT_EQ(qos(kFull, kFull), "Guaranteed") << "requests default to limits";
  EXPECT_EQ(
      qos(kFull, R"({"limits":{"cpu":"1","memory":"1Gi"},"requests":{"cpu":"1000m","memory":"1024Mi"}})"),
      "Guaranteed");
  EXPECT_EQ(qos(kFull, R"({"limits":{"cpu":"1","memory":"1Gi"},"requests":{"cpu":"500m"}})"), "Burstable");
  EXPECT_EQ(qos(kFull, "{}"), "Burstable");
  EXPECT_EQ(qos(R"({"requests":{"cpu":"1m"}})", "{}"), "Burstable");
  EXPECT_EQ(qos(R"({"requests":{"nvidia.com/gpu":1}})", "{}"), "BestEffort");
}

TEST(PodStatus, ComesBackAsItWasWritten) {
  PlannedPod pod(R"({"initContainers":[{"name":"i"}],"containers":[{"name":"a","image":"x"},{"name":"b"}]})");
  pod.Plan();
  NoteSandboxReady(pod.record_);
  pod.Plan();
  pod.Started("i");
  pod.Exited("i", 0);
  pod.RunAll();
  for (int i = 0; i < 3; ++i) {
    pod.Killed("b", 9, true);
    pod.RunAll();
  }
  const Document object = Object{{"status", ToDocument(pod.status())}};
  EXPECT_EQ(ParsePodStatus(object), pod.status());
  EXPECT_EQ(StringAt(object, {"status", "podIP"}), "127.64.0.1");
  const Document& b = ArrayAt(object, {"status", "containerStatuses"})->at(1);
  EXPECT_EQ(StringAt(b, {"lastState", "terminated", "reason"}), "OOMKilled");
}

TEST(ServiceAccounts, AreGivenToPodsThatAskForOne) {
  const auto parse = [](std::string_view rest) {
    return ParsePodSpec(
               ParseJson(StrCat(R"({"metadata":{"name":"a","uid":"u"},"spec":{"containers":[{"name":"c",)",
                                R"("volumeMounts":[]},{"name":"d","volumeMounts":[{"name":"own",)",
                                R"("mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}]}])", rest,
                                "}}"))
                   .value())
        .value();
  };
  EXPECT_FALSE(parse("").mount_token);
  EXPECT_FALSE(parse(R"(,"serviceAccountName":"default")").mount_token);
  EXPECT_FALSE(parse(R"(,"serviceAccountName":"robot","automountServiceAccountToken":false)").mount_token);
  EXPECT_TRUE(parse(R"(,"automountServiceAccountToken":true)").mount_token);
  const PodSpec spec = parse(R"(,"serviceAccountName":"robot")");
  ASSERT_TRUE(spec.mount_token);
  ASSERT_EQ(spec.volumes.size(), 1u);
  EXPECT_EQ(spec.volumes[0].sources.size(), 3u) << "token, authority and namespace";
  ASSERT_EQ(spec.containers[0].mounts.size(), 1u);
  EXPECT_EQ(spec.containers[0].mounts[0].path, kServiceAccountFolder);
  EXPECT_EQ(spec.containers[1].mounts.size(), 1u) << "what a container mounts there itself stays";
  EXPECT_EQ(spec.containers[1].mounts[0].volume, "own");
}

TEST(RunIds, AreReadBackAlsoWithDotsInThem) {
  EXPECT_EQ(RunId("main", 3), "main.3");
  const auto run = ParseRunId("a.b.12");
  ASSERT_TRUE(run);
  EXPECT_EQ(run->container, "a.b");
  EXPECT_EQ(run->attempt, 12);
  for (const char* wrong : {"", "main", ".3", "main.", "main.x", "main.-1"})
    EXPECT_FALSE(ParseRunId(wrong)) << wrong;
}

TEST(TakeOverStatus, KnowsWhatTheStateFileForgot) {
  PlannedPod before(R"({"containers":[{"name":"ran"},{"name":"runs"},{"name":"ended"}]})");
  before.RunAll();
  before.Exited("ended", 4);
  before.RunAll();
  before.Exited("ended", 5);
  before.Plan();
  PlannedPod after(R"({"containers":[{"name":"ran"},{"name":"runs"},{"name":"ended"}]})");
  after.status_ = before.status();
  after.record_.containers[1].state = RunState::kRunning;
  after.record_.containers[1].run.attempt = 0;
  TakeOverStatus(after.record_, after.spec_, after.status_, after.now_);
  EXPECT_EQ(after.container("ran").state, RunState::kEnded) << "it ran, and nobody has it any more";
  EXPECT_EQ(after.container("ran").run.end->reason, "ContainerStatusUnknown");
  EXPECT_EQ(after.container("runs").state, RunState::kRunning);
  EXPECT_EQ(after.container("ended").run.end->code, 5);
  EXPECT_EQ(after.container("ended").run.attempt, 1);
  EXPECT_EQ(after.record_.start_time, before.record_.start_time);
}

}  // namespace
}  // namespace trainyard::node
