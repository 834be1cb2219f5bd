// What is learnt from, on a thread of its own: gradients come in, are judged, added up and applied; the model
// goes out. Which records a gradient is of, and whether they may still count, is for the account to say;
// where the model is, for its place.
//
//   Push ──▶ [whole] ── Account::Accept ──▶ [added] ── grads_to_wait ──▶ ModelPlace::Apply ──▶
//   Account::Applied
//                 │ too old: kStale                   └── or nothing more is to come: Flush
//                 └ not its task any more: kLost
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/executor.h"
#include "master/call.h"
#include "master/intake.h"
#include "master/model_place.h"
#include "tasks/task.h"

namespace trainyard::master {

// What a gradient that was applied was of: the task's records before `until`.
struct Contribution {
  tasks::TaskId task = 0;
  std::int64_t until = 0;
};

// Called on the learner's thread.
class Account {
 public:
  virtual ~Account() = default;
  enum class Claim : std::uint8_t {
    kNew,
    kRepeat,  // it counts already
    kLost,    // the task is not the worker's any more
  };
  // Whether these records of the task may count; nothing is changed.
  virtual Claim Check(tasks::WorkerIndex worker, tasks::TaskId task, tasks::Range records) = 0;
  // They count from now on, and are as good as done. As above.
  virtual Claim Accept(tasks::WorkerIndex worker, tasks::TaskId task, tasks::Range records) = 0;
  // No gradient is to be expected before those that were accepted are applied.
  virtual bool NothingToCome() = 0;
  // The model has made a step from them; or, with the version that it had before, none of them could be used.
  virtual void Applied(std::int64_t version, const std::vector<Contribution>& contributions,
                       std::optional<double> loss) = 0;
  // A loss or a variable has become NaN or infinite, and the job goes on: "step 3: element 0 of w is nan".
  virtual void FoundNonFinite(const std::string& what) = 0;
  // A gradient is to be computed again.
  virtual void Refused() = 0;
  // The model has its first values.
  virtual void Started() = 0;
  // The model cannot go on. Unavailable: it is lost, and a master that begins anew can; else the job cannot
  // either.
  virtual void Broken(const absl::Status& why) = 0;
};

struct LearnerOptions {
  std::int64_t generation = 0;  // of the master
  bool async = false;
  int grads_to_wait = 1;
  std::int64_t staleness = 0;
  bool modulate_rate = false;
  graph::OnNonFinite on_nonfinite = graph::OnNonFinite::kFail;
  std::int64_t most_model_bytes = std::int64_t{64} << 30;
  // Gives a model that a worker has offered its place.
  std::function<absl::StatusOr<std::unique_ptr<ModelPlace>>(ModelOrigin origin)> keep;
};

// All calls from any thread; what they ask for is done later, in order.
class Learner {
 public:
  Learner(LearnerOptions options, Account& account) : options_(std::move(options)), account_(account) {}

  // The model to begin with. None: the first worker that offers one gives it.
  void Take(std::unique_ptr<ModelPlace> place);

  void Push(Call call, tasks::WorkerIndex worker, wire::Push push, ps::Unpacked message);
  void Pull(Call call, const wire::Pull& pull);
  void Offer(Call call, wire::Offer offer, ps::Unpacked message);
  // The session has ended: what it has begun is forgotten.
  void Forget(const std::shared_ptr<Session>& session);
  // Applies what was summed, if nothing more is to come.
  void Flush();

  // On the learner's own thread alone: keeps the present version for those who evaluate it, instead of the
  // one that was kept before.
  void Freeze();
  // With the model's place, or null if there is none yet.
  void Do(std::function<void(ModelPlace*)> work);

  // Does what is left, and nothing that comes later.
  void Close();

 private:
  void Post(std::function<void()> work);
  void Begin(std::unique_ptr<ModelPlace> place);
  void DoPush(const Call& call, tasks::WorkerIndex worker, const wire::Push& push,
              const ps::Unpacked& message);
  void DoOffer(const Call& call, const wire::Offer& offer, const ps::Unpacked& message);
  void DoPull(const Call& call, const wire::Pull& pull);
  void Learn(ArrivedGradient& gradient, tasks::WorkerIndex worker);
  wire::Pushed::Verdict Judge(ArrivedGradient& gradient, tasks::WorkerIndex worker);
  absl::Status StartFrom(const wire::Offer& offer, NamedValues values);
  // Whether the gradient may be added, by its loss.
  bool IsUsable(const wire::Push& push, tasks::WorkerIndex worker);
  void Apply();
  void Break(const absl::Status& why);

  const LearnerOptions options_;
  Account& account_;
  std::unique_ptr<ModelPlace> place_;
  bool ready_ = false;
  std::vector<Contribution> contributions_;
  std::int64_t records_ = 0;  // of the gradients that were added
  double rate_ = 1;
  double loss_ = 0;                       // of these gradients, added up by records
  std::set<tasks::WorkerIndex> refused_;  // their next gradient is taken even if it is too old again
  Intake<wire::Offer> offers_;
  bool broken_ = false;
  bool lost_ = false;  // broken, but another master will go on
  std::atomic<bool> closed_ = false;
  Executor thread_;  // last: it ends first
};

}  // namespace trainyard::master
