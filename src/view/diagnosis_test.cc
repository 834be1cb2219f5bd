#include "view/diagnosis.h"

#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "view/parse.h"
#include "view/reader.h"

namespace trainyard::view {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

const absl::Time kNow = absl::FromUnixSeconds(1'000'000);

Document TfJob(std::string_view conditions, std::string_view more = "") {
  return *ParseJson(
      StrCat(R"({"apiVersion":"kubeflow.org/v1alpha2","kind":"TFJob","metadata":{"name":"mnist",)"
             R"("namespace":"default","uid":"u1","creationTimestamp":"1970-01-12T13:46:00Z"},)"
             R"("spec":{"tfReplicaSpecs":{"Worker":{"replicas":2,"template":{"spec":{"containers":)"
             R"([{"name":"tensorflow","image":"tf:1"}]}}}}},"status":{"conditions":[)",
             conditions, "]", more, "}}"));
}

kube::CompactPod Pod(std::string_view name, std::string_view index, std::string_view status,
                     std::string_view spec = "{}") {
  return *kube::ParsePod(
      StrCat(R"({"metadata":{"name":")", name, R"(","namespace":"default","uid":"uid-)", name,
             R"(","creationTimestamp":"1970-01-12T13:46:10Z","labels":{"tf_job_name":"mnist",)"
             R"("tf-replica-type":"worker","tf-replica-index":")",
             index, R"("}},"spec":)", spec, R"(,"status":)", status, "}"));
}

JobPage Page(Document job, const std::vector<kube::CompactPod>& pods = {}) {
  JobPage page{.job = ParseJob(Kind::kTfJob, std::move(job))};
  page.members = PutInPlace(Kind::kTfJob, pods).members;
  return page;
}

constexpr std::string_view kRunning =
    R"({"type":"Created","status":"False"},{"type":"Running","status":"True","reason":"TFJobRunning",)"
    R"("message":"all 2 pods run","lastTransitionTime":"1970-01-12T13:46:20Z"})";

TEST(ParseJob, ReadsTheConditionThatHolds) {
  const Job job = ParseJob(
      Kind::kTfJob,
      TfJob(kRunning,
            R"(,"ready":"2/2","restartCount":3,"restarts":{"worker":{"count":3,"lastCause":"it died",)"
            R"("lastTime":"1970-01-12T13:46:30Z"}})"));
  EXPECT_EQ(job.Id(), "tfjob/mnist");
  EXPECT_EQ(job.shown, "Running");
  EXPECT_EQ(job.ready, 2);
  EXPECT_EQ(job.wanted, 2);
  EXPECT_EQ(job.restarts, 3);
  EXPECT_EQ(job.last_cause, "it died");
  EXPECT_FALSE(job.over);
}

TEST(ParseJob, BearsWhatIsNoJob) {
  for (const Kind kind : kKinds) {
    EXPECT_EQ(ParseJob(kind, Document()).name, "");
    EXPECT_EQ(ParseJob(kind, *ParseJson(R"({"status":7,"data":{"spec":"{"}})")).ready, 0);
  }
}

// An elastic job in this phase, whose master reports this.
Job ElasticJob(std::string_view phase, std::string_view progress) {
  return ParseJob(Kind::kElastic,
                  *ParseJson(StrCat(
                      R"({"metadata":{"name":"m","namespace":"d"},"status":{"phase":")", phase,
                      R"(","conditions":[{"type":")", phase, R"(","status":"True"}],"ready":"3/4",)",
                      R"("restartTotal":1,"restarts":{"worker":{"count":1}},"progress":)", progress, "}}")));
}

