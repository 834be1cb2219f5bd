#include "launch/plan.h"

#include <functional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launch/task.h"

namespace trainyard::launch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

const absl::Time kNow = absl::FromUnixSeconds(1000000);

// A task, its pods and its agents, played to its end by the plans themselves. The operator is played too: it
// replaces pods that have ended, and ends the job.
class World {
 public:
  explicit World(TaskSpec spec) {
    view.spec = std::move(spec);
    view.spec.name = "t";
    view.created = kNow;
    view.status = NewProgress(view.spec, kNow);
    view.job = {.taken_up = true, .workers = view.spec.MostWorkers()};
    EXPECT_TRUE(Validate(view.spec).ok()) << Validate(view.spec);
  }

  TaskView view;
  absl::Time now = kNow;
  std::map<std::string, int> runs;  // "worker-0 2": how often that attempt was begun
  std::vector<std::string> said;    // what was done, since it was last looked at

  SeenMember& operator[](const std::string& member) { return view.members[*ParseMember(member)]; }
  const Progress& status() const { return view.status; }
  const job::MemberProgress& StatusOf(const std::string& member) {
    return view.status.members[*ParseMember(member)];
  }

  // Plans and does, until there is nothing more to do.
  void Settle() {
    for (int i = 0; i < 100; ++i) {
      KeepPods();
      const TaskPlan plan = PlanTask(view, now);
      EXPECT_TRUE(!plan.store || plan.actions.empty()) << "what must survive is stored before it is acted on";
      const bool changed = !(plan.status == view.status) || !plan.actions.empty();
      view.status = plan.status;
      wake_after = plan.wake_after;
      for (const Action& action : plan.actions) {
        said.push_back(Print(action));
        std::visit([&](const auto& one) { Do(one); }, action);
      }
      if (!changed) return;
    }
    FAIL() << "it does not come to rest: " << testing::PrintToString(said);
  }
  absl::Duration wake_after;

  void Exit(const std::string& member, int code) {
    SeenAgent& agent = *(*this)[member].agent;
    agent.state = AgentState::kExited;
    agent.exit_code = code;
    agent.reason = "exited " + std::to_string(code);
  }
  void KillPod(const std::string& member) {
    Change(member, [](kube::CompactPod& pod) {
      pod.phase = kube::PodPhase::kFailed;
      pod.containers.push_back(
          {.state = {.kind = kube::ContainerState::Kind::kTerminated, .exit_code = 137}});
    });
  }
  void DeletePod(const std::string& member) {
    Change(member, [this](kube::CompactPod& pod) { pod.meta.deletion_time = now; });
  }
  void Change(const std::string& member, const std::function<void(kube::CompactPod&)>& change) {
    auto pod = std::make_shared<kube::CompactPod>(*(*this)[member].pod);
    change(*pod);
    (*this)[member].pod = pod;
  }
  std::vector<std::string> Said() { return std::exchange(said, {}); }
  std::vector<std::string> no_room;  // for these pods
  bool keeps_pods = true;            // the operator does

