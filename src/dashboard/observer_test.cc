#include "dashboard/observer.h"

#include <atomic>

#include "base/rfc3339.h"
#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fake_server.h"

namespace trainyard::dashboard {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

const absl::Time kBegin = absl::FromUnixSeconds(1'000'000);
constexpr absl::Duration kRealPatience = absl::Seconds(30);

class ObserverTest : public testing::Test {
 protected:
  void PutJob(std::string_view name, int ready) {
    server_.Put(view::FactsOf(view::Kind::kTfJob).resource,
                StrCat(R"({"metadata":{"name":")", name, R"(","namespace":"d","uid":"u-)", name,
                       R"("},"status":{"ready":")", ready,
                       R"(/4","conditions":[{"type":"Running","status":"True"}]}})"));
  }
  void PutEvent(std::string_view name, absl::Time time) {
    server_.Put(kube::Resource::Events(),
                StrCat(R"({"metadata":{"name":")", name, R"(","namespace":"d","uid":"u-)", name,
                       R"("},"involvedObject":{"kind":"Pod","name":"p"},"reason":")", name,
                       R"(","lastTimestamp":")", PrintTime(time), R"("})"));
  }
  std::unique_ptr<Observer> Start(absl::Duration look_every = absl::ZeroDuration()) {
    return std::make_unique<Observer>(server_, clock_, ObserverOptions{.look_every = look_every},
                                      Observer::Listener{.changed =
                                                             [this] {
                                                               const MutexLock lock(mu_);
                                                               ++changes_;
                                                               changed_.SignalAll();
                                                             },
                                                         .event =
                                                             [this](const ClusterEvent& event) {
                                                               const MutexLock lock(mu_);
                                                               told_.push_back(event.event.reason);
                                                               changed_.SignalAll();
                                                             }});
  }
  // Until it holds, while the clock goes on by so much for each try.
  bool Eventually(const std::function<bool()>& holds, absl::Duration step = absl::Milliseconds(300)) {
    const SteadyTime end = Clock::System().Steady() + kRealPatience;
    while (!holds()) {
      if (Clock::System().Steady() > end) return false;
      clock_.Advance(step);
      const MutexLock lock(mu_);
      changed_.WaitUntil(mu_, Clock::System().Steady() + absl::Milliseconds(5));
    }
    return true;
  }
  int changes() {
    const MutexLock lock(mu_);
    return changes_;
  }
  std::vector<std::string> told() {
    const MutexLock lock(mu_);
    return told_;
  }

  ManualClock clock_{kBegin};
  kube::FakeServer server_;
  Mutex mu_;
  CondVar changed_;
  int changes_ TY_GUARDED_BY(mu_) = 0;
  std::vector<std::string> told_ TY_GUARDED_BY(mu_);
};

TEST_F(ObserverTest, AsksNothingWhileNobodyLooks) {
  const auto observer = Start();
  clock_.Advance(absl::Hours(1));
  EXPECT_THAT(server_.Requests(), IsEmpty());
  PutJob("a", 1);
  EXPECT_THAT(observer->Look()->jobs, SizeIs(1)) << "the first who asks is not answered before it has looked";
}

TEST_F(ObserverTest, SeesWhatChangesWhileSomebodyLooks) {
  const auto observer = Start();
  EXPECT_THAT(observer->Look()->jobs, IsEmpty());
  PutJob("a", 1);
  ASSERT_TRUE(Eventually([&] { return observer->Look()->jobs.size() == 1; }));
  PutJob("a", 3);
  ASSERT_TRUE(Eventually([&] { return observer->Look()->jobs[0]->job.ready == 3; }));
  std::vector<double> sizes;
  for (const auto& [time, size] : observer->Look()->jobs[0]->size.points()) sizes.push_back(size);
  EXPECT_THAT(sizes, ElementsAre(1, 3));
  EXPECT_NE(observer->Look()->Find(view::Kind::kTfJob, "d", "a"), nullptr);
  server_.Remove(view::FactsOf(view::Kind::kTfJob).resource, {"d", "a"});
  EXPECT_TRUE(Eventually([&] { return observer->Look()->jobs.empty(); }));
}

