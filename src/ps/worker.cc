#include "ps/worker.h"

#include <utility>

#include "base/ids.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "ps/job.h"
#include "ps/pserver.h"
#include "ps/scaling.h"
#include "ps/trainer.h"

namespace trainyard::ps {
namespace {

// No other graph can go on without one that has ended for good: all end, and people see why.
absl::Status FailIfFinal(kv::Store& store, const WorkerOptions& options, const absl::Status& ended) {
  if (!IsFinal(ended)) return ended;
  const absl::Status failed = FailJob(store, options.keys, StrCat(options.graph, ": ", Message(ended)));
  if (!failed.ok() && !absl::IsNotFound(failed))
    log::Error("the job cannot be told that it has failed", {{"job", options.keys.job}, {"error", failed}});
  return ended;
}

absl::Status RunPserver(kv::Store& store, const WorkerOptions& options,
                        const std::function<void(std::function<void()>)>& on_running) {
  if (options.checkpoint_directory.empty())
    return absl::InvalidArgumentError(
        StrCat("graph ", options.graph, " is a pserver and needs a checkpoint directory"));
  TY_ASSIGN_OR_RETURN(const std::unique_ptr<Pserver> pserver,
                      Pserver::Start(store, {.keys = options.keys,
                                             .graph = options.graph,
                                             .pod_name = options.pod_name,
                                             .pod_ip = options.pod_ip,
                                             .listen = options.listen,
                                             .token = options.token,
                                             .checkpoint_directory = options.checkpoint_directory,
                                             .lease = options.lease,
                                             .threads = options.threads}));
  on_running([running = pserver.get()] { running->Stop(); });
  const absl::Status ended = pserver->Wait();
  on_running([] {});  // before it is gone
  // While the others still wait for it: else they would go on without it for a while.
  return FailIfFinal(store, options, ended);
}

absl::Status RunTrainer(kv::Store& store, const WorkerOptions& options,
                        const std::function<void(std::function<void()>)>& on_running) {
  TY_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer,
                      Trainer::Start(store, {.keys = options.keys,
                                             .graph = options.graph,
                                             .pod_name = options.pod_name,
                                             .pod_ip = options.pod_ip,
                                             .token = options.token,
                                             .lease = options.lease,
                                             .threads = options.threads,
                                             .check_finite = options.check_finite}));
  on_running([running = trainer.get()] { running->Stop(); });
  const absl::Status ended = trainer->Run();
  on_running([] {});  // before it is gone
  // While the others still wait for it: else they would go on without it for a while.
  return FailIfFinal(store, options, ended);
}

absl::Status Run(kv::Store& store, const WorkerOptions& options, const GraphName& graph,
                 const std::function<void(std::function<void()>)>& on_running) {
  TY_ASSIGN_OR_RETURN(const StoredMeta stored, GetMeta(store, options.keys));
  const JobMeta& meta = stored.meta;
  if (meta.state == JobState::kComplete) return absl::OkStatus();
  if (meta.state == JobState::kFailed) return JobFailedError(meta);
  const bool trains = graph.role == graph::GraphRole::kTrainer;
  if (trains && graph.index >= meta.trainers && graph.index < meta.most_trainers) {
    IdSource ids = IdSource::Random();
    if (absl::Status grown = GrowTrainers(store, ids, options.keys, graph.index + 1); !grown.ok()) {
      // It may have been completed, or made smaller, since it was looked at.
      TY_ASSIGN_OR_RETURN(const StoredMeta now, GetMeta(store, options.keys));
      const bool needless = now.meta.state == JobState::kComplete || graph.index >= now.meta.most_trainers;
      return needless ? absl::OkStatus() : grown;
    }
  } else if (graph.index >= (trains ? meta.trainers : meta.pservers)) {
    log::Info("the job has no place for this graph", {{"graph", options.graph}});
    return absl::OkStatus();
  }
  return trains ? RunTrainer(store, options, on_running) : RunPserver(store, options, on_running);
}

}  // namespace

absl::Status RunWorker(kv::Store& store, const WorkerOptions& options,
                       const std::function<void(std::function<void()>)>& on_running) {
  const std::optional<GraphName> graph = ParseGraphId(options.graph);
  if (!graph) {
    return absl::InvalidArgumentError(StrCat("\"", Shortened(Escaped(options.graph), 64),
                                             "\" names no graph: it must be as trainer-0 or pserver-0"));
  }
  return FailIfFinal(store, options, Run(store, options, *graph, on_running));
}

}  // namespace trainyard::ps