TEST(ParseJob, ShowsWhatTheMasterOfAnElasticJobReports) {
  const Job job = ElasticJob("Running", R"({"phase":"Training","epoch":1,"epochs":4,"loss":0.5,)"
                                        R"("metrics":{"accuracy":0.9}})");
  EXPECT_EQ(job.Id(), "elastic/m");
  EXPECT_EQ(job.shown, "Training");
  EXPECT_EQ(job.ready, 3);
  EXPECT_EQ(job.wanted, 4);
  EXPECT_EQ(job.restarts, 1);
  EXPECT_THAT(job.progress, testing::Contains(testing::Pair("accuracy", "0.9000")));
  EXPECT_EQ(ElasticJob("Restarting", R"({"phase":"Training"})").shown, "Restarting");
  EXPECT_EQ(ElasticJob("Creating", R"({"phase":"Training","waiting":"room"})").message, "room");
}

TEST(IsOf, FindsTheEventsOfAJobAndItsPodsByUidWhateverTheyAreCalled) {
  JobPage page = Page(TfJob(kRunning), {Pod("mnist-worker-0", "0", R"({"phase":"Running"})")});
  page.history.push_back({.pod = "mnist-worker-1", .uid = "uid-gone"});
  const auto event = [](std::string_view kind, std::string_view name, std::string_view uid) {
    return ParseEvent(*ParseJson(StrCat(R"({"involvedObject":{"kind":")", kind, R"(","name":")", name,
                                        R"(","uid":")", uid, R"("}})")));
  };
  EXPECT_TRUE(IsOf(event("TFJob", "mnist", "u1"), page));
  EXPECT_TRUE(IsOf(event("Pod", "mnist-worker-0", "uid-mnist-worker-0"), page));
  EXPECT_TRUE(IsOf(event("Pod", "mnist-worker-1", "uid-gone"), page));
  EXPECT_FALSE(IsOf(event("TFJob", "mnist", "u0"), page)) << "one of the same name before it";
  EXPECT_FALSE(IsOf(event("Pod", "mnist-worker-0", "other"), page)) << "a pod of another job";
}

TEST(ParseJob, EndsAnElasticJobAsTheOperatorSays) {
  EXPECT_EQ(ElasticJob("Succeed", R"({"phase":"Complete"})").shown, "Complete");
  EXPECT_TRUE(ElasticJob("Succeed", R"({"phase":"Complete"})").succeeded);
  const Job failed = ElasticJob("Failed", R"({"phase":"Failed","reason":"records [0, 8) failed"})");
  EXPECT_EQ(failed.shown, "Failed");
  EXPECT_TRUE(failed.over);
  EXPECT_EQ(failed.message, "records [0, 8) failed");
  EXPECT_FALSE(ElasticJob("Restarting", R"({"phase":"Failed"})").over);
}

TEST(PutInPlace, TakesTheNewestPodOfAPlaceInTheOrderOfNumbers) {
  std::vector<kube::CompactPod> pods = {Pod("a", "10", R"({"phase":"Running"})"),
                                        Pod("b", "2", R"({"phase":"Failed"})"),
                                        Pod("c", "2", R"({"phase":"Running"})")};
  pods[2].meta.created += absl::Seconds(5);
  const Places places = PutInPlace(Kind::kTfJob, pods);
  ASSERT_THAT(places.members, SizeIs(2));
  EXPECT_EQ(places.members[0].name, "worker-2");
  EXPECT_EQ(places.members[0].pod, "c");
  EXPECT_EQ(places.members[1].name, "worker-10");
  ASSERT_THAT(places.followed, SizeIs(1));
  EXPECT_EQ(places.followed[0].pod, "b");
}

TEST(Diagnose, SaysThatNobodyHasLookedAtAJob) {
  JobPage page = Page(TfJob(""));
  page.job.created = kNow - absl::Seconds(1);
  EXPECT_THAT(Diagnose(page, kNow).sentence, HasSubstr("nobody has looked at it yet"));
  EXPECT_EQ(Diagnose(page, kNow).next, "") << "it may come in a moment";
  page.job.created = kNow - absl::Seconds(30);
  EXPECT_THAT(Diagnose(page, kNow).next, HasSubstr("trainyard operator"));
}

