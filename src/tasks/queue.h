// The task queue of dynamic sharding: which records are to be worked on, who works on which, and what is
// done. Pure: commands in, answers out. The same commands from the same state give the same answers and the
// same state, so that a stored list of commands is the queue.
//
//              Lease                      Finish, Advance to its end
//   [waiting] ───────▶ [leased, by worker] ───────────▶ [done]
//       ▲                  │     │ Keep
//       └──────────────────┘     └──▶ [kept, by nobody] ── Advance ──▶ [done]
//        Return, Fail, Leave,         (its rest goes back to waiting)
//        Join of a later incarnation
//
// Every record of an epoch is in exactly one of these places. Each command takes constant time, but for those
// that give back all that a worker has.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "tasks/stream.h"
#include "tasks/task.h"
#include "tasks/task_table.h"

namespace trainyard::tasks {

// ---- Commands

// A stream of work of that kind begins; it must have none, or one that is over.
struct Begin {
  Kind kind = Kind::kTraining;
  StreamOptions options;
  std::int64_t version = 0;  // that is evaluated
  bool operator==(const Begin&) const = default;
};
// No more of it is given out, and what is given back is dropped.
struct Stop {
  Kind kind = Kind::kTraining;
  bool operator==(const Stop&) const = default;
};
// A worker has come. What an earlier incarnation of it has is given back.
struct Join {
  WorkerIndex worker = 0;
  std::int64_t incarnation = 0;
  bool operator==(const Join&) const = default;
};
// A worker is gone, and what it has is given back. That never counts against a task.
struct Leave {
  WorkerIndex worker = 0;
  bool operator==(const Leave&) const = default;
};
// A worker wants something to do: evaluation comes first, then what was given back, then the next range. What
// has failed on it is for others, as long as there is a worker that it has not failed on.
struct Lease {
  WorkerIndex worker = 0;
  bool operator==(const Lease&) const = default;
};
// The task's records before `until` are done for good; with its last one it is done. Records that were done
// before are left as they are.
struct Advance {
  TaskId task = 0;
  std::int64_t until = 0;
  bool operator==(const Advance&) const = default;
};
// A number that was found out about the records of a task: the mean over them.
struct Metric {
  std::string name;
  double value = 0;
  bool operator==(const Metric&) const = default;
};
// All that is left of the task is done. What was found out in it counts once, by its records.
struct Finish {
  WorkerIndex worker = 0;
  TaskId task = 0;
  std::vector<Metric> metrics;  // of an evaluation
  bool operator==(const Finish&) const = default;
};
// The worker has no more to do with the task: its records before `until` are as good as done, and wait for
// an Advance that nobody but the caller's own work can hold up; the others are given back.
struct Keep {
  TaskId task = 0;
  std::int64_t until = 0;
  bool operator==(const Keep&) const = default;
};
// The worker gives the task back unfinished, for no fault of the task's.
struct Return {
  WorkerIndex worker = 0;
  TaskId task = 0;
  bool operator==(const Return&) const = default;
};
// The worker could not do it, and others may not be able to either: after so many times the queue fails.
struct Fail {
  WorkerIndex worker = 0;
  TaskId task = 0;
  std::string error;
  bool operator==(const Fail&) const = default;
};
// All that is leased or kept goes back, and no worker is known any more: whoever held them in mind is gone.
struct Recall {
  bool operator==(const Recall&) const = default;
};

using Command = std::variant<Begin, Stop, Join, Leave, Lease, Advance, Finish, Keep, Return, Fail, Recall>;

// ---- Answers

enum class Verdict : std::uint8_t {
  kOk,
  kTask,     // of Lease: here is one
  kWait,     // of Lease: nothing now, but others have work that may come back, or an epoch is about to end
  kOver,     // of Lease: nothing, and nothing will come
  kFailed,   // the queue has failed: failure() says why
  kUnknown,  // no such task, or not this worker's (any more)
};

struct Answer {
  Verdict verdict = Verdict::kOk;
  Task task;          // kTask; of Advance, Finish, Return and Fail: as it was before
  bool done = false;  // of Advance and Finish: the task is done with this
  bool operator==(const Answer&) const = default;
};

struct QueueOptions {
  int most_failures = 3;  // of one range, by itself, at which the queue fails
  bool operator==(const QueueOptions&) const = default;
};

class Queue {
 public:
  // A lease as it is stored.
  struct Leased {
    Task task;
    WorkerIndex worker = kNobody;
    bool operator==(const Leased&) const = default;
  };
  // A range that has failed and is not done yet, and on whom.
  struct FailedRange {
    Kind kind = Kind::kTraining;
    std::int64_t epoch = 0;
    std::int64_t end = 0;  // which stays when its first records are done
    std::vector<WorkerIndex> workers;
    bool operator==(const FailedRange&) const = default;
  };
  struct State {
    QueueOptions options;
    TaskId next_id = 1;
    std::optional<Stream::State> streams[kKinds];
    std::int64_t evaluated_version = 0;
    std::vector<Metric> metrics;                                // summed up, each record's; by name
    std::vector<Leased> leased;                                 // by id
    std::vector<std::pair<WorkerIndex, std::int64_t>> workers;  // with their incarnation, by index
    std::string failure;
    std::vector<FailedRange> failed;  // by kind, epoch and end
    bool operator==(const State&) const = default;
  };