 private:
  void KeepPods() {
    for (const MemberId& member : MembersOf(view.spec)) {
      SeenMember& seen = view.members[member];
      const bool wanted = member.role != Role::kWorker || member.index < view.job.workers;
      if (!wanted) seen = {};
      // One that has ended is replaced when the launcher has seen it.
      const bool past = seen.pod && (seen.pod->IsFinished() || seen.pod->IsBeingDeleted()) &&
                        view.status.members[member].pod != seen.pod->meta.uid;
      const bool room = seen.pod && seen.pod->phase == kube::PodPhase::kPending && !IsCrowded(member);
      if (keeps_pods && !view.job.over && wanted && (!seen.pod || past || room)) seen = NewMember(member);
    }
  }
  bool IsCrowded(const MemberId& member) const {
    return std::ranges::find(no_room, Print(member)) != no_room.end();
  }
  SeenMember NewMember(const MemberId& member) {
    auto pod = std::make_shared<kube::CompactPod>();
    pod->meta.uid = Print(member) + "-" + std::to_string(++last_pod_);
    if (IsCrowded(member)) {
      pod->scheduled.status = kube::ConditionStatus::kFalse;
      pod->unscheduled = kube::SharedText("0/1 nodes are available");
      return {.pod = pod};
    }
    pod->pod_ip = "10.0.0." + std::to_string(last_pod_);
    pod->node = kube::SharedText("node-1");
    pod->phase = kube::PodPhase::kRunning;
    return {.pod = pod, .agent = SeenAgent()};
  }
  void Do(const Configure& configure) {
    SeenAgent& agent = *view.members[configure.member].agent;
    EXPECT_GT(configure.attempt, agent.attempt);
    EXPECT_NE(agent.state, AgentState::kRunning);
    agent = {.state = AgentState::kConfigured, .attempt = configure.attempt};
    envs[Print(configure.member)] = configure.env;
  }
  void Do(const Run& run) {
    SeenAgent& agent = *view.members[run.member].agent;
    EXPECT_EQ(agent.attempt, run.attempt);
    if (agent.state == AgentState::kConfigured) ++runs[Print(run.member) + " " + std::to_string(run.attempt)];
    agent.state = AgentState::kRunning;
  }
  void Do(const Stop& stop) {
    SeenAgent& agent = *view.members[stop.member].agent;
    agent.state = AgentState::kExited;
    agent.exit_code = std::nullopt;
    agent.reason = "was stopped";
  }
  void Do(const End& end) {
    Change(Print(end.member), [](kube::CompactPod& pod) { pod.phase = kube::PodPhase::kSucceeded; });
    if (end.succeeded) view.job.ends = view.job.over = view.job.succeeded = true;
  }
  void Do(const Replace& replace) { DeletePod(Print(replace.member)); }
  void Do(const Resize& resize) { view.job.workers = resize.workers; }
  void Do(const Fail&) { view.job.asked = view.job.ends = view.job.over = true; }

  int last_pod_ = 0;

 public:
  std::map<std::string, std::map<std::string, std::string>> envs;
};

TEST(PlanTask, ConfiguresAndRunsAllWorkers) {
  World world({.workers = 2});
  world.Settle();
  EXPECT_THAT(world.Said(), ElementsAre("configure worker-0 (1)", "configure worker-1 (1)",
                                        "run worker-0 (1)", "run worker-1 (1)"));
  EXPECT_EQ(world.status().phase, Phase::kRunning);
  world.Exit("worker-0", 0);
  world.Settle();
  EXPECT_EQ(world.status().phase, Phase::kRunning) << "one is not all";
  world.Exit("worker-1", 0);
  world.Settle();
  EXPECT_EQ(world.status().phase, Phase::kSucceeded);
  EXPECT_THAT(world.Said(), UnorderedElementsAre("end worker-0", "end worker-1"));
}

TEST(PlanTask, RunsParameterServersBeforeTheOthers) {
  World world({.strategy = Strategy::kParameterServer, .workers = 1, .ps = 2});
  world.Settle();
  const std::vector<std::string> said = world.Said();
  const auto place = [&](const std::string& what) { return std::ranges::find(said, what) - said.begin(); };
  EXPECT_LT(place("run ps-0 (1)"), place("run worker-0 (1)"));
  EXPECT_LT(place("run ps-1 (1)"), place("run worker-0 (1)"));
  EXPECT_EQ(world.envs["worker-0"]["TF_CONFIG"],
            R"({"cluster":{"worker":["t-worker-0:2222"],"ps":["t-ps-0:2222","t-ps-1:2222"]},)"
            R"("task":{"type":"worker","index":0}})");
}

TEST(PlanTask, StartsAllAgainWhenOneOfAllReduceFails) {
  World world({.workers = 3});
  world.Settle();
  world.Said();
  world.Exit("worker-1", 3);
  world.Settle();
  EXPECT_THAT(world.Said(), UnorderedElementsAre("stop worker-0", "stop worker-2", "configure worker-0 (2)",
                                                 "configure worker-1 (2)", "configure worker-2 (2)",
                                                 "run worker-0 (2)", "run worker-1 (2)", "run worker-2 (2)"));
  EXPECT_EQ(world.status().restarts, 1);
  ASSERT_EQ(world.status().history.size(), 1);
  EXPECT_EQ(world.status().history[0].member, "worker-1");
  EXPECT_EQ(world.status().history[0].cause, "exited 3");
  for (const auto& [run, count] : world.runs) EXPECT_EQ(count, 1) << run;
}