TEST(Diagnose, HasNothingToSayOfAJobThatRuns) {
  const JobPage page = Page(TfJob(kRunning), {Pod("a", "0", R"({"phase":"Running"})")});
  const Diagnosis diagnosis = Diagnose(page, kNow);
  EXPECT_THAT(diagnosis.sentence, HasSubstr("tfjob/mnist is Running"));
  EXPECT_THAT(diagnosis.waits, IsEmpty());
  EXPECT_EQ(diagnosis.next, "");
}

TEST(Diagnose, CountsMembersThatHaveNoPodJustNow) {
  const JobPage page = Page(TfJob(kRunning, R"(,"ready":"1/3")"), {Pod("a", "0", R"({"phase":"Running"})")});
  EXPECT_THAT(Diagnose(page, kNow).sentence, HasSubstr("1 of 3 members runs"));
}

TEST(Diagnose, CountsMembersAsTheListOfJobsDoes) {
  const std::vector<kube::CompactPod> three = {Pod("a", "0", R"({"phase":"Running"})"),
                                               Pod("b", "1", R"({"phase":"Running"})"),
                                               Pod("c", "2", R"({"phase":"Running"})")};
  EXPECT_THAT(Diagnose(Page(TfJob(kRunning, R"(,"ready":"1/2")"), three), kNow).sentence,
              HasSubstr("1 of 2 members runs"));
  EXPECT_THAT(
      Diagnose(Page(TfJob(kRunning, R"(,"ready":"2/2")"),
                    {Pod("a", "0", R"({"phase":"Running"})"), Pod("b", "1", R"({"phase":"Succeeded"})")}),
               kNow)
          .sentence,
      HasSubstr("all 2 members run or have completed"));
}

TEST(Diagnose, NamesWhoFindsNoNodeAndWhyNot) {
  const kube::CompactPod waiting = Pod(
      "w", "0",
      R"({"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable",)"
      R"("message":"0/2 nodes are available"}]})",
      R"({"nodeSelector":{"disk":"ssd"},"containers":[{"name":"c","resources":{"requests":{"cpu":"3"}}}]})");
  JobPage page = Page(TfJob(kRunning), {waiting});
  const auto node = [](std::string_view name, std::string_view labels, std::string_view more) {
    return *kube::ParseNode(StrCat(R"({"metadata":{"name":")", name, R"(","labels":)", labels,
                                   R"(},"spec":{)", more,
                                   R"(},"status":{"allocatable":{"cpu":"4"},"conditions":[{"type":"Ready",)"
                                   R"("status":"True"}]}})"));
  };
  const kube::CompactPod taker = *kube::ParsePod(
      R"({"metadata":{"name":"t"},"spec":{"nodeName":"full","containers":[{"name":"c","resources":)"
      R"({"requests":{"cpu":"2500m"}}}]},"status":{"phase":"Running"}})");
  page.why_nodes = ExplainNodes(
      waiting,
      {node("full", R"({"disk":"ssd"})", ""), node("hdd", "{}", ""),
       node("away", R"({"disk":"ssd"})", R"("unschedulable":true)"), node("free", R"({"disk":"ssd"})", "")},
      {taker});
  std::vector<std::string> texts;
  for (const NodeRefusal& refusal : page.why_nodes) texts.push_back(refusal.text);
  EXPECT_THAT(texts, ElementsAre("full has 1.50 of 4 cpu free, and it asks for 3",
                                 "hdd has not the label disk=ssd that the pod asks for",
                                 "away is cordoned: it takes no new pods", "free has room for it now"));
  const Diagnosis diagnosis = Diagnose(page, kNow);
  ASSERT_THAT(diagnosis.waits, SizeIs(5));
  EXPECT_THAT(diagnosis.waits[0], HasSubstr("worker-0 (pod w) waits since"));
  EXPECT_THAT(diagnosis.waits[0], HasSubstr("0/2 nodes are available"));
  EXPECT_THAT(diagnosis.next, HasSubstr("ask for less"));
  page.why_nodes = ExplainNodes(waiting, {node("hdd", "{}", "")}, {});
  EXPECT_THAT(Diagnose(page, kNow).next, HasSubstr("kubectl label node")) << "more room would not help";
}

