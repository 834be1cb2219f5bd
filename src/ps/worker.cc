#include "ps/worker.h"

#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "ps/pserver.h"
#include "ps/trainer.h"

namespace trainyard::ps {
namespace {

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
  return pserver->Wait();
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
  return trainer->Run();
}

}  // namespace

absl::Status RunWorker(kv::Store& store, const WorkerOptions& options,
                       const std::function<void(std::function<void()>)>& on_running) {
  TY_ASSIGN_OR_RETURN(const StoredMeta stored, GetMeta(store, options.keys));
  if (stored.meta.state == JobState::kComplete) return absl::OkStatus();
  TY_ASSIGN_OR_RETURN(const graph::Graph graph, GetGraph(store, options.keys, options.graph));
  const absl::Status ran = graph.role == graph::GraphRole::kPserver ? RunPserver(store, options, on_running)
                                                                    : RunTrainer(store, options, on_running);
  on_running([] {});  // what could be stopped is gone
  return ran;
}

}  // namespace trainyard::ps
