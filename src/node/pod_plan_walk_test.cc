// Random walks through the life of pods: whatever happens, in whatever order, what the plan promises holds.
#include <map>
#include <set>

#include "base/ids.h"
#include "gmock/gmock.h"
#include "node/plan_testing.h"
#include "node/pod_plan.h"
#include "node/pod_rules.h"

namespace trainyard::node {
namespace {

constexpr std::string_view kSpecs[] = {
    R"({"containers":[{"name":"a"}]})",
    R"({"restartPolicy":"Never","containers":[{"name":"a"},{"name":"b"}]})",
    R"({"restartPolicy":"OnFailure","initContainers":[{"name":"i"}],"containers":[{"name":"a"},{"name":"b"}]})",
    R"({"restartPolicy":"OnFailure","activeDeadlineSeconds":100,"containers":[{"name":"a",
        "lifecycle":{"postStart":{"exec":{"command":["x"]}},"preStop":{"exec":{"command":["x"]}}},
        "livenessProbe":{"exec":{"command":["x"]}},"readinessProbe":{"exec":{"command":["x"]}}}]})",
};

class Walk {
 public:
  Walk(std::uint64_t seed, std::string_view spec) : dice_(seed), pod_(spec) {}

  // One plan, its actions taken note of, then something that may happen.
  void Step() {
    const Phase before = pod_.status().phase;
    const bool was_terminal = pod_.status().terminal();
    for (const std::string& action : pod_.Plan()) Take(action);
    ASSERT_THAT(pod_.Plan(), testing::IsEmpty()) << "a plan repeated itself";
    if (was_terminal) {
      ASSERT_EQ(pod_.status().phase, before) << "a terminal phase was left";
    }
    ASSERT_FALSE(pod_.status().terminal() && AnyActive(pod_.record_) && before != pod_.status().phase)
        << "declared over while something runs";
    Happen();
  }

  // Deletes it and lets everything run its course.
  void End() {
    pod_.Delete(absl::Seconds(5));
    for (int i = 0; i < 100 && !finished_; ++i) {
      for (const std::string& action : pod_.Plan()) Take(action);
      for (const std::string& name : running_) pod_.Killed(name, SIGKILL);
      running_.clear();
      Finish(starting_);
      Sandbox(true);
      pod_.Advance(absl::Seconds(1));
    }
    EXPECT_TRUE(finished_) << "a deleted pod was never finished";
    EXPECT_FALSE(sandbox_) << "a shim was left behind";
  }

 private:
  void Take(const std::string& action) {
    SCOPED_TRACE(action);
    EXPECT_FALSE(finished_) << "after the end";
    if (action == "start sandbox") {
      EXPECT_FALSE(sandbox_) << "two shims";
      sandbox_starting_ = true;
    } else if (action == "stop sandbox") {
      EXPECT_TRUE(sandbox_);
      EXPECT_TRUE(running_.empty() && starting_.empty()) << "a shim stopped under its processes";
      sandbox_stopping_ = true;
    } else if (action == "finish") {
      EXPECT_TRUE(running_.empty() && starting_.empty());
      finished_ = true;
    } else if (action.starts_with("start ")) {
      const std::string name = action.substr(6, action.rfind('.') - 6);
      const int attempt = std::stoi(action.substr(action.rfind('.') + 1));
      EXPECT_TRUE(sandbox_);
      EXPECT_FALSE(pod_.spec_.deleting) << "started though deleted";
      EXPECT_TRUE(running_.count(name) == 0 && starting_.count(name) == 0) << "started twice";
      EXPECT_GT(attempt, attempts_.contains(name) ? attempts_[name] : -1) << "an attempt was used twice";
      attempts_[name] = attempt;
      starting_.insert(name);
    } else if (action.starts_with("signal ")) {
      EXPECT_TRUE(running_.count(action.substr(7, action.rfind('.') - 7)) == 1) << "a signal to nobody";
    } else if (action.starts_with("probe ") || action.starts_with("hook ")) {
      EXPECT_EQ(running_.count("a"), 1u);
    }
  }

  void Finish(std::set<std::string>& names) {
    for (const std::string& name : names) {
      pod_.Started(name);
      running_.insert(name);
    }
    names.clear();
  }

  void Sandbox(bool ok) {
    if (sandbox_starting_) {
      sandbox_starting_ = false;
      sandbox_ = ok;
      if (ok) {
        NoteSandboxReady(pod_.record_);
      } else {
        NoteSandboxFailed(pod_.record_, "no", pod_.now_);
      }
    }
    if (sandbox_stopping_) LoseSandbox();
  }

  void LoseSandbox() {
    sandbox_ = sandbox_stopping_ = false;
    running_.clear();
    starting_.clear();
    NoteSandboxGone(pod_.record_, pod_.now_, pod_.back_off.reset);
  }

  void Happen() {
    pod_.Advance(absl::Milliseconds(dice_.Below(4000)));
    switch (dice_.Below(8)) {
      case 0:
        return Sandbox(dice_.Below(5) != 0);
      case 1:
      case 2:
        return Finish(starting_);
      case 3:
        if (!running_.empty()) {
          const std::string name = *running_.begin();
          running_.erase(name);
          pod_.Exited(name, static_cast<int>(dice_.Below(2)));
        }
        return;
      case 4:
        if (!starting_.empty()) {
          const std::string name = *starting_.begin();
          starting_.erase(name);
          pod_.StartFailed(name, "no such program");
        }
        return;
      case 5:
        if (sandbox_ && dice_.Below(10) == 0) LoseSandbox();
        return;
      case 6:
        if (pod_.spec_.containers[0].liveness && running_.contains("a")) {
          pod_.Probed("a", ProbeKind::kLiveness, dice_.Below(3) != 0);
          pod_.Probed("a", ProbeKind::kReadiness, dice_.Below(2) != 0);
          NoteHook(pod_.container("a"), HookKind::kPostStart, dice_.Below(4) != 0);
          NoteHook(pod_.container("a"), HookKind::kPreStop, true);
        }
        return;
      default:
        return;
    }
  }

  IdSource dice_;
  PlannedPod pod_;
  std::set<std::string> starting_;
  std::set<std::string> running_;
  std::map<std::string, int> attempts_;
  bool sandbox_starting_ = false;
  bool sandbox_ = false;
  bool sandbox_stopping_ = false;
  bool finished_ = false;
};

TEST(PlanPodWalks, KeepEveryPromiseOnTheWay) {
  for (std::uint64_t seed = 0; seed < 800; ++seed) {
    SCOPED_TRACE(seed);
    Walk walk(seed, kSpecs[seed % std::size(kSpecs)]);
    for (int step = 0; step < 120; ++step) {
      walk.Step();
      if (testing::Test::HasFailure()) return;
    }
    walk.End();
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace trainyard::node
