#include "kube/election.h"

#include <array>
#include <functional>
#include <map>
#include <random>

#include "base/status.h"
#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kube/error.h"

namespace trainyard::kube {
namespace {

using ::testing::HasSubstr;

// A lease as a server keeps it: one at a time, with preconditions.
class LeaseTable {
 public:
  absl::StatusOr<SeenLease> Do(const LeaseCall& call) {
    if (const auto* create = std::get_if<CreateLease>(&call)) {
      if (lease_) return Error(409, "AlreadyExists");
      return Store(create->record);
    }
    if (!lease_) return Error(404, "NotFound");
    const auto* update = std::get_if<UpdateLease>(&call);
    if (update == nullptr) return *lease_;
    if (update->version != lease_->version) return Error(409, "Conflict");
    return Store(update->record);
  }
  void Delete() { lease_.reset(); }
  const std::optional<SeenLease>& lease() const { return lease_; }
  static absl::Status Error(int code, std::string_view reason) {
    return ToStatus(ApiError{.code = code, .reason = std::string(reason), .message = "refused"});
  }

 private:
  SeenLease Store(const LeaseRecord& record) {
    lease_ = SeenLease{.record = record, .version = std::to_string(++version_)};
    return *lease_;
  }
  std::optional<SeenLease> lease_;
  int version_ = 0;
};

class ElectionTest : public testing::Test {
 protected:
  static Election Make(std::string_view identity) {
    return {{.identity = std::string(identity)}, IdSource(1)};
  }
  // Lets time pass, and the election do what is due, with answers at once.
  void Run(Election& election, absl::Duration time) {
    const SteadyTime end = now_ + time;
    while (true) {
      Settle(election);
      const SteadyTime next = election.NextTime();
      if (next > end) break;
      now_ = std::max(now_, next);
    }
    now_ = end;
  }
  void Settle(Election& election) {
    while (const auto call = election.NextCall(now_, absl::UnixEpoch()))
      election.Answered(table_.Do(*call), now_);
  }
  // The next call, unanswered.
  LeaseCall Call(Election& election) {
    now_ = std::max(now_, election.NextTime());
    return election.NextCall(now_, absl::UnixEpoch()).value();
  }

