#include "kube/leader_election.h"

#include <atomic>
#include <set>
#include <vector>

#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kube/names.h"
#include "tests/support/fake_server.h"

namespace trainyard::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const ObjectKey kLease{"system", "operator"};

class LeaderElectionTest : public testing::Test {
 protected:
  // A candidate, and what it was told.
  struct Candidate {
    Candidate(LeaderElectionTest& test, std::string identity)
        : elector(test.api_, test.clock_, IdSource(7),
                  {.lease = kLease, .election = {.identity = std::move(identity)}},
                  {.on_started = [this](std::int64_t) { Tell("started"); },
                   .on_stopped = [this] { Tell("stopped"); }}) {}
    void Tell(std::string_view what) {
      MutexLock lock(mu);
      told.emplace_back(what);
      changed.SignalAll();
    }
    void WaitFor(std::size_t count) {
      MutexLock lock(mu);
      while (told.size() < count) changed.Wait(mu);
    }

    Mutex mu;
    CondVar changed;
    std::vector<std::string> told;
    LeaderElector elector;
  };

  std::string Holder() const {
    const auto lease = server_.Find(Resource::Leases(), kLease);
    return lease ? std::string(StringAt(*lease, {"spec", "holderIdentity"})) : "no lease";
  }
  // Steps whoever has something to do until `time` has passed.
  void Run(std::vector<LeaderElector*> electors, absl::Duration time) {
    const SteadyTime end = clock_.Steady() + time;
    while (true) {
      SteadyTime next = end;
      for (LeaderElector* elector : electors) {
        SteadyTime wake = elector->Step();
        while (wake <= clock_.Steady()) wake = elector->Step();
        next = std::min(next, wake);
      }
      if (clock_.Steady() >= end) return;
      clock_.Advance(next - clock_.Steady());
    }
  }

