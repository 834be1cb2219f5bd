#include "ps/tables.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "base/status.h"
#include "base/text.h"

namespace trainyard::ps {
namespace {

constexpr int kTableAttempts = 20;  // against others who write the same key

}  // namespace

std::string JobKeys::Root() const { return StrCat("trainyard/jobs/", job, "/"); }
std::string JobKeys::Meta() const { return Root() + "meta"; }
std::string JobKeys::Client() const { return Root() + "client"; }
std::string JobKeys::Program() const { return Root() + "program"; }
std::string JobKeys::Desc(std::string_view graph) const {
  return StrCat(Root(), "graph_program_desc/", graph);
}
std::string JobKeys::Pod(std::string_view graph) const { return StrCat(Root(), "graph_pod/", graph); }
std::string JobKeys::Incarnation(std::string_view graph) const {
  return StrCat(Root(), "graph_incarnation/", graph);
}
std::string JobKeys::Outputs(std::string_view graph) const {
  return StrCat(Root(), "graph_output/", graph, "/");
}
std::string JobKeys::Output(std::string_view graph, std::int64_t sequence) const {
  char digits[24];
  std::snprintf(digits, sizeof digits, "%019lld", static_cast<long long>(sequence));
  return StrCat(Outputs(graph), digits);
}
std::string JobKeys::Checkpoint(std::string_view graph) const {
  return StrCat(Root(), "graph_checkpoint/", graph);
}

std::string GraphPod::Address() const {
  const bool is_v6 = pod_ip.find(':') != std::string::npos;
  return is_v6 ? StrCat("[", pod_ip, "]:", pod_port) : StrCat(pod_ip, ":", pod_port);
}

std::optional<std::int64_t> NewestCommonStep(const std::vector<GraphCheckpoints>& all,
                                             std::string_view layout) {
  std::optional<std::set<std::int64_t>> common;
  for (const GraphCheckpoints& checkpoints : all) {
    std::set<std::int64_t> steps;
    for (const Checkpoint& checkpoint : checkpoints.kept) {
      const bool before_too = !common || common->contains(checkpoint.step);
      if (checkpoint.layout == layout && before_too) steps.insert(checkpoint.step);
    }
    common = std::move(steps);
  }
  if (!common || common->empty()) return std::nullopt;
  return *common->rbegin();
}

std::optional<std::int64_t> NewestFiniteStep(std::vector<GraphCheckpoints> all, std::string_view layout) {
  for (GraphCheckpoints& checkpoints : all) std::erase_if(checkpoints.kept, &Checkpoint::nonfinite);
  return NewestCommonStep(all, layout);
}

absl::StatusOr<StoredMeta> GetMeta(kv::Store& store, const JobKeys& keys) {
  const std::string key = keys.Meta();
  TY_ASSIGN_OR_RETURN(const kv::GetResult got, store.Get(key));
  if (!got.kv) return absl::NotFoundError(StrCat("there is no job ", keys.job, " in ", store.Url()));
  absl::StatusOr<JobMeta> meta = DecodeMeta(got.kv->value);
  if (!meta.ok()) return Annotate(meta.status(), key);
  return StoredMeta{*std::move(meta), got.kv->mod_revision};
}

absl::StatusOr<kv::Revision> PutMeta(kv::Store& store, const JobKeys& keys, const JobMeta& meta,
                                     kv::Revision revision) {
  const std::string key = keys.Meta();
  TY_ASSIGN_OR_RETURN(const kv::TxnResult result, store.Txn({.compares = {kv::ModifiedAt(key, revision)},
                                                             .then = {kv::PutOp{key, EncodeMeta(meta)}}}));
  if (result.succeeded) return result.revision;
  return absl::AbortedError(revision == 0
                                ? StrCat("job ", keys.job, " is there already")
                                : StrCat(key, " was changed since revision ", revision, ": read it again"));
}

absl::StatusOr<std::int64_t> NextIncarnation(kv::Store& store, const JobKeys& keys, std::string_view graph) {
  const std::string key = keys.Incarnation(graph);
  for (int attempt = 0; attempt < kTableAttempts; ++attempt) {
    TY_ASSIGN_OR_RETURN(const kv::GetResult got, store.Get(key));
    const std::optional<std::int64_t> last = got.kv ? ParseNumber<std::int64_t>(got.kv->value) : 0;
    if (!last || *last < 0 || *last == INT64_MAX) {
      return absl::InvalidArgumentError(
          StrCat(key, ": \"", Shortened(Escaped(got.kv->value), 64), "\" does not count incarnations"));
    }
    const std::int64_t next = *last + 1;
    TY_ASSIGN_OR_RETURN(const kv::TxnResult result,
                        store.Txn({.compares = {kv::ModifiedAt(key, got.kv ? got.kv->mod_revision : 0)},
                                   .then = {kv::PutOp{key, StrCat(next)}}}));
    if (result.succeeded) return next;
  }
  return absl::AbortedError(StrCat(key, " is being counted up by too many at once: try again later"));
}

std::vector<std::string> PserverIds(int count) {
  std::vector<std::string> ids;
  ids.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) ids.push_back(graph::GraphId(graph::GraphRole::kPserver, i));
  return ids;
}

}  // namespace trainyard::ps
