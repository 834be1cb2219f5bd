#include "job/status_document.h"

#include "gtest/gtest.h"
#include "job/telling.h"
#include "rapidcheck/gtest.h"

namespace trainyard::job {
namespace {

absl::Time RandomTime() { return absl::FromUnixSeconds(*rc::gen::inRange(0, 2'000'000'000)); }
std::optional<absl::Time> RandomTimeOrNone() {
  return *rc::gen::arbitrary<bool>() ? std::optional(RandomTime()) : std::nullopt;
}
std::string RandomText() { return *rc::gen::element<std::string>("", "R", "it was \"so\"", "ä\n"); }
int RandomCount() { return *rc::gen::inRange(0, 5); }
std::map<int, int> RandomAttempts() {
  std::map<int, int> attempts;
  for (int i = RandomCount(); i > 0; --i) attempts[*rc::gen::inRange(0, 20)] = RandomCount();
  return attempts;
}
IndexSet RandomIndexes() {
  IndexSet set;
  for (int i = RandomCount(); i > 0; --i) set.Insert(*rc::gen::inRange(0, 20));
  return set;
}

RoleStatus RandomRole(bool phases) {
  RoleStatus role{.active = RandomCount(),
                  .succeeded = RandomCount(),
                  .failed = RandomCount(),
                  .completed = RandomIndexes(),
                  .given_up = RandomIndexes()};
  if (*rc::gen::arbitrary<bool>()) role.size = RandomCount();
  if (*rc::gen::arbitrary<bool>()) {
    role.attempts = RandomAttempts();
    role.seen = RandomAttempts();
    role.restarts = *rc::gen::inRange(1, 1000);
    role.disruptions = RandomCount();
    role.last_cause = RandomText();
    role.last_time = RandomTimeOrNone();
  }
  if (!phases) return role;
  role.pending = RandomCount();
  role.scheduled = RandomCount();
  role.restarting = RandomCount();
  role.node_failed = *rc::gen::arbitrary<bool>();
  role.barrier = *rc::gen::element(RestartScope::kPod, RestartScope::kRole, RestartScope::kJob);
  for (const auto& [index, attempt] : RandomAttempts()) role.stuck[index] = RandomTime();
  return role;
}

void AddRandomPhaseFields(JobStatus& status) {
  status.run_time = RandomTimeOrNone();
  status.restarting_role = RandomText();
  status.members = {.epoch = *rc::gen::inRange(1, 9), .fingerprint = RandomText()};
  if (*rc::gen::arbitrary<bool>())
    status.ending = Ending{.state = State::kNodeFail, .reason = RandomText(), .message = RandomText()};
  if (*rc::gen::arbitrary<bool>()) status.progress = R"({"phase":"Training","epoch":2,"own":[1]})";
}

JobStatus RandomStatus(Telling telling) {
  JobStatus status{.observed_generation = RandomCount(),
                   .ready = RandomCount(),
                   .wanted = RandomCount(),
                   .start_time = RandomTimeOrNone(),
                   .completion_time = RandomTimeOrNone(),
                   .last_reconcile_time = RandomTimeOrNone(),
                   .gang_returns = RandomCount()};
  if (status.gang_returns > 0) status.gang_retry = RandomTimeOrNone();
  const bool phases = telling == Telling::kByPhase;
  for (const std::string name : {"PS", "Worker"}) {
    if (*rc::gen::arbitrary<bool>()) status.roles[name] = RandomRole(phases);
  }
  const std::vector<State> states = StatesOf(telling);
  for (int i = RandomCount(); i > 0; --i) {
    const State state = states[*rc::gen::inRange<std::size_t>(0, states.size())];
    // The reason of Created says whether that is all that there is to say.
    const bool is_true = *rc::gen::arbitrary<bool>();
    const std::string reason = state != State::kCreated ? RandomText() : is_true ? "JobCreated" : "Creating";
    status.Set(state, is_true, reason, RandomText(), RandomTime());
  }
  if (*rc::gen::arbitrary<bool>())
    status.spec_problem =
        SpecProblem{.message = RandomText(), .since = RandomTime(), .last_valid = RandomText()};
  if (phases) AddRandomPhaseFields(status);
  return status;
}

RC_GTEST_PROP(StatusDocument, IsReadAsItIsPrintedWhateverTheKind, ()) {
  StatusSpelling spelling = *rc::gen::element(kTfJobStatus, kPyTorchJobStatus, kAiTrainingJobStatus);
  const JobStatus status = RandomStatus(spelling.telling);
  if (spelling.created_stays) spelling.created_stays = *rc::gen::arbitrary<bool>();
  JobStatus expected = status;
  for (Condition& condition : expected.conditions) {
    // A job that was accepted and is in another state keeps that; one that is in none has no state.
    if (spelling.created_stays && condition.type == State::kCreated)
      condition.is_true = status.Is(State::kCreated) ||
                          (status.Current() == nullptr && condition.reason.ends_with("Created"));
  }
  const Document printed = PrintStatus(status, spelling);
  RC_ASSERT(ParseStatus(&printed, spelling) == expected);
}

JobStatus Parse(std::string_view json, const StatusSpelling& spelling) {
  const Document document = *ParseJson(json);
  return ParseStatus(&document, spelling);
}

TEST(StatusDocument, OfATFJobIsReadAsOperatorsHaveWrittenItSoFar) {
  const JobStatus status = Parse(
      R"({"observedGeneration":3,"ready":"2/4","restartCount":5,"startTime":"2024-05-01T10:00:00Z",)"
      R"("completionTime":"2024-05-01T11:00:00Z","tfReplicaStatuses":{"Worker":{"active":1,"succeeded":2,)"
      R"("failed":3,"completedIndexes":"0-1","failedIndexes":"3","size":4}},"restarts":{"Worker":{"count":5,)"
      R"("disruptions":1,"attempts":"0:1","lastCause":"worker-0 exited 1","lastTime":"2024-05-01T10:10:00Z"}},)"
      R"("gang":{"returns":2,"retryTime":"2024-05-01T10:20:00Z"},"lastValidSpec":"{}","conditions":[)"
      R"({"type":"SpecInvalid","status":"True","reason":"InvalidSpec","message":"odd"},)"
      R"({"type":"Created","status":"True","reason":"TFJobCreated","message":"all exist"},)"
      R"({"type":"Failed","status":"True","reason":"TFJobFailed","message":"m",)"
      R"("lastUpdateTime":"2024-05-01T11:00:00Z","lastTransitionTime":"2024-05-01T11:00:00Z"}]})",
      kTfJobStatus);
  EXPECT_EQ(status.ready, 2);
  EXPECT_EQ(status.wanted, 4);
  EXPECT_EQ(status.CountRestarts(), 5);
  EXPECT_EQ(status.roles.at("Worker").disruptions, 1);
  EXPECT_EQ(status.roles.at("Worker").AttemptOf(0), 1);
  EXPECT_EQ(status.roles.at("Worker").given_up.Print(), "3");
  EXPECT_EQ(status.gang_returns, 2);
  EXPECT_EQ(status.spec_problem->message, "odd");
  EXPECT_EQ(status.spec_problem->last_valid, "{}");
  EXPECT_TRUE(status.Is(State::kFailed));
  EXPECT_TRUE(status.IsFinished());
  EXPECT_EQ(*status.completion_time - *status.start_time, absl::Hours(1));
}

TEST(StatusDocument, OfAnAITrainingJobIsReadAsOperatorsHaveWrittenItSoFar) {
  const JobStatus status = Parse(
      R"({"phase":"Terminating","ready":"3/4","restartTotal":7,"conditions":[{"type":"Terminating",)"
      R"("status":"True","reason":"TrainingJobTerminating","message":"m","lastProbeTime":"2024-05-01T10:00:00Z",)"
      R"("lastTransitionTime":"2024-05-01T10:00:00Z"}],"replicaStatuses":{"trainer":{"active":3,"pending":1,)"
      R"("restartScope":"All","creationErrors":{"2":"2024-05-01T10:00:00Z"},"nodeFailed":true}},)"
      R"("RestartCount":{"trainer":7},"RestartReplicaName":"trainer","startRunningTime":"2024-05-01T10:00:00Z",)"
      R"("endTime":"2024-05-01T11:00:00Z","restarts":{"trainer":{"count":7}},)"
      R"("ending":{"phase":"Succeed","reason":"R","message":"done"},"members":{"epoch":4,"fingerprint":"f"},)"
      R"("progress":{"phase":"Complete","more":1}})",
      kAiTrainingJobStatus);
  EXPECT_TRUE(status.Is(State::kTerminating));
  EXPECT_EQ(status.CountRestarts(), 7);
  EXPECT_EQ(status.roles.at("trainer").barrier, RestartScope::kJob);
  EXPECT_EQ(status.roles.at("trainer").stuck.count(2), 1);
  EXPECT_EQ(status.ending->state, State::kSucceeded);
  EXPECT_EQ(status.members.epoch, 4);
  EXPECT_EQ(status.progress, R"({"phase":"Complete","more":1})");
  EXPECT_TRUE(status.run_time && status.completion_time);
}

}  // namespace
}  // namespace trainyard::job
