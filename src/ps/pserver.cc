// A pserver's beginning and end, and what the store tells it in between.
#include "ps/pserver.h"

#include <mutex>
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "ps/checkpoint.h"
#include "ps/graph_pserver.h"

namespace trainyard::ps {

using graph::GraphId;
using graph::GraphRole;

int TrainerOf(std::string_view graph) {
  constexpr std::string_view kPrefix = "trainer-";
  if (graph.substr(0, kPrefix.size()) != kPrefix) return -1;
  return ParseNumber<int>(graph.substr(kPrefix.size())).value_or(-1);
}

absl::StatusOr<std::unique_ptr<Pserver>> Pserver::Start(kv::Store& store, PserverOptions options) {
  auto pserver = std::make_unique<GraphPserver>(store, std::move(options));
  TY_RETURN_IF_ERROR(pserver->Begin());
  return pserver;
}

GraphPserver::GraphPserver(kv::Store& store, PserverOptions options)
    : store_(store),
      options_(std::move(options)),
      is_lead_(options_.graph == GraphId(GraphRole::kPserver, 0)) {}

GraphPserver::~GraphPserver() {
  Stop();
  registration_.reset();
  if (registry_ != nullptr) registry_->Stop();
  DropWaiting(absl::UnavailableError("the pserver is stopping"));
  lead_thread_->Post([this] { idle_.clear(); });
  server_.reset();
  registry_.reset();
  lead_thread_.reset();
  checkpoint_thread_.reset();
}

absl::Status GraphPserver::Begin() {
  TY_ASSIGN_OR_RETURN(incarnation_, NextIncarnation(store_, options_.keys, options_.graph));
  TY_ASSIGN_OR_RETURN(const graph::Graph graph, GetGraph(store_, options_.keys, options_.graph));
  TY_ASSIGN_OR_RETURN(parameters_, Parameters::Make(graph, options_.threads));
  TY_ASSIGN_OR_RETURN(StoredMeta stored, GetMeta(store_, options_.keys));
  mode_ = stored.meta.mode;
  if (incarnation_ > 1 && mode_ == graph::SyncMode::kSync) {
    TY_ASSIGN_OR_RETURN(stored, RollBack());
  }
  generation_ = stored.meta.generation;
  newest_generation_ = stored.meta.generation;
  layout_ = stored.meta.layout;
  checkpoint_every_ = stored.meta.checkpoint_every;
  pservers_ = stored.meta.pservers;
  TY_RETURN_IF_ERROR(TakeState(stored.meta));
  const RpcServerOptions serving{.address = options_.listen, .token = options_.token, .threads = 4};
  TY_ASSIGN_OR_RETURN(server_,
                      RpcServer::Start(serving, [this](Held exchange) { Handle(std::move(exchange)); }));
  registry_ = std::make_unique<Registry>(
      store_, options_.keys,
      Registry::Listener{
          .on_pod = [this](const std::string& name, const std::optional<GraphPod>& pod) { OnPod(name, pod); },
          .on_meta = [this](const JobMeta& meta) { OnMeta(meta); }});
  const GraphPod pod{.pod_name = options_.pod_name,
                     .pod_ip = options_.pod_ip,
                     .pod_port = server_->port(),
                     .incarnation = incarnation_};
  TY_ASSIGN_OR_RETURN(registration_,
                      Registration::Make(store_, options_.keys, options_.graph, pod, options_.lease,
                                         [this](const absl::Status& status) { End(status); }));
  log::Info("serving parameters", {{"graph", options_.graph},
                                   {"port", server_->port()},
                                   {"generation", generation_.load()},
                                   {"step", parameters_->step()},
                                   {"incarnation", incarnation_}});
  return absl::OkStatus();
}

absl::Status GraphPserver::Wait() {
  const MutexLock lock(mu_);
  while (!ended_) changed_.Wait(mu_);
  return *ended_;
}

void GraphPserver::Stop() { End(absl::CancelledError("the pserver was told to stop")); }

void GraphPserver::End(const absl::Status& status) {
  stopping_ = true;
  const MutexLock lock(mu_);
  if (!ended_) ended_ = status;
  changed_.SignalAll();
}

std::vector<std::string> GraphPserver::Pservers() const {
  std::vector<std::string> pservers;
  pservers.reserve(static_cast<std::size_t>(pservers_));
  for (int i = 0; i < pservers_; ++i) pservers.push_back(GraphId(GraphRole::kPserver, i));
  return pservers;
}

// Takes the whole job back to where every pserver can go, under a new generation.
absl::StatusOr<StoredMeta> GraphPserver::RollBack() {
  for (;;) {
    TY_ASSIGN_OR_RETURN(StoredMeta stored, GetMeta(store_, options_.keys));
    if (stored.meta.state == JobState::kComplete) return stored;
    pservers_ = stored.meta.pservers;
    TY_ASSIGN_OR_RETURN(const std::vector<GraphCheckpoints> all,
                        GetCheckpoints(store_, options_.keys, Pservers()));
    stored.meta.rolled_back_to = NewestCommonStep(all, stored.meta.layout).value_or(0);
    ++stored.meta.generation;
    absl::StatusOr<kv::Revision> put = PutMeta(store_, options_.keys, stored.meta, stored.revision);
    if (absl::IsAborted(put.status())) continue;
    if (!put.ok()) return put.status();
    stored.revision = *put;
    log::Warn("the job goes back to its last common checkpoint", {{"graph", options_.graph},
                                                                  {"step", *stored.meta.rolled_back_to},
                                                                  {"generation", stored.meta.generation}});
    return stored;
  }
}

// Parameters, and the lead's account, as they were at the step that the generation begins with.
absl::Status GraphPserver::TakeState(const JobMeta& meta) {
  // Steps that were undone are done again, perhaps otherwise: what was written of them must not be paired
  // with that.
  if (mode_ == graph::SyncMode::kSync && meta.rolled_back_to) {
    TY_RETURN_IF_ERROR(ForgetCheckpointsAbove(store_, options_.keys, options_.graph, *meta.rolled_back_to));
  }
  TY_ASSIGN_OR_RETURN(const std::vector<GraphCheckpoints> kept,
                      GetCheckpoints(store_, options_.keys, {options_.graph}));
  const Checkpoint* chosen = nullptr;
  for (const Checkpoint& checkpoint : kept[0].kept) {
    const bool wanted = mode_ == graph::SyncMode::kAsync || checkpoint.step == meta.rolled_back_to;
    if (wanted && checkpoint.layout == meta.layout) chosen = &checkpoint;
  }
  last_checkpoint_ = -1;
  finished_ = false;
  if (chosen == nullptr) {
    if (mode_ == graph::SyncMode::kSync && meta.rolled_back_to.value_or(0) > 0) {
      return absl::DataLossError(StrCat(options_.graph, " has no checkpoint of step ", *meta.rolled_back_to,
                                        ", which the job went back to"));
    }
    if (is_lead_) lead_ = std::make_unique<Lead>(mode_, meta.trainers, meta.passes);
    return parameters_->Start();
  }
  TY_ASSIGN_OR_RETURN(CheckpointData data, ReadCheckpoint(*chosen));
  last_checkpoint_ = data.step;
  if (is_lead_) {
    TY_ASSIGN_OR_RETURN(LeadState state, Lead::Load(data.extra));
    lead_ = std::make_unique<Lead>(std::move(state));
    if (static_cast<int>(lead_->state().seats.size()) != meta.trainers) lead_->SetTrainers(meta.trainers);
  }
  return parameters_->Restore(data.step, std::move(data.variables));
}

void GraphPserver::OnPod(const std::string& name, const std::optional<GraphPod>& pod) {
  const int trainer = TrainerOf(name);
  std::int64_t incarnation = 0;
  {
    const MutexLock lock(mu_);
    if (pod) incarnations_[name] = pod->incarnation;
    incarnation = incarnations_[name];
  }
  if (!is_lead_ || trainer < 0) return;
  lead_thread_->Post([this, name, trainer, incarnation, here = pod.has_value()] {
    if (here) return lead_->Await(trainer);
    log::Info("a trainer is gone", {{"graph", name}, {"incarnation", incarnation}});
    lead_->Leave(trainer, incarnation);
    CommitIfComplete();
  });
}

void GraphPserver::OnMeta(const JobMeta& meta) {
  if (meta.state == JobState::kComplete) return End(absl::OkStatus());
  if (meta.state == JobState::kFailed)
    return End(absl::FailedPreconditionError(StrCat("the job has failed: ", meta.reason)));
  if (meta.generation <= newest_generation_) return;
  // Those without a step to go back to are begun by the lead, which knows which step all are at.
  if (!meta.rolled_back_to && !is_lead_) return;
  newest_generation_ = meta.generation;
  lead_thread_->Post([this, meta] { meta.rolled_back_to ? GoBack(meta) : SwitchAll(meta); });
}

// Another pserver was restarted.
void GraphPserver::GoBack(const JobMeta& meta) {
  if (meta.generation <= generation_) return;
  absl::Status taken;
  {
    const std::unique_lock<std::shared_mutex> alone(calls_mu_);
    taken = TakeState(meta);
    if (taken.ok()) generation_ = meta.generation;
  }
  if (!taken.ok()) return End(Annotate(taken, "cannot go back to a checkpoint"));
  log::Warn("went back to a checkpoint",
            {{"graph", options_.graph}, {"step", parameters_->step()}, {"generation", meta.generation}});
  const absl::Status over = absl::AbortedError(StrCat("generation ", meta.generation, " has begun"));
  DropWaiting(over);
  if (!is_lead_) return;
  AnswerIdle(over);
  for (const auto& [name, pod] : registry_->All()) {
    if (TrainerOf(name) >= 0) lead_->Await(TrainerOf(name));
  }
}

// Other trainers: every pserver takes the programs of the new generation at the step that all are at.
void GraphPserver::SwitchAll(const JobMeta& meta) {
  if (meta.generation <= generation_) return;
  for (const std::string& pserver : Pservers()) {
    if (pserver == options_.graph) continue;
    wire::SwitchRequest request;
    request.set_generation(meta.generation);
    if (absl::Status told = Tell(pserver, "Switch", request); !told.ok()) return;
  }
  if (absl::Status switched = Switch(meta.generation); !switched.ok()) return End(switched);
  lead_->SetTrainers(meta.trainers);
  AnswerIdle(absl::AbortedError(StrCat("generation ", meta.generation, " has begun")));
  log::Info("the job has other trainers",
            {{"trainers", meta.trainers}, {"generation", meta.generation}, {"step", parameters_->step()}});
}

absl::Status GraphPserver::Switch(std::int64_t generation) {
  if (generation <= generation_) return absl::OkStatus();
  TY_ASSIGN_OR_RETURN(const graph::Graph graph, GetGraph(store_, options_.keys, options_.graph));
  {
    const std::unique_lock<std::shared_mutex> alone(calls_mu_);
    TY_RETURN_IF_ERROR(parameters_->Reprogram(graph));
    generation_ = generation;
  }
  DropWaiting(absl::AbortedError(StrCat("generation ", generation, " has begun")));
  return absl::OkStatus();
}

}  // namespace trainyard::ps
