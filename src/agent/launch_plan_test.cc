#include "agent/launch_plan.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::agent {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;

LaunchPlan Plan(const Options& options, const ScriptConfig& config) {
  return PlanLaunch(options, config, {});
}

TEST(PlanLaunch, RunsAPythonFileByThePythonThatThereIs) {
  const LaunchPlan plan = Plan({}, {});
  EXPECT_THAT(plan.programs, ElementsAre("python3", "python"));
  EXPECT_THAT(plan.args, ElementsAre("exec.py"));
  EXPECT_EQ(plan.script, "exec.py");
  EXPECT_THAT(Plan({.python = "/opt/python"}, {}).programs, ElementsAre("/opt/python"));
}

TEST(PlanLaunch, RunsAnyOtherFileItself) {
  EXPECT_THAT(Plan({.script = "train.sh"}, {}).programs, ElementsAre("./train.sh"));
  EXPECT_THAT(Plan({.script = "/opt/train"}, {}).programs, ElementsAre("/opt/train"));
  EXPECT_THAT(Plan({.script = "train.sh"}, {}).args, ElementsAre());
}

TEST(PlanLaunch, PrefersWhatWasConfigured) {
  const LaunchPlan plan =
      Plan({.script = "train.sh", .working_dir = "/a"}, {.command = {"sh", "-c", "x"}, .working_dir = "/b"});
  EXPECT_THAT(plan.programs, ElementsAre("sh"));
  EXPECT_THAT(plan.args, ElementsAre("-c", "x"));
  EXPECT_EQ(plan.script, "");
  EXPECT_EQ(plan.working_dir, "/b");
  EXPECT_EQ(Plan({.working_dir = "/a"}, {}).working_dir, "/a");
}

TEST(PlanLaunch, HandsOnTheEnvironmentWithoutWhatIsTheAgents) {
  const LaunchPlan plan =
      PlanLaunch({}, {.env = {{"B", "2"}, {"C", "3"}}},
                 {"A=1=1", "B=1", "TRAINYARD_AGENT_TOKEN=x", "TRAINYARD_AGENT_X=", "junk"});
  EXPECT_THAT(plan.env, ElementsAre("A=1=1", "B=2", "C=3", "PYTHONUNBUFFERED=1"));
  EXPECT_THAT(PlanLaunch({}, {}, {"PYTHONUNBUFFERED="}).env, Contains("PYTHONUNBUFFERED="));
}

}  // namespace
}  // namespace trainyard::agent
