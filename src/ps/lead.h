// The lead's account of a job: which trainers take part, what of the data each has, and when a step is
// complete. Pure: calls in, decisions out. The lead is pserver-0; the other pservers do what it decides, so
// all of them count the same gradients in the same step.
//
//   Sync: a step is complete when every member has contributed. A member is a trainer that has joined and not
//   left; until so many trainers as the job needs have been seen once, no step is complete. Whoever
//   contributed counts, even if it has died since. Async: each contribution counts by itself.
//
// A record is used when the step that it was contributed in is committed, and only then: once in each pass,
// in sync. In async a pserver that is restarted goes back by itself: a lead that does deals out again what
// was used since its checkpoint, so there a record is used at least once.
//
// Passes are dealt out to the trainers that are here or are still to come. What a trainer had left when it
// went is kept for it, until the others have nothing else to do: then it is dealt to them. So the job ends as
// long as one trainer is alive, and with every record used.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/pass/transpile.h"
#include "ps/deal.h"
#include "ps/record_batches.h"

namespace trainyard::ps {

// Of one trainer.
struct Seat {
  std::map<std::int64_t, Ranges> left;  // places that are its own and not used yet, by pass
  std::int64_t incarnation = 0;         // of the one that joined last
  std::int64_t attempt = 0;             // how often that one had joined
  std::int64_t step = 0;                // async: its own steps
  bool seen = false;                    // has ever joined
  bool awaited = false;                 // is alive and will join: no step is complete before it has
  bool member = false;
  bool idle = false;         // it was told that nothing is left for it
  bool contributed = false;  // to the step that is open
  Share pending;             // what it contributed
  bool operator==(const Seat&) const = default;
};

struct LeadState {
  graph::SyncMode mode = graph::SyncMode::kSync;
  std::int64_t passes = 1;
  std::int64_t step = 0;     // how many have been committed; async: how many contributions there were
  std::int64_t records = 0;  // of a pass; 0 until a trainer has said
  std::int64_t dealt = 0;    // passes that have been dealt out
  int least = 1;             // trainers that must have been seen before the first step
  bool begun = false;        // they have been
  std::vector<Seat> seats;   // by the trainer's number
  bool operator==(const LeadState&) const = default;
};

struct JoinAnswer {
  std::int64_t step = 0;  // the next that it is to do
  Share share;
  bool done = false;
};

class Lead {
 public:
  // `least` trainers must have been seen before the first step; 0: all.
  Lead(graph::SyncMode mode, int trainers, std::int64_t passes, int least = 0);
  explicit Lead(LeadState state) : state_(std::move(state)) {}

  // A trainer has come, or has come again: what an earlier incarnation of it had not contributed it does
  // again. FailedPrecondition: it counts other records than the others. Aborted: a later incarnation has
  // joined. NotFound: the job has no such trainer (any more).
  absl::StatusOr<JoinAnswer> Join(int trainer, std::int64_t incarnation, std::int64_t records,
                                  std::int64_t attempt = 1);
  // It is alive and was a member before the lead began anew.
  void Await(int trainer);
  // Its lease has ended. A contribution that it made still counts.
  void Leave(int trainer, std::int64_t incarnation);
  // Its gradients of `step` are on all pservers. A second call changes nothing. Aborted: it is not of this
  // time any more.
  absl::Status Contribute(int trainer, std::int64_t incarnation, std::int64_t step, const Share& used,
                          std::int64_t attempt = 1);
  // More to do, or done: then no step waits for this trainer any more. Aborted: it was told that it is done,
  // and there is something to do again: the job has gone on meanwhile, so it joins again.
  absl::StatusOr<JoinAnswer> NextShare(int trainer, std::int64_t incarnation);
  // Those that were told that they are done and have something to do again, because somebody has left. Every
  // step waits for them from now on.
  std::vector<int> Rouse();

  // Sync: the trainers whose gradients the open step is made of, if it is complete.
  std::optional<std::vector<int>> Complete() const;
  // Sync: the open step has been applied everywhere. Its records are used and the next one is open.
  void Commit();

  // Other trainers from now on: what those that go had left is dealt to the others. Nothing open counts.
  void SetTrainers(int trainers);

  // Whether that incarnation of the trainer is a member.
  bool IsHere(int trainer, std::int64_t incarnation) const;
  // The first step of the trainer that is not committed.
  std::int64_t OpenStepOf(int trainer) const;

  // All records of all passes are used.
  bool Done() const;
  // How many records of a pass have been used.
  std::int64_t Used(std::int64_t pass) const;
  // Whom the open step waits for, for people: "trainer-1 (has not joined yet), trainer-3".
  std::string WaitsFor() const;

  const LeadState& state() const { return state_; }
  // What of the state a checkpoint keeps: nobody is a member, nothing is open.
  std::string Save() const;
  static absl::StatusOr<LeadState> Load(std::string_view text);

 private:
  absl::StatusOr<Seat*> Find(int trainer, std::int64_t incarnation);
  // Its trainer is not here, and nobody waits for it.
  bool IsGone(const Seat& seat) const;
  // For those that are here or still to come.
  void DealOut(std::int64_t pass, const Ranges& ranges);
  bool DealNextPass();
  // What those that are gone had left of the first pass that they had something left of.
  bool DealOrphans();
  JoinAnswer AnswerFor(const Seat& seat) const;
  void Use(Seat& seat);

  LeadState state_;
};

}  // namespace trainyard::ps
