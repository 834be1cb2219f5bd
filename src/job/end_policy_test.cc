#include "job/end_policy.h"

#include "gtest/gtest.h"
#include "job/job_testing.h"

namespace trainyard::job {
namespace {

struct Row {
  EndPolicy policy;
  std::string_view completed;
  std::string_view who;  // empty: nobody has succeeded yet
};

TEST(FindSuccess, FollowsThePolicyOfARole) {
  const Row rows[] = {
      {EndPolicy::kAny, "", ""},      {EndPolicy::kAny, "2", "a worker"},
      {EndPolicy::kRank0, "1-2", ""}, {EndPolicy::kRank0, "0", "worker-0"},
      {EndPolicy::kAll, "0-1", ""},   {EndPolicy::kAll, "0-2", "all 3 of worker"},
      {EndPolicy::kNone, "0-2", ""},
  };
  for (const Row& row : rows) {
    const JobSpec spec{.roles = {Role("Worker", 3, RestartPolicy::kNever, row.policy)}};
    JobStatus status;
    status.roles["Worker"].completed = IndexSet::Parse(row.completed).value();
    EXPECT_EQ(FindSuccess(spec, status).value_or(""), row.who) << row.completed;
  }
}

TEST(FindSuccess, WaitsForEveryRoleThatDecides) {
  const JobSpec spec{.roles = {Role("Chief", 1, RestartPolicy::kNever, EndPolicy::kAll),
                               Role("Worker", 2, RestartPolicy::kNever, EndPolicy::kAll),
                               Role("PS", 1, RestartPolicy::kNever, EndPolicy::kNone)}};
  JobStatus status;
  status.roles["Worker"].completed = IndexSet::Parse("0-1").value();
  EXPECT_EQ(FindSuccess(spec, status), std::nullopt);
  status.roles["Chief"].completed = IndexSet::Parse("0").value();
  EXPECT_EQ(FindSuccess(spec, status), "chief-0 and all 2 of worker");
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
