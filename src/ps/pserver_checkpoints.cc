// When a pserver writes its checkpoints: at steps that are the same for all, beside its work, and when
// somebody asks.
#include <algorithm>
#include <filesystem>
#include <future>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "ps/checkpoint.h"
#include "ps/graph_pserver.h"

namespace trainyard::ps {

void GraphPserver::CheckpointIfDue() {
  const std::int64_t step = parameters_->step();
  if (step == 0 || step % meta_.checkpoint_every != 0 || step == last_checkpoint_.exchange(step)) return;
  if (writing_.exchange(true)) {
    return log::Warn("a checkpoint is left out: the one before is still being written",
                     {{"graph", options_.graph}, {"step", step}});
  }
  // The copy is made now, before the next step; it is written when it is written. Without steps the account
  // must not know of more than the parameters do: it is taken on the thread that changes it, and gradients
  // come before it.
  auto snapshot = std::make_shared<Parameters::Snapshot>(parameters_->Copy());
  checkpoint_thread_->Post([this, snapshot, meta = meta_, extra = is_lead_ ? lead_->Save() : std::string()] {
    const absl::Status written = WriteNow(meta, std::move(*snapshot), extra);
    if (!written.ok())
      log::Error("a checkpoint cannot be written", {{"graph", options_.graph}, {"error", written}});
    writing_ = false;
  });
}

absl::Status GraphPserver::WriteNow(const JobMeta& meta, Parameters::Snapshot snapshot, std::string extra,
                                    bool common) {
  const std::string nonfinite = graph::FindNonFinite(snapshot.variables);
  if (!nonfinite.empty() && meta.on_nonfinite == graph::OnNonFinite::kFail)
    return absl::FailedPreconditionError(StrCat("step ", snapshot.step, ": ", nonfinite));
  const CheckpointData data{.step = snapshot.step,
                            .layout = meta.layout,
                            .variables = std::move(snapshot.variables),
                            .extra = std::move(extra)};
  TY_ASSIGN_OR_RETURN(Checkpoint checkpoint,
                      WriteCheckpoint(options_.checkpoint_directory, options_.graph, data));
  checkpoint.nonfinite = !nonfinite.empty();
  // Without steps each pserver goes back by itself, and may have counted further than the lead has.
  const bool sync = mode_ == graph::SyncMode::kSync;
  const Publication publication{
      .checkpoint = checkpoint,
      .pservers = sync ? PserverIds(meta.pservers) : std::vector<std::string>{options_.graph},
      .latest = common && !sync};
  {
    const MutexLock lock(publish_mu_);
    if (meta.rolled_back_in != taken_back_) {  // of steps that were undone while it was written
      std::error_code gone;
      std::filesystem::remove(checkpoint.file, gone);
      return absl::OkStatus();
    }
    TY_RETURN_IF_ERROR(PublishCheckpoint(store_, options_.keys, options_.graph, publication));
  }
  if (is_lead_ && meta.previous) return ForgetSurplusCheckpoints(store_, options_.keys, meta);
  return absl::OkStatus();
}

// The lead: a checkpoint of all, of now, and its step. Its own first: without steps the others must not have
// less than its account says.
absl::StatusOr<std::int64_t> GraphPserver::WriteEverywhere() {
  const std::int64_t step = mode_ == graph::SyncMode::kSync ? parameters_->step() : lead_->state().step;
  // On the thread that writes: never two at a time.
  std::promise<absl::Status> written;
  checkpoint_thread_->Post(
      [&] { written.set_value(WriteNow(meta_, parameters_->Copy(step), lead_->Save(), true)); });
  TY_RETURN_IF_ERROR(written.get_future().get());
  wire::CheckpointRequest request;
  request.set_step(step);
  TY_RETURN_IF_ERROR(TellOthers({.method = "Checkpoint",
                                 .timeout = absl::Minutes(10),
                                 .generation = generation_,
                                 .pservers = meta_.pservers},
                                request));
  if (meta_.previous) TY_RETURN_IF_ERROR(ForgetSurplusCheckpoints(store_, options_.keys, meta_));
  return step;
}

// The lead: whoever wants to cut the job anew has asked for a checkpoint, and waits until it is there.
void GraphPserver::WriteAsAsked() {
  if (asked_ <= answered_ || generation_ < newest_generation_ || stopping_) return;
  const std::int64_t asked = asked_;
  absl::Status written = WriteEverywhere().status();
  while (written.ok()) {
    absl::StatusOr<StoredMeta> stored = GetMeta(store_, options_.keys);
    written = stored.status();
    if (!written.ok()) break;
    if (stored->meta.generation != generation_) written = GenerationBegun(stored->meta.generation);
    if (!written.ok()) break;
    stored->meta.checkpoints_made = std::max(asked, stored->meta.checkpoints_made);
    written = PutMeta(store_, options_.keys, stored->meta, stored->revision).status();
    if (!absl::IsAborted(written)) break;
    written = absl::OkStatus();
  }
  // Not in this generation, then in the next.
  if (!written.ok())
    return log::Warn("a checkpoint that was asked for is not written yet", {{"error", written}});
  answered_ = asked;
}

}  // namespace trainyard::ps
