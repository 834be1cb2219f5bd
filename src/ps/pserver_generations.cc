// From one generation to the next: with other trainers, cut anew, or back to a checkpoint.
//
// The lead sees it in the store, has all other pservers advance, and then does so itself. What a generation
// begins with stands in the job's meta alone, so whoever comes late or comes again begins as the others did.
#include <algorithm>
#include <mutex>
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "ps/graph_pserver.h"
#include "ps/job.h"
#include "ps/origin.h"

namespace trainyard::ps {

using graph::GraphRole;
using graph::SyncMode;

absl::Status GenerationBegun(std::int64_t generation) {
  return absl::AbortedError(StrCat("generation ", generation, " has begun"));
}

// A pserver that was there before has lost what was in its memory. In sync it takes the whole job back to
// where every pserver can go, under a new generation. In async each goes back by itself; but the lead's
// account then knows of fewer steps than trainers have done, so they begin a new generation too, in which
// those steps are done again.
absl::StatusOr<JobMeta> GraphPserver::BeginAnew() {
  for (;;) {
    TY_ASSIGN_OR_RETURN(StoredMeta stored, GetMeta(store_, options_.keys));
    JobMeta& meta = stored.meta;
    const bool goes_back = meta.mode == SyncMode::kSync;
    if (meta.state == JobState::kComplete || incarnation_ == 1 || (!goes_back && !is_lead_)) return meta;
    CommonCheckpoint common;
    ++meta.generation;
    if (goes_back) {
      TY_ASSIGN_OR_RETURN(common, FindCommonCheckpoint(store_, options_.keys, meta));
      meta.rolled_back_to = common.step.value_or(meta.previous ? meta.previous->step : 0);
      meta.rolled_back_in = meta.generation;
    }
    TY_ASSIGN_OR_RETURN(const bool put, PutMetaIf(store_, options_.keys, meta, stored.revision, common));
    if (!put) continue;
    log::Warn("a pserver was restarted: a new generation begins", {{"graph", options_.graph},
                                                                   {"step", meta.rolled_back_to.value_or(0)},
                                                                   {"generation", meta.generation}});
    return meta;
  }
}

absl::Status GraphPserver::TakePrograms(const JobMeta& meta) {
  if (parameters_ != nullptr && graph_.cut == meta.Cut()) return absl::OkStatus();
  TY_ASSIGN_OR_RETURN(graph::Graph graph, TakeGraph(store_, options_.keys, meta, options_.graph));
  TY_ASSIGN_OR_RETURN(parameters_, Parameters::Make(graph, options_.threads, meta.on_nonfinite));
  graph_ = std::move(graph);
  return absl::OkStatus();
}

// Parameters, and the lead's account, as they were at the step that the generation begins with.
absl::Status GraphPserver::TakeState(const JobMeta& meta) {
  // Steps that were undone are done again, perhaps otherwise: what was written of them must not be paired
  // with that.
  {
    const MutexLock lock(publish_mu_);
    taken_back_ = meta.rolled_back_in;
    if (meta.mode == SyncMode::kSync && meta.rolled_back_to) {
      TY_RETURN_IF_ERROR(ForgetCheckpointsAbove(store_, options_.keys, options_.graph, *meta.rolled_back_to));
    }
  }
  TY_RETURN_IF_ERROR(TakePrograms(meta));
  TY_ASSIGN_OR_RETURN(std::optional<CheckpointData> data, FindState(meta));
  last_checkpoint_ = data ? data->step : -1;
  finished_ = false;
  if (is_lead_) {
    lead_ = std::make_unique<Lead>(meta.mode, meta.trainers, meta.passes, meta.least_trainers);
    if (data && !data->extra.empty()) {
      TY_ASSIGN_OR_RETURN(LeadState state, Lead::Load(data->extra));
      lead_ = std::make_unique<Lead>(std::move(state));
    }
    if (static_cast<int>(lead_->state().seats.size()) != meta.trainers) lead_->SetTrainers(meta.trainers);
  }
  return data ? parameters_->Restore(data->step, std::move(data->variables)) : parameters_->Start();
}

// None: it begins with its initial values.
absl::StatusOr<std::optional<CheckpointData>> GraphPserver::FindState(const JobMeta& meta) {
  const std::int64_t step = meta.rolled_back_to.value_or(meta.previous ? meta.previous->step : 0);
  const bool any = meta.mode == SyncMode::kAsync;
  TY_ASSIGN_OR_RETURN(const std::vector<GraphCheckpoints> own,
                      GetCheckpoints(store_, options_.keys, {options_.graph}));
  const Checkpoint* chosen = nullptr;
  for (const Checkpoint& checkpoint : own[0].kept) {
    if (checkpoint.layout == meta.layout && (any || checkpoint.step == step)) chosen = &checkpoint;
  }
  if (chosen != nullptr) return ReadCheckpoint(*chosen);
  if (meta.previous && (any || meta.previous->step == step)) return CutAnew(meta);
  if (any || step == 0) return std::nullopt;
  return absl::DataLossError(
      StrCat(options_.graph, " has no checkpoint of step ", step, ", which the job went back to"));
}

// What this pserver has of what all had in the layout before.
absl::StatusOr<CheckpointData> GraphPserver::CutAnew(const JobMeta& meta) {
  TY_ASSIGN_OR_RETURN(const graph::Origin origin, GetOrigin(store_, options_.keys));
  const graph::Cut before{.pservers = meta.previous->pservers, .slots = meta.Cut().slots};
  const std::vector<std::string> names = PserverIds(before.pservers);
  TY_ASSIGN_OR_RETURN(const std::vector<GraphCheckpoints> all, GetCheckpoints(store_, options_.keys, names));
  OldLayout old;
  std::int64_t newest = 0;
  for (int i = 0; i < before.pservers; ++i) {
    const Checkpoint* chosen = nullptr;
    for (const Checkpoint& checkpoint : all[static_cast<std::size_t>(i)].kept) {
      const bool wanted = meta.mode == SyncMode::kAsync || checkpoint.step == meta.previous->step;
      if (wanted && checkpoint.layout == meta.previous->layout) chosen = &checkpoint;
    }
    if (chosen == nullptr) {
      return absl::DataLossError(StrCat(names[static_cast<std::size_t>(i)], " has no checkpoint of step ",
                                        meta.previous->step, ", and ", options_.graph,
                                        " needs it to go on in another layout"));
    }
    TY_ASSIGN_OR_RETURN(graph::Graph graph, graph::TranspileOne(origin, before, GraphRole::kPserver, i));
    old.mains.push_back(std::move(graph.main));
    TY_ASSIGN_OR_RETURN(old.data.emplace_back(), ReadCheckpoint(*chosen));
    newest = std::max(newest, chosen->step);
  }
  CheckpointData data{.step = newest, .layout = meta.layout, .extra = old.data[0].extra};
  TY_ASSIGN_OR_RETURN(data.variables, Recut(graph_.main.main().vars, meta.pservers, old));
  return data;
}

// On lead_thread_. After an error nobody is served until another attempt succeeds.
absl::Status GraphPserver::Advance(const JobMeta& meta) {
  if (meta.generation <= generation_) return absl::OkStatus();
  const bool back = meta.rolled_back_in > generation_;
  {
    const std::unique_lock<std::shared_mutex> alone(calls_mu_);
    between_ = true;
    if (back) {
      TY_RETURN_IF_ERROR(TakeState(meta));
    } else if (graph_.cut == meta.Cut()) {
      parameters_->Forget();
    } else {
      TY_ASSIGN_OR_RETURN(graph::Graph graph, TakeGraph(store_, options_.keys, meta, options_.graph));
      TY_RETURN_IF_ERROR(parameters_->Reprogram(graph));
      graph_ = std::move(graph);
    }
    if (!back && is_lead_) lead_->SetTrainers(meta.trainers);
    // Steps that did not happen are done again, and put out again.
    if (is_lead_)
      outputs_.Drop([&](int trainer, const HeldOutputs::Entry& entry) {
        return entry.step >= lead_->OpenStepOf(trainer);
      });
    meta_ = meta;
    generation_ = meta.generation;
    between_ = false;
    DropWaiting(GenerationBegun(meta.generation));
  }
  log::Info("a new generation begins", {{"graph", options_.graph},
                                        {"generation", meta.generation},
                                        {"step", parameters_->step()},
                                        {"went_back", back},
                                        {"trainers", meta.trainers},
                                        {"pservers", meta.pservers}});
  return absl::OkStatus();
}

// As the lead asks for. Aborted: there is a later one already, which the lead will ask for.
absl::Status GraphPserver::AdvanceTo(std::int64_t generation) {
  if (generation <= generation_) return absl::OkStatus();
  TY_ASSIGN_OR_RETURN(const StoredMeta stored, GetMeta(store_, options_.keys));
  if (stored.meta.generation > generation) return GenerationBegun(stored.meta.generation);
  if (stored.meta.generation < generation)
    return absl::UnavailableError(StrCat("generation ", generation, " is not in the store yet"));
  return Advance(stored.meta);
}

// The lead: all others first, so that nobody who has joined meets one of an older generation.
void GraphPserver::AdvanceAll(const JobMeta& meta) {
  if (meta.generation < newest_generation_) return;
  wire::SwitchRequest request;
  request.set_generation(meta.generation);
  const absl::Status told = TellOthers({.method = "Switch",
                                        .timeout = absl::Minutes(1),
                                        .generation = meta.generation,
                                        .pservers = meta.pservers},
                                       request);
  if (!told.ok()) return log::Info("a generation is left out", {{"error", told}});
  if (absl::Status advanced = Advance(meta); !advanced.ok())
    return End(Annotate(advanced, "cannot begin the next generation"));
  AnswerIdle(GenerationBegun(meta.generation));
  for (const auto& [name, pod] : registry_->All()) {
    if (TrainerOf(name) >= 0) lead_->Await(TrainerOf(name));
  }
}

}  // namespace trainyard::ps