  SteadyTime now_ = SteadyTime::FromNanos(1'000'000'000'000);
  LeaseTable table_;
};

TEST_F(ElectionTest, LeadsAtOnceWhenNobodyDoes) {
  Election a = Make("a");
  EXPECT_FALSE(a.IsLeading(now_));
  Settle(a);
  EXPECT_TRUE(a.IsLeading(now_));
  EXPECT_EQ(a.term(), 1);
  EXPECT_EQ(table_.lease()->record.holder, "a");
  EXPECT_EQ(a.holder(), "a");
}

TEST_F(ElectionTest, WaitsBetweenTrialsToMakeALeaseWhoseNamespaceIsNotThere) {
  Election a = Make("a");
  int calls = 0;
  const SteadyTime end = now_ + absl::Minutes(1);
  while (now_ < end) {
    (void)Call(a);
    a.Answered(LeaseTable::Error(404, "NotFound"), now_);
    ASSERT_LT(++calls, 100);
  }
  EXPECT_GT(calls, 10) << "it may be made at any time";
}

TEST_F(ElectionTest, GoesOnLeadingWhileItRenews) {
  Election a = Make("a");
  Run(a, absl::Minutes(10));
  EXPECT_TRUE(a.IsLeading(now_));
  EXPECT_EQ(a.term(), 1);
  EXPECT_EQ(table_.lease()->record.transitions, 0);
}

TEST_F(ElectionTest, StopsLeadingWhenARenewalHangs) {
  Election a = Make("a");
  Settle(a);
  const SteadyTime led_from = now_;
  Call(a);
  EXPECT_TRUE(a.IsLeading(led_from + absl::Milliseconds(9999)));
  EXPECT_FALSE(a.IsLeading(led_from + absl::Seconds(10)));
}

TEST_F(ElectionTest, CountsItsTimeFromWhenItSentTheRenewal) {
  Election a = Make("a");
  Settle(a);
  const LeaseCall renewal = Call(a);
  const SteadyTime sent = now_;
  now_ = now_ + absl::Seconds(6);
  a.Answered(table_.Do(renewal), now_);
  EXPECT_EQ(a.leading_until(), sent + absl::Seconds(10));
}

TEST_F(ElectionTest, BeginsANewTermWhenAnAnswerComesAfterItHadStopped) {
  Election a = Make("a");
  Settle(a);
  const LeaseCall renewal = Call(a);
  now_ = now_ + absl::Seconds(9);
  EXPECT_FALSE(a.IsLeading(now_));
  a.Answered(table_.Do(renewal), now_);
  EXPECT_TRUE(a.IsLeading(now_));
  EXPECT_EQ(a.term(), 2);
  const LeaseCall second = Call(a);
  now_ = now_ + absl::Seconds(11);
  a.Answered(table_.Do(second), now_);
  EXPECT_FALSE(a.IsLeading(now_)) << "this answer is too old to lead by";
}

TEST_F(ElectionTest, TakesOverOnlyWhenTheLeaseHasNotBeenRenewedForItsDuration) {
  Election a = Make("a");
  Election b = Make("b");
  Settle(a);
  Settle(b);
  const SteadyTime seen = now_;
  EXPECT_EQ(b.holder(), "a");
  Run(b, absl::Seconds(14));
  EXPECT_FALSE(b.IsLeading(now_));
  Run(b, absl::Seconds(4));
  EXPECT_TRUE(b.IsLeading(now_));
  EXPECT_GE(b.leading_until(), seen + (absl::Seconds(15) + absl::Seconds(10)));
  EXPECT_EQ(table_.lease()->record.holder, "b");
  EXPECT_EQ(table_.lease()->record.transitions, 1);
  Settle(a);
  EXPECT_FALSE(a.IsLeading(now_));
}

TEST_F(ElectionTest, WaitsAsLongAsTheHoldersLeaseSaysThoughItsOwnIsShorter) {
  Election slow({.identity = "slow", .lease_duration = absl::Minutes(2), .renew_deadline = absl::Minutes(1)},
                IdSource(1));
  Election b = Make("b");
  Settle(slow);
  Run(b, absl::Seconds(119));
  EXPECT_FALSE(b.IsLeading(now_));
  Run(b, absl::Seconds(5));
  EXPECT_TRUE(b.IsLeading(now_));
}

TEST_F(ElectionTest, StopsAtOnceWhenAnotherHoldsTheLease) {
  Election a = Make("a");
  Settle(a);
  ASSERT_TRUE(table_
                  .Do(UpdateLease{.record = {.holder = "b", .duration = absl::Seconds(15)},
                                  .version = table_.lease()->version})
                  .ok());
  now_ = a.NextTime();
  Settle(a);
  EXPECT_FALSE(a.IsLeading(now_));
  EXPECT_EQ(a.holder(), "b");
}

TEST_F(ElectionTest, RenewsAfterItLearnsThatItsRenewalHadBeenDone) {
  Election a = Make("a");
  Settle(a);
  ASSERT_TRUE(table_.Do(Call(a)).ok());
  a.Answered(absl::UnknownError("the connection broke"), now_);
  Run(a, absl::Seconds(5));
  EXPECT_TRUE(a.IsLeading(now_));
  EXPECT_EQ(a.term(), 1);
  EXPECT_EQ(table_.lease()->record.transitions, 0);
}

TEST_F(ElectionTest, DoesNotLeadByALeaseThatItOnlyRead) {
  Election a = Make("a");
  const LeaseCall create = [&] {
    a.Answered(table_.Do(Call(a)), now_);
    return Call(a);
  }();
  ASSERT_TRUE(table_.Do(create).ok());
  a.Answered(absl::DeadlineExceededError("no answer"), now_);
  const LeaseCall read = Call(a);
  EXPECT_EQ(read, LeaseCall(ReadLease{}));
  a.Answered(table_.Do(read), now_);
  EXPECT_EQ(a.holder(), "a");
  EXPECT_FALSE(a.IsLeading(now_)) << "who knows when that was written";
  Settle(a);
  EXPECT_TRUE(a.IsLeading(now_));
}

TEST_F(ElectionTest, GivesTheLeaseAwayWhenItResigns) {
  Election a = Make("a");
  Election b = Make("b");
  Settle(a);
  Settle(b);
  EXPECT_EQ(a.ReleaseCall(absl::UnixEpoch()), std::nullopt) << "not while it leads";
  a.Resign(now_);
  EXPECT_FALSE(a.IsLeading(now_));
  EXPECT_EQ(a.NextCall(now_ + absl::Hours(1), absl::UnixEpoch()), std::nullopt);
  ASSERT_TRUE(table_.Do(*a.ReleaseCall(absl::UnixEpoch())).ok());
  now_ = b.NextTime();
  Settle(b);
  EXPECT_TRUE(b.IsLeading(now_)) << "without waiting for the lease's end";
  b.Resign(now_);
  EXPECT_TRUE(b.ReleaseCall(absl::UnixEpoch()).has_value());
  Election c = Make("c");
  Settle(c);
  c.Resign(now_);
  EXPECT_EQ(c.ReleaseCall(absl::UnixEpoch()), std::nullopt) << "it is not c's to give";
}

TEST_F(ElectionTest, WaitsOutAHolderWhoseLeaseWasDeleted) {
  Election a = Make("a");
  Election b = Make("b");
  Settle(a);
  Settle(b);
  table_.Delete();
  Run(b, absl::Seconds(14));
  EXPECT_FALSE(b.IsLeading(now_));
  Run(b, absl::Seconds(4));
  EXPECT_TRUE(b.IsLeading(now_));
}

TEST_F(ElectionTest, StopsAtOnceWhenItsLeaseIsGone) {
  Election a = Make("a");
  Settle(a);
  table_.Delete();
  const LeaseCall renewal = Call(a);
  a.Answered(table_.Do(renewal), now_);
  EXPECT_FALSE(a.IsLeading(now_));
  Settle(a);
  EXPECT_TRUE(a.IsLeading(now_)) << "and makes it anew";
  EXPECT_EQ(a.term(), 2);
}

TEST(ElectionOptions, MustLeaveTimeBetweenDeadlineAndDuration) {
  EXPECT_TRUE(Validate(ElectionOptions{.identity = "a"}).ok());
  EXPECT_THAT(Message(Validate(ElectionOptions{})), HasSubstr("identity"));
  EXPECT_THAT(Message(Validate(ElectionOptions{.identity = "a", .renew_deadline = absl::Seconds(15)})),
              HasSubstr("longer than the renew deadline (15s)"));
  EXPECT_FALSE(Validate(ElectionOptions{.identity = "a", .retry_period = absl::Seconds(10)}).ok());
  EXPECT_FALSE(Validate(ElectionOptions{.identity = "a", .retry_period = absl::ZeroDuration()}).ok());
}

// ---- many candidates, clocks that differ, a network that delays, loses and cuts off

class Rivals {
 public:
  explicit Rivals(unsigned seed) : random_(seed) {
    for (std::size_t i = 0; i < candidates_.size(); ++i) Begin(i);
  }

