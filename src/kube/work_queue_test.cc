#include "kube/work_queue.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <random>
#include <thread>

#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::kube {
namespace {

ObjectKey QueueKey(std::string_view name) { return {"ns", std::string(name)}; }

class WorkQueueTest : public testing::Test {
 protected:
  // The names that are ready now, in their order; each is run and done.
  std::vector<std::string> RunReady() {
    std::vector<std::string> names;
    while (const auto key = queue_.TryGet(clock_.Steady())) {
      names.push_back(key->name);
      queue_.Done(*key);
    }
    return names;
  }

  ManualClock clock_;
  WorkQueue queue_{
      clock_, IdSource(1), {.first = absl::Seconds(1), .most = absl::Seconds(60), .jitter = 0.5}};
};

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(WorkQueueTest, MergesEqualKeys) {
  queue_.Add(QueueKey("a"));
  queue_.Add(QueueKey("b"));
  queue_.Add(QueueKey("a"));
  EXPECT_EQ(queue_.Count(), (WorkQueue::Counts{.ready = 2}));
  EXPECT_THAT(RunReady(), ElementsAre("a", "b"));
  EXPECT_EQ(queue_.Count(), WorkQueue::Counts());
}

TEST_F(WorkQueueTest, KnowsHowLongAKeyWasReadyBeforeItRan) {
  queue_.Add(QueueKey("a"), absl::Seconds(10));
  clock_.Advance(absl::Seconds(13));
  ASSERT_EQ(queue_.TryGet(clock_.Steady()), QueueKey("a"));
  EXPECT_EQ(queue_.LateBy(QueueKey("a")), absl::Seconds(3));
  queue_.Done(QueueKey("a"));
}

TEST_F(WorkQueueTest, KeepsTheEarlierOfTwoTimes) {
  queue_.Add(QueueKey("a"), absl::Seconds(10));
  queue_.Add(QueueKey("a"), absl::Seconds(20));
  queue_.Add(QueueKey("b"), absl::Seconds(20));
  queue_.Add(QueueKey("b"), absl::Seconds(5));
  EXPECT_EQ(queue_.NextTime(), clock_.Steady() + absl::Seconds(5));
  clock_.Advance(absl::Seconds(4));
  EXPECT_THAT(RunReady(), IsEmpty());
  clock_.Advance(absl::Seconds(1));
  EXPECT_THAT(RunReady(), ElementsAre("b"));
  clock_.Advance(absl::Seconds(5));
  EXPECT_THAT(RunReady(), ElementsAre("a"));
  clock_.Advance(absl::Seconds(100));
  EXPECT_THAT(RunReady(), IsEmpty()) << "the later time of each is gone";
}

TEST_F(WorkQueueTest, HandsOutByTimeAndThenByOrder) {
  queue_.Add(QueueKey("late"), absl::Seconds(2));
  queue_.Add(QueueKey("x"), absl::Seconds(1));
  queue_.Add(QueueKey("y"), absl::Seconds(1));
  queue_.Add(QueueKey("now"));
  clock_.Advance(absl::Seconds(3));
  queue_.Add(QueueKey("newest"));
  EXPECT_THAT(RunReady(), ElementsAre("now", "x", "y", "late", "newest"));
}

TEST_F(WorkQueueTest, NeverRunsAKeyTwiceAtOnceButAgainAfterwards) {
  queue_.Add(QueueKey("a"));
  ASSERT_EQ(queue_.TryGet(clock_.Steady()), QueueKey("a"));
  queue_.Add(QueueKey("a"));
  queue_.Add(QueueKey("a"));
  EXPECT_EQ(queue_.TryGet(clock_.Steady()), std::nullopt);
  EXPECT_EQ(queue_.NextTime(), SteadyTime::Never());
  queue_.Done(QueueKey("a"));
  EXPECT_EQ(queue_.TryGet(clock_.Steady()), QueueKey("a"));
  queue_.Done(QueueKey("a"));
  EXPECT_EQ(queue_.TryGet(clock_.Steady()), std::nullopt);
}

TEST_F(WorkQueueTest, LetsNoKeyThatIsAlwaysReadyStarveOthers) {
  queue_.Add(QueueKey("busy"));
  ASSERT_EQ(queue_.TryGet(clock_.Steady()), QueueKey("busy"));
  queue_.Add(QueueKey("quiet"));
  queue_.Add(QueueKey("busy"));
  queue_.Done(QueueKey("busy"));
  EXPECT_EQ(queue_.TryGet(clock_.Steady()), QueueKey("quiet"));
}

TEST_F(WorkQueueTest, WaitsLongerAfterEachFailureUntilForgotten) {
  absl::Duration last;
  for (int i = 0; i < 12; ++i) {
    const absl::Duration wait = queue_.Retry(QueueKey("a"));
    const absl::Duration base = std::min(absl::Seconds(1) * (1 << i), absl::Seconds(60));
    EXPECT_GE(wait, base);
    EXPECT_LE(wait, base * 1.5);
    last = wait;
    clock_.Advance(wait);
    EXPECT_THAT(RunReady(), ElementsAre("a"));
  }
  EXPECT_GE(last, absl::Seconds(60));
  queue_.Forget(QueueKey("a"));
  EXPECT_LE(queue_.Retry(QueueKey("a")), absl::Seconds(1.5));
}

TEST_F(WorkQueueTest, DoesNotMakeAnEventWaitForABackOff) {
  queue_.Retry(QueueKey("a"));
  EXPECT_THAT(RunReady(), IsEmpty());
  queue_.Add(QueueKey("a"));
  EXPECT_THAT(RunReady(), ElementsAre("a"));
  clock_.Advance(absl::Minutes(5));
  EXPECT_THAT(RunReady(), IsEmpty()) << "the event took the retry's place";
}

TEST_F(WorkQueueTest, SpreadsTheRetriesOfKeysThatFailTogether) {
  std::set<absl::Duration> waits;
  for (int i = 0; i < 100; ++i) waits.insert(queue_.Retry(QueueKey(StrCat(i))));
  EXPECT_GT(waits.size(), 90u);
}

TEST_F(WorkQueueTest, DrainsWhatIsReadyAndDropsWhatIsNot) {
  queue_.Add(QueueKey("ready"));
  queue_.Add(QueueKey("later"), absl::Seconds(1));
  queue_.Add(QueueKey("running"));
  ASSERT_EQ(queue_.TryGet(clock_.Steady()), QueueKey("ready"));
  queue_.Add(QueueKey("ready"));
  queue_.ShutDown();
  queue_.Add(QueueKey("new"));
  EXPECT_EQ(queue_.Get(), QueueKey("running"));
  queue_.Done(QueueKey("running"));
  EXPECT_EQ(queue_.Get(), std::nullopt);
  queue_.Done(QueueKey("ready"));
  EXPECT_EQ(queue_.Get(), QueueKey("ready")) << "it was added before the end, while it ran";
  queue_.Done(QueueKey("ready"));
  clock_.Advance(absl::Hours(1));
  EXPECT_EQ(queue_.Get(), std::nullopt);
}

TEST_F(WorkQueueTest, DropsAllWhenToldTo) {
  queue_.Add(QueueKey("a"));
  queue_.Add(QueueKey("b"));
  ASSERT_EQ(queue_.TryGet(clock_.Steady()), QueueKey("a"));
  queue_.Add(QueueKey("a"));
  queue_.ShutDown(WorkQueue::Rest::kDrop);
  queue_.Done(QueueKey("a"));
  EXPECT_EQ(queue_.Get(), std::nullopt);
  EXPECT_EQ(queue_.Count(), WorkQueue::Counts());
}

TEST_F(WorkQueueTest, WakesWhoWaitsWhenTheTimeComes) {
  queue_.Add(QueueKey("a"), absl::Seconds(10));
  std::optional<ObjectKey> got;
  std::thread worker([&] {
    got = queue_.Get();
    queue_.Done(*got);
  });
  clock_.Advance(absl::Seconds(10));
  worker.join();
  EXPECT_EQ(got, QueueKey("a"));
}

TEST_F(WorkQueueTest, WakesAsManyAsThereAreKeysWhoseTimeComes) {
  constexpr int kWorkers = 4;
  std::vector<std::thread> workers;
  std::atomic<int> taken{0};
  for (int i = 0; i < kWorkers; ++i) {
    // Each takes one key and keeps it: the others must not wait for it to come back.
    workers.emplace_back([&] {
      if (queue_.Get()) ++taken;
    });
    queue_.Add(QueueKey(StrCat(i)), absl::Seconds(kWorkers - i));
  }
  clock_.Advance(absl::Seconds(kWorkers));
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(taken, kWorkers);
}

TEST_F(WorkQueueTest, EndsTheWaitOfAllWhenItShutsDown) {
  std::vector<std::thread> workers;
  std::atomic<int> ended{0};
  for (int i = 0; i < 4; ++i) {
    workers.emplace_back([&] {
      while (queue_.Get()) {
      }
      ++ended;
    });
  }
  queue_.ShutDown();
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(ended, 4);
}

// The rules again, in the plainest way.
class Model {
 public:
  void Add(int key, SteadyTime time) {
    const auto found = due_.find(key);
    if (found != due_.end() && found->second.first <= time) return;
    due_[key] = {time, ++count_};
  }
  std::optional<int> TryGet(SteadyTime now) {
    std::optional<int> best;
    for (const auto& [key, due] : due_) {
      if (due.first > now || running_.contains(key)) continue;
      if (!best || due < due_.at(*best)) best = key;
    }
    if (!best) return std::nullopt;
    due_.erase(*best);
    running_.insert(*best);
    return best;
  }
  void Done(int key) { running_.erase(key); }
  const std::set<int>& running() const { return running_; }
  SteadyTime NextTime() const {
    SteadyTime next = SteadyTime::Never();
    for (const auto& [key, due] : due_) {
      if (!running_.contains(key)) next = std::min(next, due.first);
    }
    return next;
  }