TEST(Diagnose, SaysOnceWhatAGangWaitsFor) {
  constexpr std::string_view kGang = "gang of 3 needs 3 cpu; 2 are free";
  std::vector<kube::CompactPod> pods;
  for (const std::string_view index : {"0", "1", "2"}) {
    pods.push_back(
        Pod(StrCat("w", index), index,
            StrCat(R"({"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","reason":)",
                   R"("Unschedulable","message":")", kGang, R"("}]})"),
            R"({"schedulingGates":[{"name":"trainyard.dev/gang"}]})"));
  }
  JobPage gated = Page(TfJob(kRunning), pods);
  ASSERT_THAT(Diagnose(gated, kNow).waits, SizeIs(1));
  EXPECT_THAT(Diagnose(gated, kNow).waits[0], HasSubstr("worker-0 and 2 more members wait"));
  EXPECT_THAT(Diagnose(gated, kNow).next, HasSubstr("give the cluster room"));
  for (Member& member : gated.members) member.why = kGang;
  EXPECT_THAT(Diagnose(gated, kNow).waits[0], HasSubstr(StrCat("to start together: ", kGang)));
}

TEST(Diagnose, ShowsWhyPodsAreRefusedBeforeAJobHasAState) {
  const JobPage page = Page(TfJob(R"({"type":"Created","status":"False","reason":"FailedCreate",)"
                                  R"("message":"0 of 2 pods exist; exceeded quota: small"})"));
  EXPECT_EQ(page.job.shown, "Creating");
  const Diagnosis diagnosis = Diagnose(page, kNow);
  EXPECT_THAT(diagnosis.sentence, HasSubstr("exceeded quota: small"));
  EXPECT_THAT(diagnosis.next, HasSubstr("change the quota"));
}

TEST(Diagnose, SaysWhatIsWrongWithAnEditOfARunningJob) {
  const JobPage page = Page(TfJob(StrCat(
      kRunning,
      R"(,{"type":"SpecInvalid","status":"True","reason":"InvalidSpec","message":"spec.x: is odd"})")));
  EXPECT_EQ(page.job.shown, "Running");
  EXPECT_THAT(Diagnose(page, kNow).sentence, HasSubstr("Its spec is not valid: spec.x: is odd."));
  EXPECT_THAT(Diagnose(page, kNow).next, HasSubstr("kubectl edit tfjob/mnist"));
}

TEST(Diagnose, NamesTheMemberThatFailedFirst) {
  constexpr std::string_view failed =
      R"({"type":"Failed","status":"True","reason":"TFJobFailed","message":"a worker failed"})";
  const auto ended = [](std::string_view name, std::string_view index, int code, std::string_view at) {
    return Pod(name, index,
               StrCat(R"({"phase":"Failed","containerStatuses":[{"name":"tensorflow","state":{"terminated":)",
                      R"({"exitCode":)", code, R"(,"finishedAt":")", at, R"("}}}]})"));
  };
  const JobPage page = Page(TfJob(failed), {ended("a", "0", 1, "1970-01-12T13:46:25Z"),
                                            ended("b", "1", 3, "1970-01-12T13:46:20Z")});
  EXPECT_THAT(Diagnose(page, kNow).next, HasSubstr("--member worker-1"));
}

