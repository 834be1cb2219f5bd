#include "ps/job.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "base/status.h"
#include "base/text.h"
#include "ps/origin.h"

namespace trainyard::ps {
namespace {

using graph::Graph;
using graph::GraphRole;

template <typename... Parts>
absl::Status WrongJob(const Parts&... parts) {
  return absl::InvalidArgumentError(StrCat(parts...));
}

// The graphs of one side are those with the numbers from 0 on, each once.
absl::Status CheckSide(const std::vector<Graph>& side, GraphRole role) {
  if (side.empty()) return WrongJob("the job has no ", Name(role), ": add some");
  std::vector<bool> here(side.size());
  for (const Graph& graph : side) {
    if (graph.role != role) return WrongJob(graph.id, " is among the ", Name(role), "s");
    if (graph.index < 0 || static_cast<std::size_t>(graph.index) >= side.size()) {
      const auto missing = std::find(here.begin(), here.end(), false) - here.begin();
      return WrongJob("there are ", side.size(), " ", Name(role), "s and one of them is ", graph.id, ": ",
                      GraphId(role, static_cast<int>(missing)), " or another is missing");
    }
    if (here[static_cast<std::size_t>(graph.index)]) return WrongJob(graph.id, " is there twice");
    here[static_cast<std::size_t>(graph.index)] = true;
  }
  return absl::OkStatus();
}

absl::Status CheckOrigin(const graph::Graphs& graphs) {
  const graph::Origin* first = graphs.trainers.front().origin.get();
  for (const auto* side : {&graphs.trainers, &graphs.pservers}) {
    for (const Graph& graph : *side) {
      if (graph.origin == nullptr) return WrongJob(graph.id, " was not made by Transpile()");
      if (graph.origin.get() != first && !(*graph.origin == *first)) {
        return WrongJob(graph.id, " and ", graphs.trainers.front().id,
                        " are of two transpilations: take all graphs of one");
      }
    }
  }
  const graph::TranspileOptions& options = first->options;
  if (static_cast<std::size_t>(options.trainers) != graphs.trainers.size() ||
      static_cast<std::size_t>(options.pservers) != graphs.pservers.size()) {
    return WrongJob("there are ", graphs.trainers.size(), " trainers and ", graphs.pservers.size(),
                    " pservers, and they were made for ", options.trainers, " and ", options.pservers,
                    ": add them all");
  }
  return absl::OkStatus();
}

absl::Status Check(const NewJob& job) {
  TY_RETURN_IF_ERROR(CheckSide(job.graphs.trainers, GraphRole::kTrainer));
  TY_RETURN_IF_ERROR(CheckSide(job.graphs.pservers, GraphRole::kPserver));
  TY_RETURN_IF_ERROR(CheckOrigin(job.graphs));
  for (const Graph& graph : job.graphs.trainers) TY_RETURN_IF_ERROR(FindRead(graph));
  const auto trainers = static_cast<int>(job.graphs.trainers.size());
  if (job.least_trainers < 0 || job.least_trainers > trainers)
    return WrongJob("a job of ", trainers, " trainers cannot wait for ", job.least_trainers);
  if (job.most_trainers != 0 && job.most_trainers < trainers)
    return WrongJob("a job of ", trainers, " trainers cannot have ", job.most_trainers, " at most");
  if (job.checkpoint_every < 1)
    return WrongJob("a checkpoint every ", job.checkpoint_every, " steps: it must be at least 1");
  return absl::OkStatus();
}

}  // namespace

absl::Status CreateJob(kv::Store& store, IdSource& ids, const JobKeys& keys, const NewJob& job) {
  TY_RETURN_IF_ERROR(Check(job));
  const absl::Status there =
      absl::AlreadyExistsError(StrCat("there is a job ", keys.job, " in ", store.Url(), ": delete it first"));
  const absl::Status found = GetMeta(store, keys).status();
  if (found.ok() || absl::IsInvalidArgument(found)) return there;
  if (!absl::IsNotFound(found)) return found;
  const graph::Origin& origin = *job.graphs.trainers.front().origin;
  const auto trainers = static_cast<int>(job.graphs.trainers.size());
  JobMeta meta{.foreground = job.foreground,
               .mode = origin.options.mode,
               .trainers = trainers,
               .least_trainers = job.least_trainers == 0 ? trainers : job.least_trainers,
               .most_trainers = job.most_trainers == 0 ? trainers : job.most_trainers,
               .slots = graph::CutOf(origin.options).slots,
               .pservers = origin.options.pservers,
               .layout = ids.Suffix(10),
               .on_nonfinite = job.on_nonfinite,
               .checkpoint_every = job.checkpoint_every,
               .passes = origin.options.passes};
  TY_RETURN_IF_ERROR(PutOrigin(store, ids, keys, origin));
  for (const auto* side : {&job.graphs.trainers, &job.graphs.pservers}) {
    for (const Graph& graph : *side) TY_RETURN_IF_ERROR(PutGraph(store, ids, keys, graph));
  }
  const absl::Status put = PutMeta(store, keys, meta, 0).status();
  return absl::IsAborted(put) ? there : put;
}

absl::Status DeleteJob(kv::Store& store, const JobKeys& keys) {
  TY_RETURN_IF_ERROR(store.Delete(kv::KeyRange::Key(keys.Meta())));
  return store.Delete(kv::KeyRange::Prefix(keys.Root())).status();
}

absl::Status FailJob(kv::Store& store, const JobKeys& keys, std::string_view reason) {
  for (;;) {
    TY_ASSIGN_OR_RETURN(StoredMeta stored, GetMeta(store, keys));
    if (stored.meta.state == JobState::kComplete || stored.meta.state == JobState::kFailed)
      return absl::OkStatus();
    stored.meta.state = JobState::kFailed;
    stored.meta.reason = reason;
    const absl::Status put = PutMeta(store, keys, stored.meta, stored.revision).status();
    if (!absl::IsAborted(put)) return put;
  }
}

absl::Status JobFailedError(const JobMeta& meta) {
  return absl::FailedPreconditionError(StrCat("the job has failed: ", meta.reason));
}

absl::Status JobDeletedError(const JobKeys& keys) {
  return absl::NotFoundError(StrCat("job ", keys.job, " was deleted"));
}

void FailWithoutClient(kv::Store& store, const JobKeys& keys, const std::atomic<bool>& stopping) {
  while (!stopping) {
    const absl::Status failed = FailJob(store, keys, "the client of this foreground job is gone");
    if (failed.ok() || absl::IsNotFound(failed)) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

bool IsFinal(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kDataLoss:
      return true;
    default:
      return false;
  }
}

absl::StatusOr<const graph::Op*> FindRead(const Graph& graph) {
  const graph::Op* found = nullptr;
  for (const graph::Block& block : graph.main.blocks) {
    for (const graph::Op& op : block.ops) {
      if (op.type != "read") continue;
      if (found != nullptr)
        return WrongJob("graph ", graph.id, " reads in two places: a trainer has one reader");
      found = &op;
    }
  }
  if (found == nullptr)
    return WrongJob("graph ", graph.id,
                    " has no `read`: a trainer in a cluster is not fed, it reads its data");
  return found;
}

}  // namespace trainyard::ps