TEST_F(ObserverTest, RestsWhenNobodyHasLookedForAWhile) {
  const auto observer = Start();
  observer->Look();
  ASSERT_TRUE(Eventually([&] { return server_.CountOpenWatches() == 5; }));
  clock_.Advance(Observer::kPatience);
  ASSERT_TRUE(Eventually([&] { return server_.CountOpenWatches() == 0; }));
  const std::size_t requests = server_.Requests().size();
  PutJob("a", 1);
  clock_.Advance(absl::Hours(1));
  EXPECT_THAT(server_.Requests(), SizeIs(requests));
  EXPECT_THAT(observer->Look()->jobs, SizeIs(1)) << "what it knew is old";
}

TEST_F(ObserverTest, RemembersSizesWhileItRestsWhereThatIsAskedFor) {
  PutJob("a", 1);
  const auto observer = Start(absl::Seconds(10));
  ASSERT_TRUE(Eventually([&] { return changes() == 1; }, absl::Seconds(1)));
  PutJob("a", 2);
  ASSERT_TRUE(Eventually([&] { return changes() == 2; }, absl::Seconds(1)));
  EXPECT_EQ(server_.CountOpenWatches(), 0);
  std::vector<double> sizes;
  for (const auto& [time, size] : observer->Look()->jobs[0]->size.points()) sizes.push_back(size);
  EXPECT_THAT(sizes, ElementsAre(1, 2));
}

TEST_F(ObserverTest, TellsOnlyOfEventsThatAreNew) {
  PutEvent("Old", kBegin - absl::Hours(1));
  const auto observer = Start();
  EXPECT_THAT(observer->Events(), SizeIs(1)) << "what was there is known, and is no news";
  PutEvent("New", kBegin + absl::Seconds(1));
  ASSERT_TRUE(Eventually([&] { return observer->Events().size() == 2; }));
  EXPECT_EQ(observer->Events().back().event.reason, "New");
  EXPECT_THAT(told(), ElementsAre("New"));
  for (int i = 0; i < 600; ++i) PutEvent(StrCat("e", i), kBegin + absl::Seconds(2 + i));
  ASSERT_TRUE(Eventually([&] { return observer->Events().back().event.reason == "e599"; }));
  EXPECT_THAT(observer->Events(), SizeIs(500));
}

TEST_F(ObserverTest, GoesOnWhenTheServerFailsForAWhile) {
  std::atomic<bool> fails = true;
  server_.SetIntercept([&](const kube::Request&) -> std::optional<absl::StatusOr<kube::Response>> {
    if (!fails) return std::nullopt;
    return absl::StatusOr<kube::Response>(kube::Response{.code = 403, .body = "{}"});
  });
  PutJob("a", 1);
  const auto observer = Start();
  EXPECT_THAT(observer->Look()->jobs, IsEmpty());
  fails = false;
  EXPECT_TRUE(Eventually([&] { return observer->Look()->jobs.size() == 1; }));
}

TEST_F(ObserverTest, LooksNoMoreOftenThanItsShareOfTheTime) {
  server_.SetIntercept([&](const kube::Request& request) -> std::optional<absl::StatusOr<kube::Response>> {
    // A list takes a second, by the clock that counts.
    if (request.target.find("tfjobs") != std::string::npos &&
        request.target.find("watch") == std::string::npos)
      clock_.Advance(absl::Seconds(1));
    return std::nullopt;
  });
  const auto observer = Start();
  observer->Look();
  const absl::Time first = clock_.Now();
  PutJob("a", 1);
  ASSERT_TRUE(Eventually([&] { return observer->Look()->jobs.size() == 1; }));
  EXPECT_GE(clock_.Now() - first, absl::Seconds(30));
}

}  // namespace
}  // namespace trainyard::dashboard