TEST(PlanTask, NamesTheScriptThatFailedFirstAsTheCause) {
  World world({.workers = 2});
  world.Settle();
  world.Exit("worker-0", 1);
  world["worker-0"].agent->ended = world.now;
  world.Settle();
  EXPECT_EQ(world.status().restarts, 0) << "somebody else may have been first";
  EXPECT_LE(world.wake_after, kGather);
  world.Exit("worker-1", 137);
  world["worker-1"].agent->ended = world.now - absl::Milliseconds(1);
  world.now += kGather;
  world.Settle();
  EXPECT_EQ(world.status().restarts, 1);
  EXPECT_EQ(world.status().history[0].member, "worker-1");
  EXPECT_EQ(world.status().history[0].cause, "exited 137 (and 1 more)");
}

TEST(PlanTask, StartsAllAgainInThePodThatReplacesALostOne) {
  World world({.workers = 2});
  world.Settle();
  world.Said();
  world.KillPod("worker-0");
  world.Settle();
  EXPECT_EQ(world.runs["worker-0 2"], 1);
  EXPECT_EQ(world.StatusOf("worker-0").pod, "worker-0-3");
  EXPECT_EQ(world.StatusOf("worker-0").lost, "worker-0-1");
  EXPECT_EQ(world.status().phase, Phase::kRunning);
  EXPECT_THAT(world.status().history[0].cause, HasSubstr("signal 9"));
  EXPECT_THAT(world.envs["worker-1"]["TF_CONFIG"], HasSubstr("10.0.0.3")) << "with the address that is new";
}

TEST(PlanTask, LetsAWorkerOfParameterServersComeBackAlone) {
  World world({.strategy = Strategy::kParameterServer, .workers = 2, .ps = 1});
  world.Settle();
  world.Said();
  world.Exit("worker-1", 1);
  world.Settle();
  EXPECT_THAT(world.Said(), ElementsAre("configure worker-1 (2)", "run worker-1 (2)"));
  world.KillPod("worker-1");
  world.Settle();
  EXPECT_THAT(world.Said(), ElementsAre("configure worker-1 (3)", "run worker-1 (3)"));
  EXPECT_EQ(world.status().restarts, 2);
  // A parameter server takes all with it, however it ended, in an attempt that nobody was in.
  world.Exit("ps-0", 0);
  world.Settle();
  EXPECT_THAT(world.Said(), testing::Contains("run worker-0 (4)"));
}

TEST(PlanTask, StartsAllAgainWhenAParameterServerIsLost) {
  World world({.strategy = Strategy::kParameterServer, .workers = 1, .ps = 1});
  world.Settle();
  world.Said();
  world.Exit("worker-0", 1);
  world.Settle();
  world.KillPod("ps-0");
  world.Settle();
  EXPECT_EQ(world.status().attempt, 3) << "one that nobody was in";
  EXPECT_THAT(world.Said(), testing::Contains("run worker-0 (3)"));
  for (const auto& [run, count] : world.runs) EXPECT_EQ(count, 1) << run;
}

TEST(PlanTask, GivesNoMemberAnAttemptOfItsOwnBeforeAllAreInTheNextOne) {
  World world({.strategy = Strategy::kParameterServer, .workers = 1, .ps = 1});
  world.Settle();
  world.keeps_pods = false;
  world.KillPod("ps-0");
  world.Settle();
  EXPECT_EQ(world.status().attempt, 2);
  world.KillPod("worker-0");
  world.Settle();
  EXPECT_EQ(world.StatusOf("worker-0").attempt, 1);
  world.keeps_pods = true;
  world.Said();
  world.Settle();
  EXPECT_THAT(world.Said(), testing::Contains("run worker-0 (2)"));
}

TEST(PlanTask, EndsWithTheChiefWhereThereIsOne) {
  World world(
      {.strategy = Strategy::kParameterServer, .workers = 1, .ps = 1, .chief = true, .evaluator = true});
  world.Settle();
  world.Exit("chief-0", 0);
  world.Settle();
  EXPECT_EQ(world.status().phase, Phase::kSucceeded) << "the others only serve";
}

TEST(PlanTask, FailsWithTheLastCauseAfterSoManyRestarts) {
  World world({.workers = 1, .max_restarts = 2});
  world.Settle();
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(IsOver(world.status().phase));
    world.Exit("worker-0", 7);
    world.Settle();
  }
  EXPECT_EQ(world.status().phase, Phase::kFailed);
  EXPECT_EQ(world.status().reason, "worker-0 exited 7, after 2 restarts");
  EXPECT_EQ(world.status().restarts, 2);
  EXPECT_THAT(world.Said(), testing::Contains("fail: worker-0 exited 7, after 2 restarts"));
}

