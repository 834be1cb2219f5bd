// What every worker does, whatever its model is written in: takes tasks, reads their records ahead, tells
// gradients, fetches the model. Under it is one link to the master.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "master/rpc/link.h"
#include "master/spec.h"
#include "master/variables.h"
#include "tasks/queue.h"
#include "tasks/task.h"

namespace trainyard::master {

struct WorkerOptions {
  std::string master;  // HOST:PORT
  std::string token;
  int index = -1;  // -1: any
  std::string pod;
  absl::Duration patience = absl::Minutes(10);  // with a master that is away
  // While it connects, as of LinkOptions.
  std::function<void(std::function<void()> stop)> on_running = [](const std::function<void()>&) {};
};

// A minibatch: records of one task, in order, and what was made of them.
struct Batch {
  tasks::Task task;
  tasks::Range records;
  bool last = false;  // of its task
  std::shared_ptr<void> content;
};

// The model as it came.
struct PulledModel {
  std::int64_t generation = 0;
  std::int64_t version = -1;
  NamedValues values;
};

enum class PushVerdict : std::uint8_t { kAccepted, kStale, kLost };
struct PushResult {
  PushVerdict verdict = PushVerdict::kLost;
  std::int64_t version = 0;
  std::optional<PulledModel> model;  // another one than the gradients were of, if it was asked for
};

class WorkerTrainer {
 public:
  // Makes a minibatch's content of the records [range) of the task; on a thread of the trainer's own.
  using Load =
      std::function<absl::StatusOr<std::shared_ptr<void>>(const tasks::Task& task, tasks::Range range)>;

  // Connects. The answer is the master's job.
  static absl::StatusOr<std::unique_ptr<WorkerTrainer>> Connect(const WorkerOptions& options);
  virtual ~WorkerTrainer() = default;

  virtual const JobSpec& job() const = 0;
  virtual int index() const = 0;

  // Begins to take tasks. Once.
  virtual void Start(Load load) = 0;
  // The next minibatch. OutOfRange: the job is over. Cancelled: after Stop(). FailedPrecondition: the job has
  // failed; the message says why.
  virtual absl::StatusOr<Batch> Next() = 0;

  // The model's first values and how they learn, two programs as bytes: the master is given them now if it
  // has no model, and again whenever it has lost it. Before Start().
  virtual absl::Status Offer(NamedValues values, std::string update, std::string startup) = 0;
  // -1: the newest. Aborted: that version is gone.
  virtual absl::StatusOr<PulledModel> Pull(std::int64_t version) = 0;
  // Gradients of a minibatch, computed with a model. The values stay the caller's, but must not change until
  // this returns.
  struct Gradient {
    std::int64_t generation = 0;
    std::int64_t version = 0;
    double loss = 0;
    bool pull = true;
    NamedValues values;
  };
  virtual absl::StatusOr<PushResult> Push(const Batch& batch, Gradient gradient) = 0;

  // What became of a task, without waiting for the master to hear it.
  virtual void Finish(const tasks::Task& task, std::vector<tasks::Metric> metrics) = 0;
  virtual void Fail(const tasks::Task& task, const std::string& error) = 0;
  virtual void Return(const tasks::Task& task) = 0;
  // The task is not this worker's any more: its minibatches that wait are forgotten.
  virtual void Drop(const tasks::Task& task) = 0;

  // Gives back what it has, waits until the master knows, and ends. From any thread.
  virtual void Stop() = 0;
};

}  // namespace trainyard::master