TEST(Diagnose, NamesTheMemberThatTheJobSaysHasEndedIt) {
  constexpr std::string_view failed =
      R"({"type":"Failed","status":"True","reason":"TFJobFailed","message":"worker-1 exited 3 on node-0; not restarted"})";
  JobPage page = Page(TfJob(failed));
  page.history = {{.pod = "a", .member = "worker-1", .exit_code = 3, .ended = kNow - absl::Seconds(9)},
                  {.pod = "b", .member = "worker-0", .exit_code = 1, .ended = kNow}};
  EXPECT_THAT(Diagnose(page, kNow).next, HasSubstr("--member worker-1 --previous"))
      << "the other failed because of it";
  page.job.message = "worker-1 was lost with node-2; not restarted: restartPolicy is Never";
  EXPECT_THAT(Diagnose(page, kNow).next, HasSubstr("kubectl describe node node-2`"));
}

TEST(Diagnose, NamesTheMemberThatAJobInBackOffWaitsFor) {
  const JobPage page = Page(
      TfJob(
          R"({"type":"Restarting","status":"True","reason":"R","message":"worker-0 exited 137; restart 2"})"),
      {Pod("a", "0",
           R"({"phase":"Failed","containerStatuses":[{"name":"tensorflow","state":{"terminated":)"
           R"({"exitCode":137}}}]})")});
  EXPECT_THAT(Diagnose(page, kNow).next, HasSubstr("--member worker-0"));
}

TEST(PrintWhy, SaysNothingTwice) {
  JobPage page = Page(
      TfJob(R"({"type":"Restarting","status":"True","reason":"R","message":"worker-0 exited 1; restart 2"})",
            R"(,"restarts":{"Worker":{"lastCause":"worker-0 exited 1","lastTime":"1970-01-12T13:46:30Z"}})"));
  EXPECT_THAT(PrintWhy(page, kNow, {}), Not(HasSubstr("last restarted because")));
  page.history = {
      {.pod = "w", .member = "worker-0", .node = "node-2", .cause = "exited 1 on node-2", .exit_code = 1}};
  EXPECT_THAT(PrintWhy(page, kNow, {}), HasSubstr("worker-0: exited 1 on node-2\n"));
  page.history = {{.pod = "w", .member = "worker-0", .node = "node-2", .cause = "was lost with node-2"}};
  EXPECT_THAT(PrintWhy(page, kNow, {}), HasSubstr("worker-0: was lost with node-2\n"));
}

TEST(Diagnose, SaysWhatToCreateForAMemberThatRefersToWhatIsNotThere) {
  const JobPage page =
      Page(TfJob(kRunning),
           {Pod("a", "0",
                R"({"phase":"Pending","containerStatuses":[{"name":"tensorflow","state":{"waiting":)"
                R"({"reason":"CreateContainerConfigError","message":"configmap \"c\" not found"}}}]})")});
  EXPECT_THAT(Diagnose(page, kNow).next, HasSubstr("create what worker-0 refers to"));
  EXPECT_THAT(Diagnose(page, kNow).next, HasSubstr("configmap \"c\" not found"));
}

TEST(Diagnose, AdvisesByHowAMemberEnded) {
  constexpr std::string_view failed =
      R"({"type":"Failed","status":"True","reason":"TFJobFailed","message":"worker-0 failed"})";
  JobPage page = Page(TfJob(failed));
  page.history = {{.pod = "w", .member = "worker-0", .cause = "exited 1", .exit_code = 1}};
  EXPECT_THAT(Diagnose(page, kNow).next,
              HasSubstr("trainyard logs tfjob/mnist --member worker-0 --previous"));
  page.history.push_back({.pod = "v", .member = "worker-1", .exit_code = 143, .signal = 15});
  EXPECT_THAT(Diagnose(page, kNow).next, HasSubstr("worker-0")) << "the other was only told to go";
  page.history.pop_back();
  page.history[0].reason = "OOMKilled";
  EXPECT_THAT(Diagnose(page, kNow).next, HasSubstr("resources.limits.memory"));
  page.history[0] = {.pod = "w", .member = "worker-0", .exit_code = 127};
  EXPECT_THAT(Diagnose(page, kNow).next, HasSubstr("was not found in its image"));
  EXPECT_THAT(Diagnose(page, kNow).sentence, HasSubstr("has ended: Failed"));
}