TEST(PlanTask, FailsAtOnceWhenAScriptCanNeverRun) {
  World world({.workers = 2});
  world.Settle();
  SeenAgent& agent = *world["worker-1"].agent;
  agent.state = AgentState::kFailed;
  agent.reason = "exec.py is not in /app";
  world.Settle();
  EXPECT_EQ(world.status().phase, Phase::kFailed);
  EXPECT_EQ(world.status().reason, "worker-1: exec.py is not in /app");
  EXPECT_EQ(world.status().restarts, 0);
}

TEST(PlanTask, DoesNotCallAnAgentDeadThatDoesNotAnswer) {
  World world({.workers = 2});
  world.Settle();
  world["worker-0"].agent->silent_since = world.now;
  world.now += absl::Seconds(59);
  world.Settle();
  EXPECT_EQ(world.status().phase, Phase::kRunning);
  EXPECT_EQ(world.status().reason, "the agent of worker-0 does not answer");
  EXPECT_EQ(world.wake_after, absl::Seconds(1));
  world.Said();
  world.now += absl::Seconds(1);
  world.Settle();
  EXPECT_EQ(world.status().restarts, 1);
  EXPECT_EQ(world.status().history[0].cause, "its agent has not answered for 1m");
  EXPECT_THAT(world.Said(), testing::Contains("replace worker-0"));
}

TEST(PlanTask, GoesOnWithFewerWhereThereIsNoRoom) {
  World world({.workers = 3, .min_workers = 2, .max_workers = 4});
  world.no_room = {"worker-1", "worker-3"};
  world.Settle();
  EXPECT_EQ(world.status().phase, Phase::kPending);
  EXPECT_THAT(world.status().reason, HasSubstr("waits for worker-1 and 1 more: 0/1 nodes are available"));
  world.now += kRoomPatience;
  world.Settle();
  EXPECT_EQ(world.status().phase, Phase::kRunning);
  EXPECT_EQ(world.envs["worker-2"]["RANK"], "1");
  EXPECT_EQ(world.envs["worker-2"]["WORLD_SIZE"], "2");
  EXPECT_THAT(world.Said(), testing::Contains("resize to 3 workers"));
  // When it begins anew there is room for all.
  world.no_room.clear();
  world.Exit("worker-0", 1);
  world.Settle();
  EXPECT_EQ(world.envs["worker-3"]["WORLD_SIZE"], "4");
}

TEST(PlanTask, DoesNotWaitForMoreThanWereAskedFor) {
  World world({.workers = 2, .max_workers = 3});
  world.no_room = {"worker-2"};
  world.Settle();
  EXPECT_EQ(world.status().phase, Phase::kRunning);
}

TEST(PlanTask, WaitsForAllWhereAllAreNeeded) {
  World world({.workers = 2});
  world.no_room = {"worker-1"};
  world.Settle();
  world.now += absl::Hours(1);
  world.Settle();
  EXPECT_EQ(world.status().phase, Phase::kPending);
  EXPECT_THAT(world.runs, IsEmpty());
}

TEST(PlanTask, StopsWhatRunsWhenItIsCancelled) {
  World world({.workers = 2});
  world.Settle();
  world.Said();
  world.view.cancel = true;
  world.Settle();
  EXPECT_EQ(world.status().phase, Phase::kCancelled);
  EXPECT_THAT(world.Said(), UnorderedElementsAre("stop worker-0", "stop worker-1", "fail: it was cancelled",
                                                 "end worker-0", "end worker-1"));
}

TEST(PlanTask, SucceedsThoughOthersEndAMomentLater) {
  World world({.strategy = Strategy::kParameterServer, .workers = 1, .ps = 1});
  world.Settle();
  world.Exit("worker-0", 0);
  world.Exit("ps-0", 1);
  world.Settle();
  EXPECT_EQ(world.status().phase, Phase::kSucceeded);
  EXPECT_EQ(world.status().restarts, 0);
}