  ManualClock clock_{absl::FromUnixSeconds(1'714'557'600)};
  FakeServer server_;
  Api api_{server_, clock_, IdSource(1), {.attempts = 1}};
};

TEST_F(LeaderElectionTest, WritesTheLeaseAsOthersReadIt) {
  Candidate a(*this, "a");
  Run({&a.elector}, absl::ZeroDuration());
  const Document lease = *server_.Find(Resource::Leases(), kLease);
  EXPECT_EQ(StringAt(lease, {"kind"}), "Lease");
  EXPECT_EQ(StringAt(lease, {"apiVersion"}), "coordination.k8s.io/v1");
  EXPECT_EQ(StringAt(lease, {"spec", "holderIdentity"}), "a");
  EXPECT_EQ(*IntAt(lease, {"spec", "leaseDurationSeconds"}), 15);
  EXPECT_EQ(StringAt(lease, {"spec", "renewTime"}), "2024-05-01T10:00:00.000000Z");
  EXPECT_TRUE(a.elector.IsLeader());
  EXPECT_EQ(a.elector.Holder(), "a");
  EXPECT_THAT(a.told, ElementsAre("started"));
}

TEST_F(LeaderElectionTest, HasOneLeaderThatStays) {
  Candidate a(*this, "a");
  Candidate b(*this, "b");
  Run({&a.elector, &b.elector}, absl::Minutes(10));
  EXPECT_TRUE(a.elector.IsLeader());
  EXPECT_FALSE(b.elector.IsLeader());
  EXPECT_EQ(b.elector.Holder(), "a");
  EXPECT_THAT(a.told, ElementsAre("started"));
  EXPECT_THAT(b.told, ElementsAre());
}

TEST_F(LeaderElectionTest, HandsOverAtOnceWhenTheLeaderStops) {
  Candidate a(*this, "a");
  Candidate b(*this, "b");
  Run({&a.elector, &b.elector}, absl::Minutes(1));
  a.elector.Stop();
  EXPECT_THAT(a.told, ElementsAre("started", "stopped"));
  EXPECT_EQ(Holder(), "");
  Run({&b.elector}, absl::Seconds(4));
  EXPECT_TRUE(b.elector.IsLeader());
}

TEST_F(LeaderElectionTest, GivesTheLeaseAwayOnlyAfterItsWorkHasEnded) {
  std::string holder_while_stopping;
  LeaderElector elector(api_, clock_, IdSource(7), {.lease = kLease, .election = {.identity = "a"}},
                        {.on_stopped = [&] { holder_while_stopping = Holder(); }});
  Run({&elector}, absl::ZeroDuration());
  elector.Stop();
  EXPECT_EQ(holder_while_stopping, "a");
  EXPECT_EQ(Holder(), "");
}

TEST_F(LeaderElectionTest, GivesTheLeaseAwayThoughTheAnswerToItsLastRenewalWasLost) {
  Candidate a(*this, "a");
  Run({&a.elector}, absl::ZeroDuration());
  server_.SetTamper([](const Request& request, absl::StatusOr<Response>& response) {
    if (request.method == "PUT") response = absl::UnknownError("the connection broke");
  });
  Run({&a.elector}, absl::Seconds(2));
  server_.SetTamper(nullptr);
  a.elector.Stop();
  EXPECT_EQ(Holder(), "");
}

TEST_F(LeaderElectionTest, LeavesWhatOthersWroteIntoTheLease) {
  Candidate a(*this, "a");
  Run({&a.elector}, absl::ZeroDuration());
  Document lease = *server_.Find(Resource::Leases(), kLease);
  MakeObjectAt(lease, {"metadata", "labels"})["team"] = "blue";
  server_.Put(Resource::Leases(), PrintJson(lease));
  Run({&a.elector}, absl::Seconds(20));
  EXPECT_TRUE(a.elector.IsLeader());
  EXPECT_THAT(a.told, ElementsAre("started")) << "another's version of the lease is no other leader";
  EXPECT_EQ(StringAt(*server_.Find(Resource::Leases(), kLease), {"metadata", "labels", "team"}), "blue");
}

TEST_F(LeaderElectionTest, StopsLeadingWhenTheServerIsGoneAndLeadsAgainWhenItIsBack) {
  Candidate a(*this, "a");
  Run({&a.elector}, absl::Seconds(30));
  server_.SetIntercept([](const Request&) -> std::optional<absl::StatusOr<Response>> {
    return absl::UnavailableError("connection refused");
  });
  Run({&a.elector}, absl::Seconds(12));
  EXPECT_FALSE(a.elector.IsLeader());
  EXPECT_THAT(a.told, ElementsAre("started", "stopped"));
  server_.SetIntercept(nullptr);
  Run({&a.elector}, absl::Seconds(4));
  EXPECT_THAT(a.told, ElementsAre("started", "stopped", "started"));
}

TEST_F(LeaderElectionTest, StopsInTimeThoughItsCallHangs) {
  std::atomic<bool> hang{false};
  std::atomic<int> hanging{0};
  server_.SetIntercept([&](const Request& request) -> std::optional<absl::StatusOr<Response>> {
    if (!hang || request.body.find("\"holderIdentity\":\"a\"") == std::string::npos) return std::nullopt;
    ++hanging;
    hanging.notify_all();
    hang.wait(true);
    return std::nullopt;
  });
  Candidate a(*this, "a");
  Candidate b(*this, "b");
  a.elector.Start();
  a.WaitFor(1);
  b.elector.Step();
  EXPECT_EQ(b.elector.Holder(), "a");
  hang = true;
  clock_.Advance(absl::Seconds(2));
  hanging.wait(0);
  clock_.Advance(absl::Seconds(10));
  EXPECT_FALSE(a.elector.IsLeader());
  a.WaitFor(2);
  EXPECT_THAT(a.told, ElementsAre("started", "stopped"));
  Run({&b.elector}, absl::Seconds(20));
  EXPECT_TRUE(b.elector.IsLeader());
  hang = false;
  hang.notify_all();
  a.elector.Stop();
  EXPECT_EQ(Holder(), "b") << "what came late found a lease that had changed hands";
  EXPECT_THAT(a.told, ElementsAre("started", "stopped"));
}

TEST_F(LeaderElectionTest, HandsOverFromOneToTheNextInThreads) {
  constexpr int kCandidates = 4;
  Api api(server_, Clock::System(), IdSource(1));
  std::atomic<int> leaders{0};
  std::atomic<int> leaderships{0};
  std::vector<std::unique_ptr<LeaderElector>> electors;
  for (int i = 0; i < kCandidates; ++i) {
    electors.push_back(std::make_unique<LeaderElector>(
        api, Clock::System(), IdSource(static_cast<std::uint64_t>(i)),
        LeaderElector::Options{
            .lease = kLease, .election = {.identity = StrCat("c", i), .retry_period = absl::Milliseconds(1)}},
        LeaderElector::Callbacks{.on_started =
                                     [&](std::int64_t) {
                                       EXPECT_EQ(++leaders, 1);
                                       ++leaderships;
                                       leaderships.notify_all();
                                     },
                                 .on_stopped = [&] { EXPECT_EQ(--leaders, 0); }}));
    electors.back()->Start();
  }
  for (int round = 0; round < kCandidates; ++round) {
    for (int seen = leaderships; seen <= round; seen = leaderships) leaderships.wait(seen);
    for (auto& elector : electors) {
      if (elector == nullptr || !elector->IsLeader()) continue;
      elector->Stop();
      elector.reset();
      break;
    }
  }
  EXPECT_EQ(leaderships, kCandidates);
}

TEST(Identity, IsOfThisProcessAlone) {
  IdSource ids = IdSource::Random();
  const std::string one = MakeIdentity(ids);
  EXPECT_NE(one, MakeIdentity(ids));
  EXPECT_GT(one.size(), 36u);
}

TEST(Lease, KeepsWhatItDoesNotKnow) {
  const auto lease = ParseLease(
      R"({"metadata":{"name":"x","resourceVersion":"5","labels":{"a":"b"}},"spec":{"holderIdentity":"h",)"
      R"("leaseDurationSeconds":15,"renewTime":"2024-05-01T10:00:00.000000Z","leaseTransitions":3,"new":1}})");
  ASSERT_TRUE(lease.ok()) << lease.status();
  EXPECT_EQ(lease->resource_version, "5");
  EXPECT_EQ(lease->record.holder, "h");
  EXPECT_EQ(lease->record.duration, absl::Seconds(15));
  EXPECT_EQ(lease->record.transitions, 3);
  EXPECT_EQ(lease->record.renewed, absl::FromUnixSeconds(1'714'557'600));
  LeaseRecord record = lease->record;
  record.holder.clear();
  record.duration = absl::Milliseconds(1500);
  const std::string printed = PrintLease(lease->object, record);
  EXPECT_THAT(printed, HasSubstr(R"("labels":{"a":"b"})"));
  EXPECT_THAT(printed, HasSubstr(R"("new":1)"));
  EXPECT_THAT(printed, HasSubstr(R"("leaseDurationSeconds":2)"));
  EXPECT_THAT(printed, testing::Not(HasSubstr("holderIdentity")));
  EXPECT_FALSE(ParseLease("{}").ok());
  EXPECT_FALSE(ParseLease("not JSON").ok());
}

}  // namespace
}  // namespace trainyard::kube