TEST(PrintWhy, ShowsTheLastLinesOfTheNewestFirst) {
  JobPage page = Page(TfJob(kRunning));
  for (int i = 0; i < 3; ++i) {
    page.history.push_back({.pod = StrCat("w-", i),
                            .uid = StrCat(i),
                            .member = "worker-1",
                            .node = "node-0",
                            .cause = StrCat("cause ", i),
                            .exit_code = 7,
                            .ended = kNow - absl::Seconds(30 - i),
                            .log = "one\ntwo\nthree\n"});
  }
  const std::string why = PrintWhy(page, kNow, {.lines = 2, .restarts = 2});
  EXPECT_THAT(why, HasSubstr("(2 of 3)"));
  EXPECT_THAT(why,
              HasSubstr("28s ago  worker-1 on node-0 (exit code 7): cause 2\n      | two\n      | three\n"));
  EXPECT_THAT(why, Not(HasSubstr("cause 0")));
  EXPECT_THAT(why, Not(HasSubstr("| one")));
  EXPECT_LT(why.find("cause 2"), why.find("cause 1"));
  EXPECT_EQ(ArrayAt(WhyToJson(page, kNow), {"history"})->size(), 3);
}

TEST(ParseKind, KnowsEveryName) {
  EXPECT_EQ(ParseKind("TFJobs"), Kind::kTfJob);
  EXPECT_EQ(ParseKind("aitj"), Kind::kAiTrainingJob);
  EXPECT_EQ(ParseKind("elastic"), Kind::kElastic);
  EXPECT_EQ(ParseKind("tasks"), Kind::kTask);
  EXPECT_EQ(ParseKind("pod"), std::nullopt);
}

TEST(ParseJob, ShowsWhatTheLauncherReportsOfATaskUntilTheOperatorEndsIt) {
  const auto parse = [](std::string_view phase, std::string_view more) {
    const std::string text =
        StrCat(R"({"metadata":{"name":"t","labels":{"trainyard.dev/launch-task":"t"}},"status":{"phase":")",
               phase, R"(","conditions":[{"type":")", phase, R"(","status":"True"}],)", more, "}}");
    return ParseJob(Kind::kTask, ParseJson(text).value());
  };
  const Job begun = parse("Running", R"("ready":"2/2")");
  EXPECT_EQ(begun.shown, "Pending") << "its pods run, and its scripts do not";
  constexpr std::string_view kProgress =
      R"("progress":{"phase":"Restarting","reason":"waits for worker-1","restarts":1,"running":1,)"
      R"("history":[{"member":"worker-1","cause":"exited 3"}])";
  const Job again = parse("Running", StrCat(R"("ready":"2/2",)", kProgress, "}"));
  EXPECT_EQ(again.shown, "Restarting");
  EXPECT_EQ(again.message, "waits for worker-1");
  EXPECT_EQ(again.ready, 1);
  EXPECT_EQ(again.wanted, 2);
  EXPECT_EQ(again.restarts, 1);
  EXPECT_EQ(again.last_cause, "worker-1 exited 3");
  EXPECT_FALSE(again.over);
  const Job timeout = parse("Timeout", StrCat(kProgress, "}"));
  EXPECT_EQ(timeout.shown, "Timeout");
  EXPECT_TRUE(timeout.over);
  const Job cancelled = parse("Failed", R"("progress":{"phase":"Cancelled","ended":"2024-05-01T10:00:00Z"})");
  EXPECT_EQ(cancelled.shown, "Cancelled");
  EXPECT_TRUE(cancelled.over);
  EXPECT_FALSE(cancelled.succeeded);
}

}  // namespace
}  // namespace trainyard::view