TEST(PlanTask, DoesNotMissAMemberThatIsDone) {
  World world({.workers = 2});
  world.Settle();
  world.Exit("worker-0", 0);
  world.Settle();
  world["worker-0"] = {};  // its pod is deleted, and the operator replaces it
  world.Settle();
  EXPECT_EQ(world.status().restarts, 0);
  EXPECT_EQ(world.runs["worker-0 1"], 1);
  world.Exit("worker-1", 0);
  world.Settle();
  EXPECT_EQ(world.status().phase, Phase::kSucceeded);
}

TEST(PlanTask, LosesAMemberWhoseAgentNeverAnswers) {
  World world({.workers = 1});
  world.Settle();
  world["worker-0"].agent.reset();  // as a launcher finds it that has just begun
  world["worker-0"].asked_since = world.now;
  world.Settle();
  EXPECT_EQ(world.status().restarts, 0);
  world.now += absl::Minutes(1);
  world.Settle();
  EXPECT_EQ(world.status().restarts, 1);
  EXPECT_EQ(world.runs["worker-0 2"], 1);
}

TEST(PlanTask, LetsOneComeBackThoughAnotherFindsNoRoom) {
  World world({.strategy = Strategy::kParameterServer, .workers = 2, .ps = 1});
  world.Settle();
  world.no_room = {"worker-1"};
  world.KillPod("worker-0");
  world.KillPod("worker-1");
  world.Settle();
  EXPECT_EQ(world.runs["worker-0 2"], 1);
  EXPECT_EQ(world.runs["worker-1 2"], 0);
}

TEST(PlanTask, KeepsPodsWithTheirLogsUntilTheirAgentsAnswer) {
  World world({.workers = 1});
  world.Settle();
  world.Exit("worker-0", 0);
  const SeenAgent agent = *world["worker-0"].agent;
  world.view.status.phase = Phase::kSucceeded;  // as a launcher finds it that has just begun
  world.view.status.ended = world.now;
  world.keeps_pods = false;
  world["worker-0"].agent.reset();
  world.Said();
  world.Settle();
  EXPECT_THAT(world.Said(), IsEmpty());
  world["worker-0"].agent = agent;
  world.Settle();
  EXPECT_THAT(world.Said(), ElementsAre("end worker-0"));
}

TEST(PlanTask, TakesAPodThatWasDeletedForALoss) {
  World world({.workers = 1});
  world.Settle();
  world.keeps_pods = false;
  world["worker-0"] = {};
  world.Settle();
  EXPECT_EQ(world.status().history[0].cause, "its pod was deleted");
  EXPECT_THAT(world.status().reason, HasSubstr("waits for worker-0"));
  world.keeps_pods = true;
  world.Settle();
  EXPECT_EQ(world.runs["worker-0 2"], 1);
}

TEST(PlanTask, TakesANewPodOfTheSameNameForALoss) {
  World world({.workers = 1});
  world.Settle();
  world["worker-0"] = {};  // and it has another before anybody looks
  world.Settle();
  EXPECT_EQ(world.status().restarts, 1);
  EXPECT_EQ(world.runs["worker-0 1"], 1);
  EXPECT_EQ(world.runs["worker-0 2"], 1);
}

TEST(PlanTask, TellsALostNodeFromADeletedPod) {
  World world({.workers = 2});
  world.Settle();
  world.DeletePod("worker-0");
  world.Settle();
  EXPECT_EQ(world.status().history.back().cause, "was deleted");
  world["worker-1"].agent->silent_since = world.now;
  world.now += absl::Seconds(5);
  world.DeletePod("worker-1");
  world.Settle();
  EXPECT_EQ(world.status().history.back().cause, "was lost with node-1");
  EXPECT_EQ(world.status().restarts, 2);
}

TEST(PlanTask, DoesNotCountAPodThatGoesBeforeItHasAnythingToRun) {
  World world({.workers = 2, .max_restarts = 0});
  world.no_room = {"worker-1"};
  world.Settle();
  world.no_room.clear();
  world.DeletePod("worker-1");
  world.Settle();
  EXPECT_EQ(world.status().phase, Phase::kRunning);
  EXPECT_EQ(world.status().restarts, 0);
}

TEST(PlanTask, DoesNotCountTwiceThatAMemberWhichWasDoneLostItsPod) {
  World world({.workers = 2});
  world.Settle();
  world.Exit("worker-0", 0);
  world.Settle();
  world["worker-0"] = {};
  world.Settle();
  world.Exit("worker-1", 1);
  world.Settle();
  EXPECT_EQ(world.status().restarts, 1);
  EXPECT_EQ(world.runs["worker-0 2"], 1);
}

