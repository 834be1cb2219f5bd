// The master of a training: deals records to workers, learns from their gradients, evaluates, keeps
// checkpoints, and goes on where it was when it is started again.
//
// Three threads have a part each: the server's takes what workers say, under the lock; the learner's has the
// model; the clock's does what is due. What must survive is stored by the task log before anybody is told.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "graph/ir/program.h"
#include "job/progress.h"
#include "kv/store.h"
#include "master/restarts.h"
#include "master/spec.h"
#include "tasks/queue.h"

namespace trainyard::master {

struct MasterOptions {
  JobSpec spec;
  std::string ns = "default";
  std::string listen = "127.0.0.1:0";
  std::string token;
  std::string folder;  // of checkpoints, where the spec names none
  absl::Duration reconnecting =
      absl::Milliseconds(40);  // a worker whose stream broke may come back for so long
  absl::Duration deadline_of_stop = absl::Seconds(20);  // for the last checkpoint
  std::optional<LastEnd> last_end;                      // the agent has restarted the master in its pod
};

using Phase = job::WorkPhase;

// Where the job stands.
struct Progress : job::Progress {
  std::int64_t stale = 0;          // gradients that were computed again
  std::int64_t waiting_tasks = 0;  // that nobody has
};

// A worker as the master sees it.
struct WorkerView {
  tasks::WorkerIndex index = 0;
  std::string pod;
  std::int64_t incarnation = 0;  // of its process
  bool connected = false;
  bool takes_part = false;  // it has done something for the job
  bool has_tasks = false;
  absl::Duration idle;  // since it last made progress
};

struct PserverView {
  int index = 0;
  std::int64_t incarnation = 0;  // of its process
  bool works = false;            // it has its part of the model
};

class Master {
 public:
  // Takes the job over from whoever had it: its queue, and its model from the newest checkpoint. Errors that
  // no restart would mend are IsFinal(). The store outlives it.
  static absl::StatusOr<std::unique_ptr<Master>> Start(kv::Store& store, MasterOptions options);
  virtual ~Master() = default;

  virtual int port() const = 0;
  // Until the job is over: OK if it is complete. Unavailable: stopped, or its log was taken over. Aborted: a
  // pserver was lost, and a master that is started anew goes on from the newest checkpoint.
  virtual absl::Status Wait() = 0;
  // Writes a checkpoint, if there is time, and ends. From any thread.
  virtual void Stop() = 0;

  virtual Progress GetProgress() = 0;
  virtual std::vector<WorkerView> GetWorkers() = 0;
  // The pod of a worker, or of a pserver, is gone, so it will not come back by itself.
  virtual void WorkerIsGone(tasks::WorkerIndex worker, const std::string& pod) = 0;
  virtual void PserverIsGone(int pserver, const std::string& pod) = 0;
  // Those that are connected.
  virtual std::vector<PserverView> GetPservers() = 0;
  // How many pods of a role have been launched and have not ended. When the job is over, the master stays for
  // a moment for those that have not come yet, and tells them.
  virtual void ExpectPods(const std::string& role, int live) = 0;
  // The job cannot go on: why.
  virtual void Fail(const std::string& reason) = 0;
};

}  // namespace trainyard::master
