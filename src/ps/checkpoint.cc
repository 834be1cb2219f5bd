#include "ps/checkpoint.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::ps {
namespace {

constexpr int kCheckpointAttempts = 20;  // against others who write the same key
constexpr std::size_t kCommonKept = 2;   // steps that all have

// All graphs' pointers, as they were at one time.
struct Pointers {
  std::map<std::string, GraphCheckpoints, std::less<>> graphs;
  std::map<std::string, kv::Revision, std::less<>> revisions;

  GraphCheckpoints Of(std::string_view graph) const {
    const auto found = graphs.find(graph);
    return found == graphs.end() ? GraphCheckpoints() : found->second;
  }
};

absl::StatusOr<Pointers> GetPointers(kv::Store& store, const JobKeys& keys) {
  const std::string prefix = keys.Checkpoint("");
  TY_ASSIGN_OR_RETURN(const kv::RangeResult range, store.Range({.range = kv::KeyRange::Prefix(prefix)}));
  Pointers pointers;
  for (const kv::KeyValue& kv : range.kvs) {
    absl::StatusOr<GraphCheckpoints> checkpoints = DecodeCheckpoints(kv.value);
    if (!checkpoints.ok()) return Annotate(checkpoints.status(), Escaped(kv.key));
    const std::string graph = kv.key.substr(prefix.size());
    pointers.graphs[graph] = *std::move(checkpoints);
    pointers.revisions[graph] = kv.mod_revision;
  }
  return pointers;
}

// What is kept, and what is not any more.
struct Sorted {
  GraphCheckpoints kept;
  std::vector<Checkpoint> forgotten;
};

// Decides anew until nobody has come between; what was decided then.
absl::StatusOr<Sorted> StorePointers(kv::Store& store, const JobKeys& keys, std::string_view graph,
                                     const std::function<Sorted(const Pointers&)>& decide) {
  const std::string key = keys.Checkpoint(graph);
  for (int attempt = 0; attempt < kCheckpointAttempts; ++attempt) {
    TY_ASSIGN_OR_RETURN(const Pointers pointers, GetPointers(store, keys));
    Sorted sorted = decide(pointers);
    const auto revision = pointers.revisions.find(graph);
    TY_ASSIGN_OR_RETURN(const kv::TxnResult result,
                        store.Txn({.compares = {kv::ModifiedAt(
                                       key, revision == pointers.revisions.end() ? 0 : revision->second)},
                                   .then = {kv::PutOp{key, EncodeCheckpoints(sorted.kept)}}}));
    if (result.succeeded) return sorted;
  }
  return absl::AbortedError(StrCat(key, " is being written by too many at once: try again later"));
}

// The checkpoint takes the place of one of the same step and layout.
Sorted Add(GraphCheckpoints checkpoints, const Checkpoint& checkpoint) {
  Sorted sorted;
  for (Checkpoint& before : checkpoints.kept) {
    const bool same = before.step == checkpoint.step && before.layout == checkpoint.layout;
    (same ? sorted.forgotten : sorted.kept.kept).push_back(std::move(before));
  }
  const auto place =
      std::upper_bound(sorted.kept.kept.begin(), sorted.kept.kept.end(), checkpoint,
                       [](const Checkpoint& a, const Checkpoint& b) { return a.step < b.step; });
  sorted.kept.kept.insert(place, checkpoint);
  return sorted;
}

// The oldest step that is kept, if that many are common.
std::optional<std::int64_t> OldestKept(std::vector<GraphCheckpoints> all, std::string_view layout) {
  std::optional<std::int64_t> step;
  for (std::size_t i = 0; i < kCommonKept; ++i) {
    step = NewestCommonStep(all, layout);
    if (!step) return std::nullopt;
    for (GraphCheckpoints& checkpoints : all) {
      std::erase_if(checkpoints.kept, [&](const Checkpoint& checkpoint) { return checkpoint.step >= *step; });
    }
  }
  return step;
}

void Forget(Sorted& sorted, const std::function<bool(const Checkpoint&)>& wanted) {
  const auto gone = std::stable_partition(sorted.kept.kept.begin(), sorted.kept.kept.end(), wanted);
  std::move(gone, sorted.kept.kept.end(), std::back_inserter(sorted.forgotten));
  sorted.kept.kept.erase(gone, sorted.kept.kept.end());
}

// The step in a checkpoint's name: GRAPH-STEP-CHECKSUM.ckpt.
std::optional<std::int64_t> StepOf(std::string_view name, std::string_view graph) {
  const std::string prefix = StrCat(graph, "-");
  if (!name.starts_with(prefix) || !name.ends_with(".ckpt")) return std::nullopt;
  const std::vector<std::string_view> words = Split(name.substr(prefix.size()), '-');
  return words.size() == 2 ? ParseNumber<std::int64_t>(words[0]) : std::nullopt;
}

// Deletes the forgotten files, and older ones that nobody knows any more: whoever should have deleted them
// has died. What cannot be deleted is tried again when the next checkpoint is published.
void RemoveForgotten(kv::FileSystem& files, std::string_view graph, const Sorted& sorted) {
  std::set<std::string> gone;
  for (const Checkpoint& checkpoint : sorted.forgotten) gone.insert(checkpoint.file);
  std::set<std::string> folders;
  for (const Checkpoint& checkpoint : sorted.kept.kept)
    folders.insert(checkpoint.file.substr(0, checkpoint.file.rfind('/')));
  for (const std::string& folder : folders) {
    const absl::StatusOr<std::vector<std::string>> names = files.List(folder);
    if (!names.ok()) continue;
    for (const std::string& name : *names) {
      const std::optional<std::int64_t> step = StepOf(name, graph);
      if (step && *step < sorted.kept.kept.front().step) gone.insert(StrCat(folder, "/", name));
    }
  }
  for (const Checkpoint& checkpoint : sorted.kept.kept) gone.erase(checkpoint.file);
  for (const std::string& file : gone) {
    const absl::Status removed = files.Remove(file);
    if (!removed.ok() && !absl::IsNotFound(removed))
      log::Warn("an old checkpoint cannot be deleted", {{"graph", graph}, {"error", removed}});
  }
}

std::vector<GraphCheckpoints> OfPservers(const Pointers& pointers, const JobMeta& meta) {
  std::vector<GraphCheckpoints> all;
  all.reserve(static_cast<std::size_t>(meta.pservers));
  for (const std::string& id : PserverIds(meta.pservers)) all.push_back(pointers.Of(id));
  return all;
}

std::optional<std::int64_t> CommonStep(const std::vector<GraphCheckpoints>& all, const JobMeta& meta) {
  if (meta.mode == graph::SyncMode::kSync) return NewestCommonStep(all, meta.layout);
  std::optional<std::int64_t> first;
  for (const GraphCheckpoints& one : all) {
    const std::optional<std::int64_t> step = NewestCommonStep({one}, meta.layout);
    if (!step) return std::nullopt;
    if (!first) first = step;
  }
  return first;
}

}  // namespace

