#include "ps/scaling.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "graph/pass/transpile.h"
#include "kv/follower.h"
#include "kv/large_value.h"
#include "ps/checkpoint.h"
#include "ps/job.h"
#include "ps/origin.h"

namespace trainyard::ps {
namespace {

using graph::GraphRole;

absl::StatusOr<StoredMeta> GetRunning(kv::Store& store, const JobKeys& keys) {
  TY_ASSIGN_OR_RETURN(StoredMeta stored, GetMeta(store, keys));
  if (stored.meta.state == JobState::kComplete)
    return absl::FailedPreconditionError(StrCat("job ", keys.job, " is complete: it is not scaled any more"));
  if (stored.meta.state == JobState::kFailed) return JobFailedError(stored.meta);
  return stored;
}

// All graphs as they are under the meta. New ones ask for what the first of their side asks for.
absl::Status PutGraphs(kv::Store& store, IdSource& ids, const JobKeys& keys, const JobMeta& meta) {
  TY_ASSIGN_OR_RETURN(graph::Origin origin, GetOrigin(store, keys));
  graph::TranspileOptions options = origin.options;
  options.trainers = meta.trainers;
  options.pservers = meta.pservers;
  options.slots = meta.Cut().slots;
  TY_ASSIGN_OR_RETURN(graph::Graphs graphs, graph::Transpile(origin.programs, options));
  for (std::vector<graph::Graph>* side : {&graphs.trainers, &graphs.pservers}) {
    const absl::StatusOr<graph::Graph> first = GetGraph(store, keys, side->front().id);
    for (graph::Graph& graph : *side) {
      if (first.ok()) graph.resource = first->resource;
      TY_RETURN_IF_ERROR(PutGraph(store, ids, keys, graph));
    }
  }
  return absl::OkStatus();
}

// Those that the job has no place for. What is left because this was interrupted goes the next time.
absl::Status DeleteSurplus(kv::Store& store, const JobKeys& keys, const JobMeta& meta) {
  TY_ASSIGN_OR_RETURN(const std::vector<std::string> graphs, ListGraphs(store, keys));
  for (const std::string& graph : graphs) {
    const GraphName name = *ParseGraphId(graph);
    if (name.index < (name.role == GraphRole::kTrainer ? meta.trainers : meta.pservers)) continue;
    TY_RETURN_IF_ERROR(kv::DeleteLarge(store, keys.Desc(graph)));
  }
  return absl::OkStatus();
}

JobMeta WithTrainers(JobMeta meta, int n) {
  const bool elastic = meta.least_trainers < meta.most_trainers;
  // Never less: pservers need not be programmed anew when trainers go.
  meta.slots = std::max(meta.Cut().slots, n);
  meta.trainers = n;
  meta.least_trainers = elastic ? std::min(meta.least_trainers, n) : n;
  meta.most_trainers = elastic ? std::max(meta.most_trainers, n) : n;
  ++meta.generation;
  return meta;
}

// `wanted`: how many there are to be, given how many there are.
absl::Status ChangeTrainers(kv::Store& store, IdSource& ids, const JobKeys& keys,
                            const std::function<absl::StatusOr<int>(const JobMeta&)>& wanted) {
  for (;;) {
    TY_ASSIGN_OR_RETURN(const StoredMeta stored, GetRunning(store, keys));
    TY_ASSIGN_OR_RETURN(const int n, wanted(stored.meta));
    if (n == stored.meta.trainers) return absl::OkStatus();
    const JobMeta meta = WithTrainers(stored.meta, n);
    TY_RETURN_IF_ERROR(PutGraphs(store, ids, keys, meta));
    const absl::Status put = PutMeta(store, keys, meta, stored.revision).status();
    if (absl::IsAborted(put)) continue;
    TY_RETURN_IF_ERROR(put);
    log::Info(
        "the job gets other trainers",
        {{"job", keys.job}, {"before", stored.meta.trainers}, {"now", n}, {"generation", meta.generation}});
    return DeleteSurplus(store, keys, meta);
  }
}

// The number of the request: it is answered when as many have been made.
absl::StatusOr<std::int64_t> AskForCheckpoint(kv::Store& store, const JobKeys& keys) {
  for (;;) {
    TY_ASSIGN_OR_RETURN(StoredMeta stored, GetRunning(store, keys));
    const std::int64_t asked = ++stored.meta.checkpoints_asked;
    const absl::Status put = PutMeta(store, keys, stored.meta, stored.revision).status();
    if (put.ok()) return asked;
    if (!absl::IsAborted(put)) return put;
  }
}

// Whether all pservers of the job have begun, and are alive.
absl::StatusOr<bool> AllServe(kv::Store& store, const JobKeys& keys, const JobMeta& meta) {
  for (int i = 0; i < meta.pservers; ++i) {
    TY_ASSIGN_OR_RETURN(const kv::GetResult got, store.Get(keys.Pod(GraphId(GraphRole::kPserver, i))));
    if (!got.kv) return false;
  }
  return true;
}

absl::Status AwaitCheckpoint(kv::Store& store, const JobKeys& keys, std::int64_t asked,
                             absl::Duration timeout) {
  const SteadyTime until = Clock::System().Steady() + timeout;
  kv::Follower follower(store, kv::KeyRange::Key(keys.Meta()));
  for (;;) {
    TY_ASSIGN_OR_RETURN(const StoredMeta stored, GetRunning(store, keys));
    if (stored.meta.checkpoints_made >= asked) return absl::OkStatus();
    const absl::Duration left = until - Clock::System().Steady();
    const absl::Status next =
        left > absl::ZeroDuration() ? follower.Next(left).status() : absl::DeadlineExceededError("");
    if (absl::IsDeadlineExceeded(next)) {
      return absl::DeadlineExceededError(
          StrCat("the pservers of job ", keys.job, " have not written a checkpoint within ",
                 absl::FormatDuration(timeout), ": do all ", stored.meta.pservers, " of them run?"));
    }
    TY_RETURN_IF_ERROR(next);
  }
}

// Has a checkpoint written to cut anew, unless the job is still about to be cut anew and some that it needs
// for that have not come: then the one from before serves again, and this is how to get out of there.
absl::Status PrepareToCut(kv::Store& store, const JobKeys& keys, const JobMeta& meta,
                          absl::Duration timeout) {
  if (meta.previous) {
    TY_ASSIGN_OR_RETURN(const CommonCheckpoint common, FindCommonCheckpoint(store, keys, meta));
    TY_ASSIGN_OR_RETURN(const bool all, AllServe(store, keys, meta));
    if (!common.step && !all) return absl::OkStatus();
  }
  TY_ASSIGN_OR_RETURN(const std::int64_t asked, AskForCheckpoint(store, keys));
  return AwaitCheckpoint(store, keys, asked, timeout);
}

}  // namespace

absl::Status ScaleTrainers(kv::Store& store, IdSource& ids, const JobKeys& keys, int n) {
  return ChangeTrainers(store, ids, keys, [n](const JobMeta&) { return n; });
}

absl::Status GrowTrainers(kv::Store& store, IdSource& ids, const JobKeys& keys, int n) {
  return ChangeTrainers(store, ids, keys, [n](const JobMeta& meta) -> absl::StatusOr<int> {
    if (n > std::max(meta.most_trainers, meta.trainers)) {
      return absl::InvalidArgumentError(StrCat("the job has ", meta.trainers, " trainers and may grow to ",
                                               meta.most_trainers, " by itself, not to ", n));
    }
    return std::max(n, meta.trainers);
  });
}

absl::Status ScalePservers(kv::Store& store, IdSource& ids, const JobKeys& keys, int n,
                           absl::Duration timeout) {
  TY_ASSIGN_OR_RETURN(const StoredMeta before, GetRunning(store, keys));
  if (before.meta.pservers == n) return absl::OkStatus();
  // Before anybody is stopped for it.
  TY_ASSIGN_OR_RETURN(const graph::Origin origin, GetOrigin(store, keys));
  const graph::Cut cut{.pservers = n, .slots = before.meta.Cut().slots};
  TY_RETURN_IF_ERROR(graph::TranspileOne(origin, cut, GraphRole::kPserver, 0));
  TY_RETURN_IF_ERROR(PrepareToCut(store, keys, before.meta, timeout));
  for (;;) {
    TY_ASSIGN_OR_RETURN(const StoredMeta stored, GetRunning(store, keys));
    if (stored.meta.pservers == n) return absl::OkStatus();
    TY_ASSIGN_OR_RETURN(const CommonCheckpoint common, FindCommonCheckpoint(store, keys, stored.meta));
    JobMeta meta = stored.meta;
    if (common.step) meta.previous = {.layout = meta.layout, .pservers = meta.pservers, .step = *common.step};
    if (!meta.previous)
      return absl::UnavailableError(
          StrCat("the pservers of job ", keys.job,
                 " have no checkpoint in common: somebody else scales it, try again"));
    meta.slots = meta.Cut().slots;
    meta.layout = ids.Suffix(10);
    meta.pservers = n;
    meta.rolled_back_to = meta.previous->step;
    meta.rolled_back_in = ++meta.generation;
    TY_RETURN_IF_ERROR(PutGraphs(store, ids, keys, meta));
    TY_ASSIGN_OR_RETURN(const bool put, PutMetaIf(store, keys, meta, stored.revision, common));
    if (!put) continue;
    log::Info("the job is cut anew", {{"job", keys.job},
                                      {"before", stored.meta.pservers},
                                      {"now", n},
                                      {"step", meta.previous->step},
                                      {"generation", meta.generation}});
    return DeleteSurplus(store, keys, meta);
  }
}

}  // namespace trainyard::ps
