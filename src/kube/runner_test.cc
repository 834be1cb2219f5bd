#include "kube/runner.h"

#include <map>
#include <set>

#include "base/mutex.h"
#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::kube {
namespace {

ObjectKey K(std::string_view name) { return {"ns", std::string(name)}; }

class RunnerTest : public testing::Test {
 protected:
  // Runs all that is ready at this time and returns how many passes that were.
  int RunReady() {
    int passes = 0;
    while (runner_.RunOne(clock_.Steady())) ++passes;
    return passes;
  }

  ManualClock clock_;
  WorkQueue queue_{clock_, IdSource(1), {.first = absl::Seconds(1), .jitter = 0}};
  Outcome outcome_ = Done{};
  std::vector<PassReport> reports_;
  Runner runner_{
      queue_,
      clock_,
      [this](const ObjectKey&) {
        clock_.Advance(absl::Milliseconds(20));
        return Pass{.outcome = outcome_, .actions = "looked"};
      },
      {.name = "test", .on_pass = [this](const PassReport& report) { reports_.push_back(report); }}};
};

TEST_F(RunnerTest, RunsAKeyThatIsDoneOnce) {
  queue_.Add(K("a"));
  EXPECT_EQ(RunReady(), 1);
  clock_.Advance(absl::Hours(10));
  EXPECT_EQ(RunReady(), 0);
  ASSERT_EQ(reports_.size(), 1u);
  EXPECT_EQ(reports_[0].key, K("a"));
  EXPECT_EQ(reports_[0].took, absl::Milliseconds(20));
  EXPECT_EQ(reports_[0].actions, "looked");
}

TEST_F(RunnerTest, RunsAgainAfterTheTimeAskedFor) {
  outcome_ = Again{absl::Minutes(5)};
  queue_.Add(K("a"));
  EXPECT_EQ(RunReady(), 1);
  clock_.Advance(absl::Minutes(4));
  EXPECT_EQ(RunReady(), 0);
  clock_.Advance(absl::Minutes(1));
  EXPECT_EQ(RunReady(), 1);
}

TEST_F(RunnerTest, RetriesAFailureLaterEachTimeAndForgetsItAfterASuccess) {
  outcome_ = Failed{.status = absl::UnavailableError("no server")};
  queue_.Add(K("a"));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(RunReady(), 1);
    EXPECT_EQ(reports_.back().wait, absl::Seconds(1 << i));
    clock_.Advance(reports_.back().wait);
  }
  outcome_ = Done{};
  EXPECT_EQ(RunReady(), 1);
  outcome_ = Failed{.status = absl::UnavailableError("no server")};
  queue_.Add(K("a"));
  EXPECT_EQ(RunReady(), 1);
  EXPECT_EQ(reports_.back().wait, absl::Seconds(1));
}

TEST_F(RunnerTest, DoesNotRetryWhatCannotSucceed) {
  outcome_ = Failed{.status = absl::InvalidArgumentError("bad spec"), .terminal = true};
  queue_.Add(K("a"));
  EXPECT_EQ(RunReady(), 1);
  clock_.Advance(absl::Hours(1));
  EXPECT_EQ(RunReady(), 0);
  queue_.Add(K("a"));
  EXPECT_EQ(RunReady(), 1) << "until it changes";
}

TEST(Runner, PassesOverManyKeysInItsThreadsAndFinishesThemWhenStopped) {
  constexpr int kKeys = 200;
  WorkQueue queue(Clock::System(), IdSource(1));
  Mutex mu;
  std::map<std::string, int> passes;
  std::set<std::string> running;
  bool twice = false;
  Runner runner(queue, Clock::System(),
                [&](const ObjectKey& key) {
                  {
                    MutexLock lock(mu);
                    twice = !running.insert(key.name).second || twice;
                  }
                  MutexLock lock(mu);
                  running.erase(key.name);
                  return ++passes[key.name] == 1 ? Pass{.outcome = Again{}} : Pass{.outcome = Done{}};
                },
                {.name = "test", .workers = 4});
  runner.Start();
  for (int i = 0; i < kKeys; ++i) queue.Add(K(StrCat(i)));
  runner.Stop();
  EXPECT_FALSE(twice);
  EXPECT_EQ(passes.size(), static_cast<std::size_t>(kKeys));
  runner.Stop();
}

}  // namespace
}  // namespace trainyard::kube