absl::StatusOr<std::int64_t> ChooseStepToSave(const JobMeta& meta,
                                              const std::vector<GraphCheckpoints>& pservers,
                                              std::optional<std::int64_t> wanted) {
  const std::optional<std::int64_t> newest = NewestCommonStep(pservers, meta.layout);
  const std::optional<std::int64_t> finite = NewestFiniteStep(pservers, meta.layout);
  const std::string there = !newest ? "there is none that all pservers have"
                                    : StrCat("the newest that all pservers have is of step ", *newest);
  if (wanted) {
    for (const GraphCheckpoints& one : pservers) {
      if (std::ranges::none_of(one.kept, [&](const Checkpoint& kept) {
            return kept.step == *wanted && kept.layout == meta.layout;
          }))
        return absl::NotFoundError(StrCat("there is no checkpoint of step ", *wanted, ": ", there));
    }
    return *wanted;
  }
  if (meta.state == JobState::kComplete && newest != meta.steps) {
    return absl::FailedPreconditionError(StrCat("the checkpoint of the end, of step ", meta.steps,
                                                ", is missing: ", there,
                                                newest ? ", which can be saved by that number" : ""));
  }
  if (!newest) {
    return absl::FailedPreconditionError(StrCat("there is no checkpoint yet: one is written every ",
                                                meta.checkpoint_every, " steps and one at the end"));
  }
  if (finite == newest) return *newest;
  return absl::FailedPreconditionError(StrCat(
      "the model of step ", *newest, " has non-finite values: ",
      finite ? StrCat("the last one without is of step ", *finite, ", which can be saved by that number")
             : "there is none without"));
}