 private:
  std::map<int, std::pair<SteadyTime, int>> due_;
  std::set<int> running_;
  int count_ = 0;
};

TEST(WorkQueueProperty, DoesWhatTheRulesSayWhateverHappens) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    std::mt19937 random(seed);
    ManualClock clock;
    WorkQueue queue(clock, IdSource(seed));
    Model model;
    const auto below = [&](unsigned n) { return static_cast<int>(random() % n); };
    const auto name = [](int key) { return QueueKey(StrCat(key)); };
    for (int step = 0; step < 400; ++step) {
      const int key = below(6);
      switch (below(6)) {
        case 0:
          queue.Add(name(key));
          model.Add(key, clock.Steady());
          break;
        case 1: {
          const absl::Duration after = absl::Seconds(below(5));
          queue.Add(name(key), after);
          model.Add(key, clock.Steady() + after);
          break;
        }
        case 2:
          model.Add(key, clock.Steady() + queue.Retry(name(key)));
          break;
        case 3:
          clock.Advance(absl::Milliseconds(below(2000)));
          break;
        case 4: {
          const auto expected = model.TryGet(clock.Steady());
          const auto got = queue.TryGet(clock.Steady());
          ASSERT_EQ(got.has_value(), expected.has_value()) << "seed " << seed << " step " << step;
          if (got) {
            ASSERT_EQ(*got, name(*expected)) << "seed " << seed << " step " << step;
          }
          break;
        }
        case 5:
          if (model.running().empty()) break;
          const int done =
              *std::next(model.running().begin(), below(static_cast<unsigned>(model.running().size())));
          model.Done(done);
          queue.Done(name(done));
          if (below(2) == 0) queue.Forget(name(done));
          break;
      }
      ASSERT_EQ(queue.NextTime(), model.NextTime()) << "seed " << seed << " step " << step;
      ASSERT_EQ(queue.Count().running, model.running().size());
    }
  }
}