  explicit Queue(QueueOptions options = {}) : options_(options) {}
  // Of a state that Save() gave.
  explicit Queue(const State& state);

  Answer Apply(const Command& command);

  State Save() const;

  // ---- What there is to see

  const std::string& failure() const { return failure_; }
  // Null: there was none of that kind.
  const Stream* Find(Kind kind) const;
  // Leased or kept.
  std::int64_t CountLeased(Kind kind) const { return leased_of_kind_[static_cast<int>(kind)]; }
  // All of that kind is done, or stopped; also where there was none.
  bool IsOver(Kind kind) const;
  bool IsOver() const;
  std::int64_t evaluated_version() const { return evaluated_version_; }
  // Of the present evaluation: the means over the records that are done, by name.
  std::vector<Metric> MeanMetrics() const;
  // What is left of a task; nothing: it is done, or was given back.
  std::optional<Leased> FindTask(TaskId id) const;
  // Oldest first; kNobody: those that are kept.
  std::vector<Task> TasksOf(WorkerIndex worker) const;
  bool HasTasks(WorkerIndex worker) const;
  // Whether a Lease of it would give a task.
  bool HasFor(WorkerIndex worker) const;

 private:
  struct Worker {
    std::int64_t incarnation = 0;
    TaskId first = 0;
    TaskId last = 0;
  };

  Answer Do(const Begin& begin);
  Answer Do(const Stop& stop);
  Answer Do(const Join& join);
  Answer Do(const Leave& leave);
  Answer Do(const Lease& lease);
  Answer Do(const Advance& advance);
  Answer Do(const Finish& finish);
  Answer Do(const Keep& keep);
  Answer Do(const Return& back);
  Answer Do(const Fail& fail);
  Answer Do(const Recall& recall);

  using RangeKey = std::tuple<Kind, std::int64_t, std::int64_t>;  // kind, epoch, end
  // Whether the worker may have what was given back.
  Stream::Admit AdmitFor(WorkerIndex worker, Kind kind) const;
  void ForgetFailures(Kind kind);
  Stream& StreamOf(Kind kind) { return *streams_[static_cast<int>(kind)]; }
  Task TaskOf(TaskId id, const Lessee& entry) const;
  // Null: none of that number, or another's.
  Lessee* FindOf(WorkerIndex worker, TaskId id);
  void Link(TaskId id, Lessee& entry);
  void Unlink(const Lessee& entry);
  void Insert(TaskId id, const Lessee& entry);
  void Erase(TaskId id, const Lessee& entry);
  void GiveBack(TaskId id, const Lessee& entry);
  void GiveBackAllOf(WorkerIndex worker);

  QueueOptions options_;
  TaskId next_id_ = 1;
  std::optional<Stream> streams_[kKinds];
  std::int64_t evaluated_version_ = 0;
  std::map<std::string, double> metrics_;  // summed up over records
  TaskTable leased_;
  std::int64_t leased_of_kind_[kKinds] = {};
  absl::flat_hash_map<WorkerIndex, Worker> workers_;  // and kNobody
  std::string failure_;
  std::map<RangeKey, std::vector<WorkerIndex>> failed_;  // on whom
};

}  // namespace trainyard::tasks
