// The model and what is done with it, on a thread of its own: gradients come in, are checked, added up and
// applied; the model goes out. Which records a gradient is of, and whether they may still count, is for the
// account to say.
//
//   Push ──▶ [assembled] ── Account::Accept ──▶ [summed] ── grads_to_wait ──▶ Model::Apply ──▶
//   Account::Applied
//                 │ too old: kStale                   └── or nothing more is to come: Flush
//                 └ not its task any more: kLost
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/executor.h"
#include "master/call.h"
#include "master/model.h"
#include "master/variables.h"
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
  // The model has made a step from them.
  virtual void Applied(std::int64_t version, const std::vector<Contribution>& contributions, double loss) = 0;
  // A gradient is to be computed again.
  virtual void Refused() = 0;
  // The model has its first values.
  virtual void Started() = 0;
  // The model cannot go on; the job cannot either.
  virtual void Broken(const absl::Status& why) = 0;
};

struct LearnerOptions {
  std::int64_t generation = 0;  // of the master
  bool async = false;
  int grads_to_wait = 1;
  std::int64_t staleness = 0;
  bool modulate_rate = false;
  std::int64_t most_model_bytes = std::int64_t{64} << 30;
  int threads = 1;
};

// All calls from any thread; what they ask for is done later, in order.
class Learner {
 public:
  Learner(LearnerOptions options, Account& account) : options_(options), account_(account) {}

  // The model to begin with. None: the first worker that offers one gives it.
  void Take(std::unique_ptr<Model> model);

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
  // With the model, or null if there is none yet.
  void Do(std::function<void(Model*)> work);

 private:
  struct Incoming {
    Assembly assembly;
    std::vector<Call> calls;  // of its messages so far
    wire::Push push;          // the first one's head, or
    wire::Offer offer;
  };

  void DoPush(const Call& call, tasks::WorkerIndex worker, const wire::Push& push,
              const ps::Unpacked& message);
  void DoOffer(const Call& call, const wire::Offer& offer, const ps::Unpacked& message);
  void DoPull(const Call& call, const wire::Pull& pull);
  void Learn(const Incoming& incoming, tasks::WorkerIndex worker, Gradients gradients);
  wire::Pushed Judge(const wire::Push& push, tasks::WorkerIndex worker, Gradients gradients);
  absl::Status StartFrom(const Incoming& incoming, NamedValues values);
  void Apply();
  const NamedValues& Newest();
  void Hold(Session* session, std::int64_t version, const NamedValues& values);
  static NamedValues ValuesOf(const Snapshot& snapshot);
  wire::Pulled PulledOf(std::int64_t version, const NamedValues& values) const;

  const LearnerOptions options_;
  Account& account_;
  std::unique_ptr<Model> model_;
  GradientSum sum_;
  std::vector<Contribution> contributions_;
  double rate_ = 1;
  double loss_ = 0;                       // of the reports in the sum, added up by records
  std::set<tasks::WorkerIndex> refused_;  // their next gradient is taken even if it is too old again
  std::map<Session*, Incoming> incoming_;
  NamedValues newest_;  // what workers get, of newest_version_
  std::int64_t newest_version_ = -1;
  // Of models that take several messages: what a worker has begun to fetch stays as it was.
  struct Held {
    std::int64_t version = -1;
    NamedValues values;
  };
  std::map<Session*, Held> held_;
  NamedValues frozen_;
  std::int64_t frozen_version_ = -1;
  bool broken_ = false;
  Executor thread_;  // last: it ends first
};

}  // namespace trainyard::master
