// When a pserver writes its checkpoints: at steps that are the same for all, beside its work.
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "ps/checkpoint.h"
#include "ps/graph_pserver.h"

namespace trainyard::ps {

void GraphPserver::CheckpointIfDue() {
  const std::int64_t step = parameters_->step();
  if (step == 0 || step % checkpoint_every_ != 0 || step == last_checkpoint_.exchange(step)) return;
  if (writing_.exchange(true)) {
    return log::Warn("a checkpoint is left out: the one before is still being written",
                     {{"graph", options_.graph}, {"step", step}});
  }
  // The copy is made now, before the next step; it is written when it is written.
  auto snapshot = std::make_shared<Parameters::Snapshot>(parameters_->Copy());
  checkpoint_thread_->Post([this, snapshot, extra = is_lead_ ? lead_->Save() : std::string()] {
    const absl::Status written = WriteNow(std::move(*snapshot), extra);
    if (!written.ok())
      log::Error("a checkpoint cannot be written", {{"graph", options_.graph}, {"error", written}});
    writing_ = false;
  });
}

absl::Status GraphPserver::WriteNow(Parameters::Snapshot snapshot, std::string extra) {
  const CheckpointData data{.step = snapshot.step,
                            .layout = layout_,
                            .variables = std::move(snapshot.variables),
                            .extra = std::move(extra)};
  TY_ASSIGN_OR_RETURN(const Checkpoint checkpoint,
                      WriteCheckpoint(options_.checkpoint_directory, options_.graph, data));
  // Without steps each pserver goes back by itself.
  const bool alone = mode_ == graph::SyncMode::kAsync;
  return PublishCheckpoint(store_, options_.keys, options_.graph, checkpoint,
                           alone ? std::vector<std::string>{options_.graph} : Pservers());
}

}  // namespace trainyard::ps
