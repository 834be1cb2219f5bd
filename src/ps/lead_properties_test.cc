// Whatever trainers do, every record is used once in each pass, and the job ends as long as one of them is
// alive.
#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "ps/lead.h"
#include "rapidcheck/gtest.h"

namespace trainyard::ps {
namespace {

using graph::SyncMode;

// From `least` on and below `end`, all alike: the generator's own numbers begin small.
int Between(int least, int end) { return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(least, end)); }

// A lead, and trainers that do as a real one would: join, contribute, ask for more, join again when told to.
class World {
 public:
  World(SyncMode mode, int trainers, int least)
      : mode_(mode), passes_(Between(1, 4)), lead_(mode, trainers, passes_, least) {
    trainers_.resize(static_cast<std::size_t>(trainers));
  }

  void Act() {
    const int trainer = Between(0, static_cast<int>(trainers_.size()));
    Trainer& it = trainers_[static_cast<std::size_t>(trainer)];
    const int what = Between(0, 100);
    if (what < 10) return Arrive(trainer);
    if (what < 16) return Die(trainer);
    if (what < 19) return Scale(Between(1, 6));
    if (what < 21) return Restart();
    if (it.joined) Work(trainer);
  }

  // All work as well as they can, some die and never come back, one does not.
  void Finish() {
    const int survivor = Between(0, static_cast<int>(trainers_.size()));
    for (int i = 0; i < static_cast<int>(trainers_.size()); ++i) {
      if (!lead_.state().seats[static_cast<std::size_t>(i)].seen)
        Arrive(i);  // what the first step may wait for
    }
    for (int i = 0; i < static_cast<int>(trainers_.size()); ++i) {
      if (i != survivor && *rc::gen::arbitrary<bool>()) Die(i);
    }
    if (!trainers_[static_cast<std::size_t>(survivor)].joined) Arrive(survivor);
    for (int round = 0; !lead_.Done(); ++round) {
      RC_ASSERT(round < 5000);
      for (int i = 0; i < static_cast<int>(trainers_.size()); ++i) {
        if (trainers_[static_cast<std::size_t>(i)].joined) Work(i);
      }
    }
    if (mode_ == SyncMode::kSync) {
      for (std::int64_t pass = 0; pass < passes_; ++pass) {
        for (std::int64_t place = 0; place < kRecords; ++place) RC_ASSERT((used_[{pass, place}] == 1));
      }
    }
    for (std::int64_t pass = 0; pass < passes_; ++pass) RC_ASSERT(lead_.Used(pass) == kRecords);
  }

 private:
  static constexpr std::int64_t kRecords = 23;
  using Account = std::map<std::pair<std::int64_t, std::int64_t>, int>;

  struct Trainer {
    std::int64_t incarnation = 0;
    bool joined = false;
    bool idle = false;
    std::int64_t step = 0;
    Share share;  // left of what it was given
  };

  void Join(int trainer) {
    Trainer& it = trainers_[static_cast<std::size_t>(trainer)];
    const absl::StatusOr<JoinAnswer> answer = lead_.Join(trainer, it.incarnation, kRecords);
    RC_ASSERT(answer.ok());
    it.joined = true;
    it.idle = false;
    it.step = answer->step;
    it.share = answer->share;
  }

  void Arrive(int trainer) {
    ++trainers_[static_cast<std::size_t>(trainer)].incarnation;
    Join(trainer);
    CommitIfComplete();
  }

  void Die(int trainer) {
    Trainer& it = trainers_[static_cast<std::size_t>(trainer)];
    it.joined = false;
    lead_.Leave(trainer, it.incarnation);
    RouseIdle();
    CommitIfComplete();
  }

  void RouseIdle() {
    for (const int trainer : lead_.Rouse()) {
      RC_ASSERT(trainers_[static_cast<std::size_t>(trainer)].idle);
      Join(trainer);
    }
  }

  void Scale(int trainers) {
    lead_.SetTrainers(trainers);
    trainers_.resize(static_cast<std::size_t>(trainers));
    for (int i = 0; i < trainers; ++i) {
      if (trainers_[static_cast<std::size_t>(i)].joined) Join(i);
    }
  }

  // The lead goes back to what it saved now and then.
  void Restart() {
    if (*rc::gen::arbitrary<bool>()) {
      saved_ = lead_.Save();
      saved_used_ = used_;
      return;
    }
    if (saved_.empty()) return;
    absl::StatusOr<LeadState> state = Lead::Load(saved_);
    RC_ASSERT(state.ok());
    lead_ = Lead(*std::move(state));
    used_ = saved_used_;
    if (lead_.state().seats.size() != trainers_.size()) lead_.SetTrainers(static_cast<int>(trainers_.size()));
    for (int i = 0; i < static_cast<int>(trainers_.size()); ++i) {
      if (trainers_[static_cast<std::size_t>(i)].joined) lead_.Await(i);
    }
    for (int i = 0; i < static_cast<int>(trainers_.size()); ++i) {
      if (trainers_[static_cast<std::size_t>(i)].joined) Join(i);
    }
  }

  void Work(int trainer) {
    Trainer& it = trainers_[static_cast<std::size_t>(trainer)];
    if (mode_ == SyncMode::kSync && it.step > lead_.state().step) return;  // its parameters are not there yet
    if (it.share.places.empty()) {
      const absl::StatusOr<JoinAnswer> answer = lead_.NextShare(trainer, it.incarnation);
      if (absl::IsAborted(answer.status())) return Join(trainer);
      RC_ASSERT(answer.ok());
      it.idle = answer->done;
      it.share = answer->share;
      RouseIdle();
      return CommitIfComplete();
    }
    const Share batch{it.share.pass, Front(it.share.places, 4)};
    RC_ASSERT(Take(it.share.places, batch.places).ok());
    const absl::Status told = lead_.Contribute(trainer, it.incarnation, it.step, batch);
    RC_ASSERT(told.ok());
    RC_ASSERT(lead_.Contribute(trainer, it.incarnation, it.step, batch).ok());
    ++it.step;
    if (mode_ == SyncMode::kAsync) Count(batch);
    CommitIfComplete();
  }

  void CommitIfComplete() {
    if (mode_ != SyncMode::kSync) return;
    const std::optional<std::vector<int>> contributors = lead_.Complete();
    if (!contributors) return;
    for (const int trainer : *contributors)
      Count(lead_.state().seats[static_cast<std::size_t>(trainer)].pending);
    lead_.Commit();
  }

  void Count(const Share& share) {
    for (const Range& range : share.places) {
      for (std::int64_t place = range.begin; place < range.end; ++place) {
        const int uses = ++used_[{share.pass, place}];
        RC_ASSERT(uses == 1);
      }
    }
  }

  const SyncMode mode_;
  const std::int64_t passes_;
  Lead lead_;
  std::vector<Trainer> trainers_;
  Account used_;
  std::string saved_;
  Account saved_used_;
};

void Live(SyncMode mode) {
  const int trainers = Between(1, 5);
  World world(mode, trainers, Between(1, trainers + 1));
  for (int i = Between(0, 150); i > 0; --i) world.Act();
  world.Finish();
}

RC_GTEST_PROP(LeadProperties, UsesEveryRecordOnceInEachPassAndEnds, ()) { Live(SyncMode::kSync); }
RC_GTEST_PROP(LeadProperties, WithoutStepsDoesSoToo, ()) { Live(SyncMode::kAsync); }

}  // namespace
}  // namespace trainyard::ps