TEST(PlanTask, EndsAsTheOperatorEndsItsJob) {
  World world({.workers = 1});
  world.Settle();
  world.view.job.ends = true;
  world.view.job.message = "the job ran for longer than timeLimit: 10";
  world.Settle();
  EXPECT_EQ(world.status().phase, Phase::kFailed);
  EXPECT_EQ(world.status().reason, "the job ran for longer than timeLimit: 10");
}

TEST(PlanTask, SaysThatThereIsNoOperator) {
  World world({.workers = 1});
  world.keeps_pods = false;
  world.view.job.taken_up = false;
  world.Settle();
  EXPECT_EQ(world.wake_after, kOperatorPatience);
  world.now += kOperatorPatience;
  world.Settle();
  EXPECT_THAT(world.status().reason, HasSubstr("`kubectl apply -k deploy/` installs one"));
}

TEST(TaskJob, IsAGangUnlessItsSizeMayChange) {
  const auto made = [](TaskSpec spec) {
    spec.name = "t";
    return TaskJob("ns", spec, {});
  };
  const Document fixed = made({.workers = 2});
  EXPECT_TRUE(BoolAt(fixed, {"spec", "gang"}));
  EXPECT_FALSE(BoolAt(fixed, {"spec", "faultTolerant"}));
  EXPECT_EQ(IntAt(fixed, {"spec", "replicaSpecs", "worker", "replicas"}), 2);
  EXPECT_EQ(StringAt(fixed, {"metadata", "labels", kTaskLabel}), "t");
  const Document elastic = made({.workers = 2, .max_workers = 3});
  EXPECT_FALSE(BoolAt(elastic, {"spec", "gang"}));
  EXPECT_TRUE(BoolAt(elastic, {"spec", "faultTolerant"}));
  EXPECT_EQ(IntAt(elastic, {"spec", "replicaSpecs", "worker", "replicas"}), 3);
}

TEST(TaskJob, EndsWithTheRolesThatDecide) {
  TaskSpec spec{.name = "t", .strategy = Strategy::kParameterServer, .workers = 2, .ps = 1};
  const auto policy = [&](std::string_view role) {
    const Document job = TaskJob("ns", spec, {});
    return std::string(StringAt(job, {"spec", "replicaSpecs", role, "completePolicy"}));
  };
  EXPECT_EQ(policy("worker"), "All");
  EXPECT_EQ(policy("ps"), "None");
  spec.chief = true;
  EXPECT_EQ(policy("chief"), "All");
  EXPECT_EQ(policy("worker"), "None");
}

TEST(Progress, IsTheSameAfterItWasStored) {
  World world({.workers = 2});
  world.Settle();
  world.Exit("worker-1", 3);
  world.Settle();
  EXPECT_EQ(job::ParseProgress(job::Reporter::kLauncher, job::PrintProgress(world.status())), world.status());
  const auto spec = ParseTaskSpec(Print(world.view.spec));
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(*spec, world.view.spec);
}

TEST(Validate, SaysWhatCannotBe) {
  const auto said = [](TaskSpec spec) {
    if (spec.name.empty()) spec.name = "t";
    return std::string(Validate(spec).message());
  };
  EXPECT_THAT(said({.workers = 0}), HasSubstr("--worker-num must be at least 1"));
  EXPECT_THAT(said({.ps = 1}), HasSubstr("AllReduce has no parameter servers"));
  EXPECT_THAT(said({.strategy = Strategy::kParameterServer}), HasSubstr("give --ps-num"));
  EXPECT_THAT(said({.strategy = Strategy::kParameterServer, .workers = 2, .ps = 1, .min_workers = 1}),
              HasSubstr("are for AllReduce"));
  EXPECT_THAT(said({.workers = 2, .min_workers = 3}), HasSubstr("must be between"));
  EXPECT_THAT(said({.name = "No Name"}), HasSubstr("cannot be a task's name"));
  EXPECT_THAT(said({.cpu = "much"}), HasSubstr("is no amount"));
  EXPECT_THAT(said({.max_restarts = -1}), HasSubstr("--max-restarts"));
}

}  // namespace
}  // namespace trainyard::launch