  // One tick of true time.
  void Tick(bool faults) {
    time_ += kTick;
    if (faults) MakeTrouble();
    Deliver();
    for (Candidate& candidate : candidates_) {
      const bool stuck = faults && time_ < candidate.paused_until;
      if (!stuck) Act(candidate, faults);
    }
  }

  int CountLeaders() const {
    int leaders = 0;
    for (const Candidate& candidate : candidates_) leaders += IsLeading(candidate) ? 1 : 0;
    return leaders;
  }
  std::int64_t Terms() const { return terms_; }
  absl::Duration time() const { return time_; }

 private:
  static constexpr absl::Duration kTick = absl::Milliseconds(50);
  struct Candidate {
    std::optional<Election> election;
    double speed = 1;
    absl::Duration offset;
    absl::Duration cut_off_until;  // from the server
    absl::Duration paused_until;   // as a machine that is suspended
    std::int64_t life = 0;         // answers of former lives are dropped
    std::int64_t flight = 0;       // answers of calls that were given up are dropped
    std::optional<absl::Duration> gives_up;
    std::int64_t term = 0;
  };
  struct Message {
    std::size_t from = 0;
    std::int64_t life = 0;
    std::int64_t flight = 0;
    LeaseCall call;
    absl::Duration arrives;
    absl::Duration answered;  // infinite: the answer is lost
  };

  double Uniform() { return std::uniform_real_distribution<>(0, 1)(random_); }
  bool Chance(double p) { return Uniform() < p; }
  absl::Duration Up(absl::Duration most) { return most * Uniform(); }

  SteadyTime NowOf(const Candidate& candidate) const {
    return SteadyTime() + candidate.offset + time_ * candidate.speed;
  }
  bool IsLeading(const Candidate& candidate) const {
    return candidate.election && candidate.election->IsLeading(NowOf(candidate));
  }

  void Begin(std::size_t i) {
    Candidate& candidate = candidates_[i];
    ++candidate.life;
    candidate.flight = 0;
    candidate.gives_up.reset();
    candidate.term = 0;
    candidate.speed = 0.9 + 0.2 * Uniform();
    candidate.offset = absl::Hours(1) + Up(absl::Hours(1000));
    candidate.election.emplace(ElectionOptions{.identity = StrCat("candidate-", i, "-", candidate.life)},
                               IdSource(random_()));
  }

