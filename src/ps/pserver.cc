// A pserver's beginning and end, and what the store tells it in between.
#include "ps/pserver.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "ps/graph_pserver.h"
#include "ps/job.h"

namespace trainyard::ps {
namespace {

int IndexOf(std::string_view graph) {
  const std::optional<GraphName> name = ParseGraphId(graph);
  return name && name->role == graph::GraphRole::kPserver ? name->index : -1;
}

}  // namespace

int TrainerOf(std::string_view graph) {
  const std::optional<GraphName> name = ParseGraphId(graph);
  return name && name->role == graph::GraphRole::kTrainer ? name->index : -1;
}

absl::StatusOr<std::unique_ptr<Pserver>> Pserver::Start(kv::Store& store, PserverOptions options) {
  auto pserver = std::make_unique<GraphPserver>(store, std::move(options));
  TY_RETURN_IF_ERROR(pserver->Begin());
  return pserver;
}

GraphPserver::GraphPserver(kv::Store& store, PserverOptions options)
    : store_(store),
      options_(std::move(options)),
      index_(IndexOf(options_.graph)),
      is_lead_(index_ == 0),
      channels_(options_.token) {}

GraphPserver::~GraphPserver() {
  Stop();
  registration_.reset();
  if (registry_ != nullptr) registry_->Stop();
  lead_thread_->Post([this] { idle_.clear(); });
  server_.reset();
  registry_.reset();
  lead_thread_.reset();
  checkpoint_thread_.reset();
}

absl::Status GraphPserver::Begin() {
  if (index_ < 0) return absl::InvalidArgumentError(StrCat("\"", options_.graph, "\" names no pserver"));
  TY_ASSIGN_OR_RETURN(incarnation_, NextIncarnation(store_, options_.keys, options_.graph));
  TY_ASSIGN_OR_RETURN(const JobMeta meta, BeginAnew());
  // A job that was completed since this pserver died needs it no more. To begin with the state that the job
  // went back to once would forget the checkpoints above it, the last one too.
  if (meta.state == JobState::kComplete) {
    End(absl::OkStatus());
    return absl::OkStatus();
  }
  mode_ = meta.mode;
  generation_ = meta.generation;
  newest_generation_ = meta.generation;
  newest_back_ = meta.rolled_back_in;
  TY_RETURN_IF_ERROR(TakeState(meta));
  meta_ = meta;
  TY_RETURN_IF_ERROR(Serve());
  // Others may not have heard of this generation: only the lead tells them.
  if (is_lead_ && meta.generation > 1) lead_thread_->Post([this, meta] { AdvanceAll(meta); });
  log::Info("serving parameters", {{"graph", options_.graph},
                                   {"port", server_->port()},
                                   {"generation", meta.generation},
                                   {"step", step()},
                                   {"incarnation", incarnation_}});
  return absl::OkStatus();
}

absl::Status GraphPserver::Serve() {
  const RpcServerOptions serving{.address = options_.listen, .token = options_.token, .threads = 4};
  Registry::Listener listener{
      .on_pod = [this](const std::string& name, const std::optional<GraphPod>& pod) { OnPod(name, pod); },
      .on_meta = [this](const JobMeta& meta) { OnMeta(meta); },
      .on_deleted = [this] { End(JobDeletedError(options_.keys)); }};
  if (meta_.foreground) {
    listener.on_client_gone = [this] { FailWithoutClient(store_, options_.keys, stopping_); };
  }
  registry_ = std::make_unique<Registry>(store_, options_.keys, std::move(listener));
  TY_ASSIGN_OR_RETURN(server_,
                      RpcServer::Start(serving, [this](Held exchange) { Handle(std::move(exchange)); }));
  // Before anybody finds this pserver: the lead must know whom to wait for.
  TY_RETURN_IF_ERROR(registry_->Start());
  const GraphPod pod{.pod_name = options_.pod_name,
                     .pod_ip = options_.pod_ip,
                     .pod_port = server_->port(),
                     .incarnation = incarnation_};
  TY_ASSIGN_OR_RETURN(registration_,
                      Registration::Make(store_, options_.keys, options_.graph, pod, options_.lease,
                                         [this](const absl::Status& status) { End(status); }));
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
  {
    const MutexLock lock(mu_);
    if (!ended_) ended_ = status;
    changed_.SignalAll();
  }
  DropWaiting(absl::UnavailableError("the pserver is stopping"));
}

std::int64_t GraphPserver::step() const {
  const std::shared_lock<std::shared_mutex> together(calls_mu_);
  return parameters_ == nullptr ? 0 : parameters_->step();
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
    TellOfHeldOutputs();
    RouseIdle();
    CommitIfComplete();
  });
}

void GraphPserver::OnMeta(const JobMeta& meta) {
  if (meta.state == JobState::kComplete) return End(absl::OkStatus());
  if (meta.state == JobState::kFailed) return End(JobFailedError(meta));
  if (index_ >= meta.pservers) {
    log::Info("the job has no place for this pserver any more", {{"graph", options_.graph}});
    return End(absl::OkStatus());
  }
  if (!is_lead_) return;
  // Only here are they changed, by one thread.
  newest_back_ = std::max(newest_back_.load(), meta.rolled_back_in);
  newest_generation_ = std::max(newest_generation_.load(), meta.generation);
  lead_thread_->Post([this, meta] {
    asked_ = std::max(asked_, meta.checkpoints_asked);
    answered_ = std::max(answered_, meta.checkpoints_made);
    if (meta.generation > generation_) AdvanceAll(meta);
    WriteAsAsked();
  });
}

}  // namespace trainyard::ps