TEST(WorkQueueStress, RunsEveryKeyAfterItsLastAddAndNeverTwiceAtOnce) {
  constexpr int kKeys = 7;
  constexpr int kAdders = 3;
  constexpr int kAdds = 3000;
  WorkQueue queue(Clock::System(), IdSource(5));
  std::array<std::atomic<int>, kKeys> added{};
  std::array<std::atomic<int>, kKeys> seen{};
  std::array<std::atomic<bool>, kKeys> running{};
  std::vector<std::thread> workers;
  for (int w = 0; w < 4; ++w) {
    workers.emplace_back([&] {
      while (const auto key = queue.Get()) {
        const auto i = static_cast<std::size_t>(*ParseNumber<int>(key->name));
        ASSERT_FALSE(running[i].exchange(true));
        seen[i] = added[i].load();
        running[i] = false;
        queue.Done(*key);
      }
    });
  }
  std::vector<std::thread> adders;
  for (int a = 0; a < kAdders; ++a) {
    adders.emplace_back([&, a] {
      std::mt19937 random(static_cast<unsigned>(a));
      for (int i = 0; i < kAdds; ++i) {
        const auto key = random() % kKeys;
        ++added[key];
        queue.Add(QueueKey(StrCat(key)),
                  random() % 4 == 0 ? absl::Microseconds(random() % 500) : absl::ZeroDuration());
      }
    });
  }
  for (std::thread& adder : adders) adder.join();
  // The delayed ones are due now at the latest, and so are drained.
  for (int i = 0; i < kKeys; ++i) queue.Add(QueueKey(StrCat(i)));
  queue.ShutDown();
  for (std::thread& worker : workers) worker.join();
  for (std::size_t i = 0; i < kKeys; ++i) EXPECT_EQ(seen[i], added[i]) << i;
}

}  // namespace
}  // namespace trainyard::kube
