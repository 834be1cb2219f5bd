// Graph jobs, as a user runs them: find and kill by name, begin, add workers, start, follow, scale, stop.
//
//   auto graphs = graph::Transpile(programs, {.trainers = 4, .passes = 2, .pservers = 2});
//   auto yard = GraphJobs::Open({});
//   auto job = yard->InitJob("test_1", {});
//   Workers* trainers = *job->AddWorkers(graphs->trainers, {.resource = {.cpu = "1", .memory = "512Mi"}});
//   Workers* pservers = *job->AddWorkers(graphs->pservers, {});
//   pservers->Start(); trainers->Start();
//   for (auto outputs = trainers->Get({"acc"});;) { auto next = outputs->Next(absl::Seconds(10)); ... }
//   job->Stop();
//
// Under it is an AITrainingJob: pods that end are made again by the operator, and nodes that fail are its
// matter too.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cluster.h"
#include "client/manifests.h"
#include "client/output_stream.h"
#include "graph/pass/transpile.h"
#include "ps/tables.h"

namespace trainyard::client {

// Foreground: when the client ends, or dies, so does the job, after the lease at the latest. Background: the
// job goes on, and whoever knows its name attaches to it.
enum class RunType { kForeground, kBackground };

struct JobOptions {
  RunType run_type = RunType::kForeground;
  absl::Duration lease = absl::Seconds(10);  // of a foreground job's client
  std::int64_t checkpoint_every = 100;       // steps
  graph::OnNonFinite on_nonfinite = graph::OnNonFinite::kFail;
};

struct WorkersOptions {
  graph::Resource resource;  // of each pod
  // Set: trainers come and go with the cluster's load, between these.
  std::optional<GroupSettings::Bounds> elastic;
  std::optional<int> restart_limit;  // none: as often as it takes
  int threads = 1;                   // inside one operator
};

// "Waiting", "Running", "Complete", "Failed".
std::string_view Name(ps::JobState state);

struct JobStatus {
  ps::JobState state = ps::JobState::kWaiting;
  std::string reason;  // of a failure
  std::string phase;   // of the AITrainingJob, and why: "Pending: 0/1 nodes are available"
  int trainers = 0;
  int pservers = 0;
  std::int64_t steps = 0;  // of a job that is complete
};

class Job;

// All trainers or all pservers of a job; the job's own.
class Workers {
 public:
  virtual ~Workers() = default;
  virtual graph::GraphRole role() const = 0;
  virtual int count() const = 0;

  // Has the pods made, and returns without waiting for them. The job must have its trainers and its pservers
  // by then. Once started is started.
  virtual absl::Status Start() = 0;
  // What they put out under these names in steps that count, from the beginning; all that they put out if
  // there are none. `uncommitted`: also in steps that do not count. The job must outlive it.
  virtual absl::StatusOr<std::unique_ptr<OutputStream>> Get(std::vector<std::string> names,
                                                            bool uncommitted = false) = 0;
  // So many from now on, while the job runs; nothing that was learnt is lost. Trainers take part from the
  // next step on. Pservers write a checkpoint, are cut anew and go on from it.
  virtual absl::Status Scale(int count) = 0;
};

class Job {
 public:
  // Lets go.
  virtual ~Job() = default;
  virtual const std::string& name() const = 0;

  // All graphs of one side, as Transpile() gave them.
  virtual absl::StatusOr<Workers*> AddWorkers(std::vector<graph::Graph> graphs,
                                              const WorkersOptions& options) = 0;
  // Null: there are none yet.
  virtual Workers* trainers() = 0;
  virtual Workers* pservers() = 0;

  // Begins with these values instead of the initialisers': a file NAME.tensor for each variable, as an
  // executor saves them. Before the first Start(). Variables without a file keep their initial value if that
  // is allowed. The job's storage must be a folder that this machine sees too.
  virtual absl::Status Load(const std::string& folder, bool allow_missing) = 0;
  // Writes the variables of the newest checkpoint so, or of the one of that step, and returns its step. Of a
  // job that is complete the newest is that of its end, or there is an error, as there is if it has
  // non-finite values.
  virtual absl::StatusOr<std::int64_t> Save(const std::string& folder,
                                            std::optional<std::int64_t> step = std::nullopt) = 0;

  virtual absl::StatusOr<JobStatus> Status() = 0;
  // Until it is complete. DeadlineExceeded: it is not yet. Others: why it failed.
  virtual absl::Status Wait(absl::Duration timeout) = 0;
  // Ends it if it runs, and removes it from the cluster and from the store, and its checkpoints if this
  // machine sees them.
  virtual absl::Status Stop() = 0;
  // This client goes: a foreground job ends now, a background job goes on.
  virtual void LetGo() = 0;
};

// All calls may be made from many threads, but those of one job from one at a time.
class GraphJobs {
 public:
  static absl::StatusOr<std::unique_ptr<GraphJobs>> Open(ClusterOptions options);
  virtual ~GraphJobs() = default;

  // Whether there is a job of that name, whatever its state.
  virtual absl::StatusOr<bool> Find(std::string_view name) = 0;
  // Ends and removes it. NotFound: there is none.
  virtual absl::Status Kill(std::string_view name) = 0;
  // Begins a job; starts the store if there is none. AlreadyExists: kill that one first, or attach to it.
  // Must outlive its jobs.
  virtual absl::StatusOr<std::unique_ptr<Job>> InitJob(std::string_view name, const JobOptions& options) = 0;
  // A job that was started, by whomever. NotFound: there is none.
  virtual absl::StatusOr<std::unique_ptr<Job>> Attach(std::string_view name) = 0;
};

// ---- What a graph job may be called, and what its objects in the cluster are called. Pure.

// Letters, digits, '-', '_' and '.', beginning and ending with a letter or digit; 63 characters at most: what
// a label's value may be. InvalidArgument: what is wrong with it.
absl::Status CheckJobName(std::string_view name);

// The name of its AITrainingJob, of whose name pods and services are called: the job's own where that can be
// ("mnist"), else its letters and a checksum of it ("test_1" is "test-1-c1e8a2b0"). Different jobs have
// different ones.
std::string ObjectName(std::string_view job);

}  // namespace trainyard::client
