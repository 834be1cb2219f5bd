// A graph job in the store: begun whole, failed with a reason, deleted.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "graph/pass/transpile.h"
#include "kv/store.h"
#include "ps/tables.h"

namespace trainyard::ps {

struct NewJob {
  graph::Graphs graphs;                 // all of one transpilation, with their resources
  std::int64_t checkpoint_every = 100;  // steps
  graph::OnNonFinite on_nonfinite = graph::OnNonFinite::kFail;
  bool foreground = false;  // it ends with its client, whose key is there before
                            // any graph starts
  int least_trainers = 0;   // so many must have been seen before the first step; 0: all
  int most_trainers = 0;    // to so many it may grow by itself; 0: as many as there are
};

// Puts the graphs, what they were made of, and the meta last: a job is there whole or not at all, and what a
// call that was interrupted left is overwritten. AlreadyExists: there is such a job. InvalidArgument: the
// graphs are not all of one transpilation, one is missing or there twice, or a trainer could not read its
// data; the message says which.
absl::Status CreateJob(kv::Store& store, IdSource& ids, const JobKeys& keys, const NewJob& job);

// Deletes all keys of the job, the meta first: whoever looks then finds no job. Its graphs end by themselves.
absl::Status DeleteJob(kv::Store& store, const JobKeys& keys);

// The job ends for good, and this is why; every graph of it ends when it sees that. A job that has ended
// stays as it is.
absl::Status FailJob(kv::Store& store, const JobKeys& keys, std::string_view reason);

// With which every graph of a failed job ends.
absl::Status JobFailedError(const JobMeta& meta);
// With which every graph of a job ends that is not there any more.
absl::Status JobDeletedError(const JobKeys& keys);

// The client of a foreground job is gone: fails the job with that reason, as soon as the store can be
// reached. Whoever notices does it. Returns when it is done, or `stopping`.
void FailWithoutClient(kv::Store& store, const JobKeys& keys, const std::atomic<bool>& stopping);

// Whether this end of a graph is for good: no restart mends it, and the job's state says why. Others (a lease
// that was lost, a store or a peer that cannot be reached, Cancelled) are worth another start.
bool IsFinal(const absl::Status& status);

// The `read` of a trainer's steps. InvalidArgument: there is none, or there are two.
absl::StatusOr<const graph::Op*> FindRead(const graph::Graph& graph);

}  // namespace trainyard::ps
