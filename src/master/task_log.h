// The task queue made durable: every command is stored before anybody is told what came of it, many of them
// with one write, and the queue is rebuilt from what is stored.
//
//   PREFIX/owner              who may write; whoever opens the log takes it, and who had it is refused
//   PREFIX/snapshot           the queue's state and the number of the last batch in it
//   PREFIX/log/000000000012   the commands of a batch, one behind the other
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "kv/store.h"
#include "tasks/queue.h"

namespace trainyard::master {

// One owner at a time calls it (under a lock of its own, or from one thread); the store's thread calls in by
// itself.
class TaskLog {
 public:
  struct Options {
    std::string prefix;         // "trainyard/elastic/default/mnist"
    std::string owner;          // of this process alone
    tasks::QueueOptions queue;  // of a queue that is made
    std::int64_t batches_per_snapshot = 4096;
    // Nothing can be stored any more: another process has the log, or the store has failed for good. Called
    // once, on the store's thread.
    std::function<void(const absl::Status&)> on_broken;
  };

  // Takes the log over and rebuilds the queue. DataLoss: what is stored cannot be read. The store outlives
  // it.
  static absl::StatusOr<std::unique_ptr<TaskLog>> Open(kv::Store& store, Options options);
  // Waits for what is under way.
  ~TaskLog();
  TaskLog(const TaskLog&) = delete;
  TaskLog& operator=(const TaskLog&) = delete;

  const tasks::Queue& queue() const { return queue_; }
  // What the log had when it was opened: nothing at all.
  bool was_empty() const { return was_empty_; }

  // `durable`, if there is one, is called when the command is stored, on the store's thread or at once on
  // this one; never if it cannot be. It must not block, nor call the log.
  using Durable = std::function<void()>;
  tasks::Answer Apply(const tasks::Command& command, Durable durable = {});
  // Called when all commands so far are stored, as above.
  void WhenDurable(Durable durable);
  // Commands from here to Settle() become durable with one write.
  void Gather();
  void Settle();
  // Another state takes the queue's place; commands that follow go on from it.
  void Replace(const tasks::Queue::State& state, Durable durable = {});

  // Forgets what snapshots have made needless, and tries again what the store could not take. Waits for the
  // store. From any thread, now and then.
  void Tend();
  std::int64_t commands() const { return commands_; }

 private:
  // What becomes durable with one write.
  struct Batch {
    std::string commands;
    std::string snapshot;  // instead of commands
    std::vector<Durable> waiting;
  };

  TaskLog(kv::Store& store, Options options) : store_(store), options_(std::move(options)) {}
  absl::Status TakeOver();
  absl::Status Rebuild();
  std::string LogKey(std::int64_t number) const;
  // The batch that the next command goes to.
  Batch& Open() TY_REQUIRES(mu_);
  // Writes what waits, if nothing is being written.
  void Pump() TY_EXCLUDES(mu_);
  void Write(kv::TxnRequest request) TY_EXCLUDES(mu_);
  void OnWritten(const absl::StatusOr<kv::TxnResult>& result);
  kv::TxnRequest Request(const Batch& batch) const TY_REQUIRES(mu_);

  kv::Store& store_;
  const Options options_;
  tasks::Queue queue_;
  bool was_empty_ = true;
  std::int64_t commands_ = 0;

  Mutex mu_;
  CondVar changed_;
  std::int64_t number_ TY_GUARDED_BY(mu_) = 0;          // of the last batch that is stored
  std::int64_t since_snapshot_ TY_GUARDED_BY(mu_) = 0;  // batches
  std::deque<Batch> batches_ TY_GUARDED_BY(mu_);
  bool front_is_written_ TY_GUARDED_BY(mu_) = false;  // the first batch is under way, and takes no more
  bool writing_ TY_GUARDED_BY(mu_) = false;           // the store has something of ours, or calls us
  bool stalled_ TY_GUARDED_BY(mu_) = false;           // the store could not take the first one
  bool broken_ TY_GUARDED_BY(mu_) = false;
  bool gathering_ TY_GUARDED_BY(mu_) = false;
  kv::Revision snapshot_revision_ TY_GUARDED_BY(mu_) = 0;
};

}  // namespace trainyard::master