  void MakeTrouble() {
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      Candidate& candidate = candidates_[i];
      if (Chance(0.002)) candidate.cut_off_until = time_ + Up(absl::Seconds(60));
      if (Chance(0.001)) candidate.paused_until = time_ + Up(absl::Seconds(60));
      if (Chance(0.0005)) Begin(i);  // it crashed and is there again
      if (Chance(0.0005) && candidate.election) Resign(i);
    }
  }

  // It stops leading at once; the release travels like any other call.
  void Resign(std::size_t i) {
    Candidate& candidate = candidates_[i];
    candidate.election->Resign(NowOf(candidate));
    if (const auto release = candidate.election->ReleaseCall(absl::UnixEpoch())) Send(i, *release, true);
    Begin(i);
  }

  void Act(Candidate& candidate, bool faults) {
    const auto i = static_cast<std::size_t>(&candidate - candidates_.data());
    if (candidate.gives_up && time_ >= *candidate.gives_up) {
      candidate.gives_up.reset();
      ++candidate.flight;
      candidate.election->Answered(absl::DeadlineExceededError("no answer"), NowOf(candidate));
    }
    while (const auto call = candidate.election->NextCall(NowOf(candidate), absl::UnixEpoch())) {
      Send(i, *call, faults);
    }
    if (candidate.election->term() != candidate.term) {
      candidate.term = candidate.election->term();
      ++terms_;
    }
  }

  void Send(std::size_t i, const LeaseCall& call, bool faults) {
    Candidate& candidate = candidates_[i];
    candidate.gives_up = time_ + (faults && Chance(0.1) ? Up(absl::Minutes(2)) : absl::Seconds(5));
    if (faults && (time_ < candidate.cut_off_until || Chance(0.02))) return;
    // Now and then a request is very late: its sender has long given up on it.
    const absl::Duration way = faults && Chance(0.05) ? Up(absl::Seconds(40)) : Up(absl::Milliseconds(200));
    const absl::Duration back = faults && Chance(0.05) ? Up(absl::Seconds(20)) : Up(absl::Milliseconds(200));
    const bool lost = faults && Chance(0.02);
    messages_.push_back({.from = i,
                         .life = candidate.life,
                         .flight = candidate.flight,
                         .call = call,
                         .arrives = time_ + way,
                         .answered = lost ? absl::InfiniteDuration() : time_ + way + back});
  }

  void Deliver() {
    std::vector<Message> messages;
    messages.swap(messages_);
    for (Message& message : messages) {
      if (message.arrives > time_) {
        messages_.push_back(std::move(message));
        continue;
      }
      if (message.arrives >= absl::ZeroDuration()) {
        answers_.push_back({message, table_.Do(message.call)});
      }
    }
    std::vector<std::pair<Message, absl::StatusOr<SeenLease>>> answers;
    answers.swap(answers_);
    for (auto& [message, result] : answers) {
      Candidate& candidate = candidates_[message.from];
      const bool paused = time_ < candidate.paused_until;
      if (message.answered > time_ || paused) {
        answers_.emplace_back(std::move(message), std::move(result));
      } else if (message.life == candidate.life && message.flight == candidate.flight && candidate.gives_up) {
        candidate.gives_up.reset();
        ++candidate.flight;
        candidate.election->Answered(result, NowOf(candidate));
      }
    }
  }

  std::mt19937_64 random_;
  absl::Duration time_;
  LeaseTable table_;
  std::array<Candidate, 3> candidates_;
  std::vector<Message> messages_;
  std::vector<std::pair<Message, absl::StatusOr<SeenLease>>> answers_;
  std::int64_t terms_ = 0;
};

TEST(ElectionProperty, NeverHasTwoLeadersWhateverHappens) {
  std::int64_t terms = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    Rivals world(seed);
    while (world.time() < absl::Minutes(30)) {
      world.Tick(/*faults=*/true);
      ASSERT_LE(world.CountLeaders(), 1) << "seed " << seed << " at " << world.time();
    }
    terms += world.Terms();
    // All is well again: soon there is a leader, and it stays.
    const absl::Duration calm = world.time() + absl::Minutes(2);
    while (world.time() < calm) {
      world.Tick(/*faults=*/false);
      ASSERT_LE(world.CountLeaders(), 1) << "seed " << seed << " at " << world.time();
    }
    const std::int64_t settled = world.Terms();
    while (world.time() < calm + absl::Minutes(5)) {
      world.Tick(/*faults=*/false);
      ASSERT_EQ(world.CountLeaders(), 1) << "seed " << seed << " at " << world.time();
    }
    ASSERT_EQ(world.Terms(), settled) << "seed " << seed;
  }
  EXPECT_GT(terms, 1000) << "the test must see many changes of leaders to mean something";
}

}  // namespace
}  // namespace trainyard::kube
