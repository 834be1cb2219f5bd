// A pserver's variables on disk: parameters, accumulators, the schedule's step, and what the lead knows of
// the data.
//
// A file is written beside its place, synced, renamed; then the store's pointer is moved; then files that
// nobody needs any more go. Whatever dies when, the pointer names a whole file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/kernel/tensor.h"
#include "kv/disk/file_system.h"
#include "ps/tables.h"

namespace trainyard::ps {

struct CheckpointData {
  std::int64_t step = 0;
  std::string layout;
  std::map<std::string, graph::Tensor> variables;
  std::string extra;  // the lead's account of members and data; empty elsewhere
};

// Writes DIRECTORY/GRAPH-STEP-CHECKSUM.ckpt and says what it wrote. The folder is the job's alone, and is
// made if it is not there. No file that has been written is ever changed: what a step has when it is done
// again is another file, so that a pointer stays true until it is moved. Reads the tensors' memory while it
// runs.
absl::StatusOr<Checkpoint> WriteCheckpoint(const std::string& directory, std::string_view graph,
                                           const CheckpointData& data,
                                           kv::FileSystem& files = kv::FileSystem::System());

// DataLoss: the file is not what the pointer says (size, checksum), or is damaged inside; the message names
// it.
absl::StatusOr<CheckpointData> ReadCheckpoint(const Checkpoint& checkpoint,
                                              kv::FileSystem& files = kv::FileSystem::System());

// A checkpoint on its way into the graph's pointers.
struct Publication {
  Checkpoint checkpoint;
  std::vector<std::string> pservers;  // all that have a checkpoint of a step before an older one is forgotten
  bool latest = false;                // those of later steps are older than it, and are forgotten
};

// Adds the checkpoint to the graph's pointers, forgets those below the last but one step that all of
// `pservers` have, but for the newest step that all have without non-finite values, and deletes the forgotten
// files after the pointer was stored. The last but one is kept for whoever is about to go back to it, having
// looked just before the last one was there.
absl::Status PublishCheckpoint(kv::Store& store, const JobKeys& keys, std::string_view graph,
                               const Publication& publication,
                               kv::FileSystem& files = kv::FileSystem::System());

// After the job went back to `step`: forgets the graph's checkpoints above it, which are of steps that did
// not happen, and deletes them. Else one of them could be taken for the same step's of the others when it
// comes again.
absl::Status ForgetCheckpointsAbove(kv::Store& store, const JobKeys& keys, std::string_view graph,
                                    std::int64_t step, kv::FileSystem& files = kv::FileSystem::System());

// The pointers of each graph at one time, in the order of `graphs`.
absl::StatusOr<std::vector<GraphCheckpoints>> GetCheckpoints(kv::Store& store, const JobKeys& keys,
                                                             const std::vector<std::string>& graphs);

// Which step to save as the job's model, given the checkpoints of all its pservers: the one that is wanted,
// or the newest that all have. NotFound: they do not have that one. FailedPrecondition: there is none yet; or
// the job is complete and theirs is not of its end; or it has non-finite values and is not wanted by its
// number. The message names what there is.
absl::StatusOr<std::int64_t> ChooseStepToSave(const JobMeta& meta,
                                              const std::vector<GraphCheckpoints>& pservers,
                                              std::optional<std::int64_t> wanted);

// Where all pservers of a job can go back to.
struct CommonCheckpoint {
  // Sync: the newest step that all have a checkpoint of, in the job's layout. Async, where each goes back by
  // itself: the first pserver's newest, if all have one. None: there is no such.
  std::optional<std::int64_t> step;
  // As long as this holds nobody has forgotten it: that takes two later checkpoints of every pserver.
  std::optional<kv::Compare> kept;
};
absl::StatusOr<CommonCheckpoint> FindCommonCheckpoint(kv::Store& store, const JobKeys& keys,
                                                      const JobMeta& meta);
// Puts the meta if it and the checkpoint are still there; false: look again.
absl::StatusOr<bool> PutMetaIf(kv::Store& store, const JobKeys& keys, const JobMeta& meta,
                               kv::Revision revision, const CommonCheckpoint& common);

// Once all of the job's pservers have a checkpoint of its layout: deletes the pointers and files of those
// that it had more of before.
absl::Status ForgetSurplusCheckpoints(kv::Store& store, const JobKeys& keys, const JobMeta& meta,
                                      kv::FileSystem& files = kv::FileSystem::System());

// The old graphs, by the numbers of their pservers: main programs, and what was in their checkpoints.
struct OldLayout {
  std::vector<graph::Program> mains;
  std::vector<CheckpointData> data;
};

// What a graph of a new layout needs of the files of an old one: each persistable variable put together from
// the pieces that the old graphs had, in memory of its own. `variables` are those of the new graph, with
// their slices, and `pservers` is how many there are now; a graph that has everything whole, as a program
// that was not transpiled has, is a layout of one. kShare may be missing: the server sets it. NotFound: a
// piece is missing, and which. InvalidArgument: a variable has other dims or another type than it had.
absl::StatusOr<std::map<std::string, graph::Tensor>> Recut(const std::vector<graph::Var>& variables,
                                                           int pservers, const OldLayout& old);

}  // namespace trainyard::ps