absl::StatusOr<CommonCheckpoint> FindCommonCheckpoint(kv::Store& store, const JobKeys& keys,
                                                      const JobMeta& meta) {
  TY_ASSIGN_OR_RETURN(const Pointers pointers, GetPointers(store, keys));
  CommonCheckpoint common{.step = CommonStep(OfPservers(pointers, meta), meta)};
  const std::string first = graph::GraphId(graph::GraphRole::kPserver, 0);
  const auto revision = pointers.revisions.find(first);
  common.kept =
      kv::ModifiedAt(keys.Checkpoint(first), revision == pointers.revisions.end() ? 0 : revision->second);
  return common;
}

absl::StatusOr<bool> PutMetaIf(kv::Store& store, const JobKeys& keys, const JobMeta& meta,
                               kv::Revision revision, const CommonCheckpoint& common) {
  kv::TxnRequest request{.compares = {kv::ModifiedAt(keys.Meta(), revision)},
                         .then = {kv::PutOp{keys.Meta(), EncodeMeta(meta)}}};
  if (common.kept) request.compares.push_back(*common.kept);
  TY_ASSIGN_OR_RETURN(const kv::TxnResult result, store.Txn(request));
  return result.succeeded;
}

absl::Status ForgetSurplusCheckpoints(kv::Store& store, const JobKeys& keys, const JobMeta& meta,
                                      kv::FileSystem& files) {
  TY_ASSIGN_OR_RETURN(const Pointers pointers, GetPointers(store, keys));
  if (!CommonStep(OfPservers(pointers, meta), meta)) return absl::OkStatus();
  for (const auto& [graph, checkpoints] : pointers.graphs) {
    const std::optional<GraphName> name = ParseGraphId(graph);
    if (!name || name->index < meta.pservers) continue;
    const std::string key = keys.Checkpoint(graph);
    TY_ASSIGN_OR_RETURN(const kv::TxnResult result,
                        store.Txn({.compares = {kv::ModifiedAt(key, pointers.revisions.find(graph)->second)},
                                   .then = {kv::DeleteOp{kv::KeyRange::Key(key)}}}));
    if (result.succeeded) RemoveForgotten(files, graph, {.forgotten = checkpoints.kept});
  }
  return absl::OkStatus();
}

absl::Status PublishCheckpoint(kv::Store& store, const JobKeys& keys, std::string_view graph,
                               const Publication& publication, kv::FileSystem& files) {
  const Checkpoint& checkpoint = publication.checkpoint;
  const auto decide = [&](const Pointers& pointers) {
    Sorted sorted = Add(pointers.Of(graph), checkpoint);
    if (publication.latest)
      Forget(sorted, [&](const Checkpoint& kept) {
        return kept.step <= checkpoint.step || kept.layout != checkpoint.layout;
      });
    std::vector<GraphCheckpoints> all = {sorted.kept};
    for (const std::string& pserver : publication.pservers) {
      if (pserver != graph) all.push_back(pointers.Of(pserver));
    }
    const std::optional<std::int64_t> finite = NewestFiniteStep(all, checkpoint.layout);
    const std::optional<std::int64_t> oldest = OldestKept(std::move(all), checkpoint.layout);
    if (oldest) {
      Forget(sorted, [&](const Checkpoint& kept) {
        return kept.step > *oldest ||
               ((kept.step == *oldest || kept.step == finite) && kept.layout == checkpoint.layout);
      });
    }
    return sorted;
  };
  TY_ASSIGN_OR_RETURN(const Sorted sorted, StorePointers(store, keys, graph, decide));
  RemoveForgotten(files, graph, sorted);
  return absl::OkStatus();
}

absl::Status ForgetCheckpointsAbove(kv::Store& store, const JobKeys& keys, std::string_view graph,
                                    std::int64_t step, kv::FileSystem& files) {
  const auto decide = [&](const Pointers& pointers) {
    Sorted sorted{.kept = pointers.Of(graph)};
    Forget(sorted, [&](const Checkpoint& kept) { return kept.step <= step; });
    return sorted;
  };
  TY_ASSIGN_OR_RETURN(const Sorted sorted, StorePointers(store, keys, graph, decide));
  RemoveForgotten(files, graph, sorted);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<GraphCheckpoints>> GetCheckpoints(kv::Store& store, const JobKeys& keys,
                                                             const std::vector<std::string>& graphs) {
  TY_ASSIGN_OR_RETURN(const Pointers pointers, GetPointers(store, keys));
  std::vector<GraphCheckpoints> checkpoints;
  checkpoints.reserve(graphs.size());
  for (const std::string& graph : graphs) checkpoints.push_back(pointers.Of(graph));
  return checkpoints;
}

}  // namespace trainyard::ps
