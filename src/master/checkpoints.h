// Checkpoints of an elastic job: one file for each version, with the model, what its optimizer keeps, and
// where the task queue stood. ps/checkpoint.h has the file: written aside, synced, renamed, every byte
// checksummed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/kernel/tensor.h"
#include "ps/checkpoint.h"
#include "tasks/queue.h"

namespace trainyard::master {

// A file beside a checkpoint's own, with what one pserver had of its variables.
struct CheckpointPart {
  std::string file;  // its name, in the same folder
  std::uint64_t bytes = 0;
  std::uint32_t crc32c = 0;
  bool operator==(const CheckpointPart&) const = default;
};

struct ElasticCheckpoint {
  std::int64_t version = 0;
  std::map<std::string, graph::Tensor> variables;
  std::vector<CheckpointPart> parts;  // by pserver; when it is written: `variables` are in these
  std::string file;                   // that it was read from
  std::string update;                 // programs, as bytes: how it learns,
  std::string startup;                // and how it began
  std::vector<std::string> shared;    // the variables that workers get
  std::string job;                    // the id of the run that it is of
  std::string name;
  std::int64_t evaluated = -1;         // the last version that was evaluated
  std::vector<tasks::Metric> metrics;  // and what was found
  tasks::Queue::State queue;
  std::string nonfinite;  // which element is NaN or infinite, as graph::FindNonFinite() names it; "": none is
};

// One that is there, by what its name and size tell.
using FoundCheckpoint = ps::Checkpoint;

// The folder's checkpoints, by version. NotFound: there is no such folder.
absl::StatusOr<std::vector<FoundCheckpoint>> ListCheckpoints(const std::string& folder);

// The same of a folder or of one file. InvalidArgument: the file's name is none of a checkpoint's.
absl::StatusOr<std::vector<FoundCheckpoint>> FindCheckpoints(const std::string& path);

// What the parts beside a folder's checkpoints take, by version.
std::map<std::int64_t, std::uint64_t> CountPartBytes(const std::string& folder);

// Makes the folder if need be, and afterwards deletes all but the newest `keep` that are whole, if that is
// not 0, and parts that no checkpoint names. The newest one without non-finite values stays in any case. Its
// own parts must be there: a checkpoint counts from when its file is there.
absl::StatusOr<FoundCheckpoint> WriteElasticCheckpoint(const std::string& folder,
                                                       const ElasticCheckpoint& checkpoint,
                                                       std::int64_t keep);

// The part of a pserver, which the file that names it makes count.
absl::StatusOr<CheckpointPart> WriteCheckpointPart(const std::string& folder, int pserver,
                                                   std::int64_t version,
                                                   const std::map<std::string, graph::Tensor>& variables);

// Whole, also if it was written in parts. DataLoss: it is damaged; the message names it.
absl::StatusOr<ElasticCheckpoint> ReadElasticCheckpoint(const FoundCheckpoint& found);

// What pserver `index` of `pservers` keeps, of the checkpoint in that file, however many wrote it.
absl::StatusOr<std::map<std::string, graph::Tensor>> ReadShard(const std::string& file, int index,
                                                               int pservers);

// The newest that is whole, of that run if one is named; damaged ones are logged and passed over. Without a
// run, so are those with non-finite values. `path` may also be one file, which is read in any case. NotFound:
// there is none. FailedPrecondition: all have non-finite values.
absl::StatusOr<ElasticCheckpoint> ReadNewestCheckpoint(const std::string& path, std::string_view job = "");

}  // namespace trainyard::master
