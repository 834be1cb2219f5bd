// What a user asks an elastic job to do: one value, stored as JSON, that master and workers read.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "graph/build/builder.h"
#include "graph/exec/finite.h"

namespace trainyard::master {

enum class JobKind : std::uint8_t { kTrain, kEvaluate, kPredict };
std::string_view Name(JobKind kind);  // "train", "evaluate", "predict"

// Records that go together by number: each source is a list of files and globs, by commas; or, where the
// model has a reader of its own, whatever that one takes.
using DataSources = std::vector<std::string>;

struct PodSpec {
  std::string cpu;
  std::string memory;
  std::string gpu;
  std::string priority_class;
  bool operator==(const PodSpec&) const = default;
};

struct JobSpec {
  std::string name;
  std::string id;  // of this run of that name
  JobKind kind = JobKind::kTrain;

  // ---- The model: a file of Python, or a program
  std::string model;
  std::string program;                        // of a Program: its bytes, base64
  std::map<std::string, std::string> params;  // for the model's own functions

  // ---- Data
  DataSources training_data;
  DataSources validation_data;
  DataSources prediction_data;
  std::string data_format = "auto";
  bool skip_header = false;
  // The name of the model's function that reads the sources; "": they are record files. Then master and
  // workers are told how many records there are, and do not look.
  std::string data_reader;
  std::int64_t training_records = 0;
  std::int64_t validation_records = 0;
  std::int64_t prediction_records = 0;
  std::string folder;  // that names of sources are relative to, if they are the names of files
  std::int64_t minibatch = 64;
  std::int64_t minibatches_per_task = 8;
  std::int64_t epochs = 1;
  std::int64_t max_steps = 0;  // 0: no limit
  std::uint64_t seed = 1;
  std::string shuffle = "tasks";  // none, tasks, records
  bool overlap_epochs = false;
  int most_failures = 3;  // of one task by itself

  // ---- Learning
  bool async = false;
  int grads_to_wait = 1;
  std::int64_t staleness = 0;  // versions that a gradient may be behind
  bool modulate_rate = false;  // async: the rate divided by how far it is behind
  int pull_every = 1;          // async: minibatches between two looks at the model
  graph::OnNonFinite on_nonfinite = graph::OnNonFinite::kFail;
  bool tasks_only = false;  // the master deals records; workers learn by themselves, and report tasks

  // ---- Evaluation, checkpoints, output
  std::int64_t evaluation_steps = 0;  // versions between two; 0: only at the end
  absl::Duration evaluation_every;    // zero: by steps alone
  absl::Duration evaluation_delay;    // the first one no sooner
  std::int64_t checkpoint_steps = 0;
  absl::Duration checkpoint_every = absl::Seconds(2);
  std::int64_t keep_checkpoints = 3;  // 0: all
  std::string checkpoint_dir;         // "": the job's own storage
  std::string init_from;              // a folder of checkpoints, or one
  std::string output;
  std::string writer;  // the name of the model's function that writes predictions

  // ---- Pods
  int workers = 2;
  int min_workers = 1;
  int max_workers = 2;
  int pservers = 0;                                 // that have the model; 0: the master has it
  int most_restarts = 0;                            // of one worker by its own fault, in a row; 0: no limit
  absl::Duration task_timeout = absl::Minutes(10);  // without progress; zero: none
  PodSpec worker_pod;
  PodSpec pserver_pod;
  PodSpec master_pod;
  int threads = 1;  // inside one operator of a worker

  std::int64_t RecordsPerTask() const { return minibatch * minibatches_per_task; }
  bool operator==(const JobSpec&) const = default;
};

std::string Print(const JobSpec& spec);
// InvalidArgument: which field is wrong.
absl::StatusOr<JobSpec> ParseJobSpec(std::string_view json);

// So many records a source may say that it has: numbers up to here are exact in all that reads JSON.
inline constexpr std::int64_t kMostRecords = std::int64_t{1} << 53;

// What can be known to be wrong without looking at files: one sentence, and what to do.
absl::Status Validate(const JobSpec& spec);

// ---- A program and its startup program as one list of bytes, as the Python package writes them.

// InvalidArgument: these are other bytes.
absl::StatusOr<graph::Programs> DecodePrograms(std::string_view bytes);
std::string EncodePrograms(const graph::Programs& programs);

}  // namespace trainyard::master
