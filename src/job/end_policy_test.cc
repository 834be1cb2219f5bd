#include "job/end_policy.h"

#include "gtest/gtest.h"
#include "job/job_testing.h"

namespace trainyard::job {
namespace {

// Who of four has ended with 0, and who has failed for good; and what that is for their role.
struct EndPolicyRow {
  EndPolicy complete;
  EndPolicy fail;
  std::string_view completed;
  std::string_view given_up;
  Verdict verdict;
};

RoleStatus Ended(std::string_view completed, std::string_view given_up) {
  return {.completed = IndexSet::Parse(completed).value(), .given_up = IndexSet::Parse(given_up).value()};
}

RoleSpec RoleOf(std::string name, int replicas, EndPolicy complete, EndPolicy fail) {
  RoleSpec role = Role(std::move(name), replicas, RestartPolicy::kNever, complete);
  role.fail = fail;
  return role;
}

TEST(JudgeRole, FollowsTheTable) {
  using enum EndPolicy;
  const auto open = Verdict::kOpen;
  const auto good = Verdict::kSucceeded;
  const auto bad = Verdict::kFailed;
  const EndPolicyRow rows[] = {
      {kAny, kAny, "", "", open},
      {kAny, kAny, "2", "", good},
      {kRank0, kAny, "1-3", "", open},
      {kRank0, kAny, "0", "", good},
      {kAll, kAny, "0-2", "", open},
      {kAll, kAny, "0-3", "", good},
      {kNone, kAny, "0-3", "", open},
      // One that failed, and who minds.
      {kAll, kAny, "0-2", "3", bad},
      {kAll, kRank0, "0", "3", open},
      {kAll, kRank0, "", "0", bad},
      {kAll, kAll, "", "0-2", open},
      {kAll, kAll, "", "0-3", bad},
      {kAll, kNone, "", "0-2", open},
      {kNone, kAny, "", "1", bad},
      {kNone, kNone, "", "0-3", open},
      // Success comes before failure.
      {kAny, kAny, "0", "1", good},
      {kRank0, kAny, "0", "1", good},
      // A failure that nobody minds is as if the pod were not there.
      {kAll, kRank0, "0-2", "3", good},
      {kAll, kNone, "1", "0,2-3", good},
      {kAll, kAll, "1", "0,2-3", good},
      // What can no longer be reached is not waited for.
      {kAny, kNone, "", "0-3", bad},
      {kAll, kNone, "", "0-3", bad},
      {kRank0, kNone, "", "0", bad},
      {kRank0, kAll, "1-2", "0", bad},
  };
  for (const EndPolicyRow& row : rows) {
    EXPECT_EQ(JudgeRole(RoleOf("trainer", 4, row.complete, row.fail), Ended(row.completed, row.given_up)),
              row.verdict)
        << "complete " << Print(row.complete) << ", fail " << Print(row.fail) << ": " << row.completed
        << " ended with 0, " << row.given_up << " failed";
  }
}

// Two roles of two, and a third one that nobody waits for.
JobVerdict JudgeThree(EndPolicy complete, EndPolicy fail, const RoleStatus& trainer,
                      const RoleStatus& evaluator, const RoleStatus& server = {}) {
  using enum EndPolicy;
  const JobSpec spec{.roles = {RoleOf("trainer", 2, kAll, kAny), RoleOf("evaluator", 2, kAll, kAny),
                               RoleOf("server", 1, kNone, kAny)},
                     .complete = complete,
                     .fail = fail};
  JobStatus status;
  status.roles["trainer"] = trainer;
  status.roles["evaluator"] = evaluator;
  status.roles["server"] = server;
  return JudgeJob(spec, status);
}

TEST(JudgeJob, SucceedsAsItsRolesDo) {
  using enum EndPolicy;
  const RoleStatus none;
  const RoleStatus done = Ended("0-1", "");
  EXPECT_EQ(JudgeThree(kAll, kAny, done, none).verdict, Verdict::kOpen);
  EXPECT_EQ(JudgeThree(kAll, kAny, done, done).verdict, Verdict::kSucceeded);
  EXPECT_EQ(JudgeThree(kAll, kAny, done, done).why, "all 2 of trainer and all 2 of evaluator ended with 0");
  EXPECT_EQ(JudgeThree(kAny, kAny, none, done).verdict, Verdict::kSucceeded);
  EXPECT_EQ(JudgeThree(kAny, kAny, none, none).verdict, Verdict::kOpen);
  EXPECT_EQ(JudgeThree(kRank0, kAny, Ended("0", ""), Ended("1", "")).verdict, Verdict::kOpen);
  EXPECT_EQ(JudgeThree(kRank0, kAny, Ended("0", ""), Ended("0", "")).verdict, Verdict::kSucceeded);
  EXPECT_EQ(JudgeThree(kRank0, kAny, Ended("0", ""), Ended("0", "")).why,
            "trainer-0 and evaluator-0 ended with 0");
  EXPECT_EQ(JudgeThree(kNone, kAny, done, done).verdict, Verdict::kOpen) << "a server still runs";
  EXPECT_EQ(JudgeThree(kNone, kAny, done, done, Ended("0", "")).verdict, Verdict::kSucceeded);
}

TEST(JudgeJob, FailsAsItsRolesDo) {
  using enum EndPolicy;
  const RoleStatus none;
  const RoleStatus failed = Ended("", "1");
  EXPECT_EQ(JudgeThree(kAll, kAny, failed, none).verdict, Verdict::kFailed);
  EXPECT_EQ(JudgeThree(kAll, kAny, failed, none).why, "failPolicy of trainer is Any");
  EXPECT_EQ(JudgeThree(kAll, kAny, none, none, Ended("", "0")).verdict, Verdict::kFailed);
  EXPECT_EQ(JudgeThree(kAll, kAll, failed, none).verdict, Verdict::kOpen);
  EXPECT_EQ(JudgeThree(kAll, kAll, failed, failed).verdict, Verdict::kFailed) << "all that decide have";
  EXPECT_EQ(JudgeThree(kAll, kRank0, failed, none).verdict, Verdict::kOpen);
  EXPECT_EQ(JudgeThree(kAll, kRank0, Ended("", "0"), none).verdict, Verdict::kFailed);
  EXPECT_EQ(JudgeThree(kAll, kNone, failed, none).verdict, Verdict::kOpen);
}

TEST(JudgeJob, DoesNotWaitForWhatCannotDecideIt) {
  using enum EndPolicy;
  const RoleStatus done = Ended("0-1", "");
  const RoleStatus failed = Ended("", "0-1");
  // The servers run for ever, and a role that failed is one that nobody minds.
  EXPECT_EQ(JudgeThree(kAll, kAll, failed, done).verdict, Verdict::kSucceeded);
  EXPECT_EQ(JudgeThree(kAll, kNone, done, failed).verdict, Verdict::kSucceeded);
  EXPECT_EQ(JudgeThree(kAll, kNone, failed, failed).verdict, Verdict::kFailed);
  EXPECT_EQ(JudgeThree(kRank0, kNone, Ended("0", ""), Ended("", "0")).verdict, Verdict::kSucceeded);
  EXPECT_EQ(JudgeThree(kRank0, kNone, Ended("", "0"), Ended("", "0")).verdict, Verdict::kFailed);
}

TEST(JudgeJob, EndsWithItsLastPodIfNoRoleDecides) {
  using enum EndPolicy;
  const JobSpec spec{.roles = {RoleOf("trainer", 2, kNone, kNone)}};
  JobStatus status;
  status.roles["trainer"] = Ended("0", "");
  EXPECT_EQ(JudgeJob(spec, status).verdict, Verdict::kOpen);
  status.roles["trainer"] = Ended("0", "1");
  EXPECT_EQ(JudgeJob(spec, status).verdict, Verdict::kSucceeded);
  status.roles["trainer"] = Ended("", "0-1");
  EXPECT_EQ(JudgeJob(spec, status).verdict, Verdict::kFailed);
}

TEST(JudgeJob, KnowsWhetherANodeIsToBlame) {
  using enum EndPolicy;
  RoleStatus lost = Ended("", "1");
  lost.node_failed = true;
  EXPECT_TRUE(JudgeThree(kAll, kAny, lost, {}).node);
  EXPECT_FALSE(JudgeThree(kAll, kAny, Ended("", "1"), {}).node);
}

TEST(Decides, IsWhoeverIsWaitedFor) {
  const auto role = [](EndPolicy policy) { return Role("Worker", 2, RestartPolicy::kNever, policy); };
  EXPECT_TRUE(Decides(role(EndPolicy::kAll), 1));
  EXPECT_TRUE(Decides(role(EndPolicy::kAny), 1));
  EXPECT_TRUE(Decides(role(EndPolicy::kRank0), 0));
  EXPECT_FALSE(Decides(role(EndPolicy::kRank0), 1));
  EXPECT_FALSE(Decides(role(EndPolicy::kNone), 0));
}

}  // namespace
}  // namespace trainyard::job
