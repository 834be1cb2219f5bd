#include "operator/operator.h"

#include <atomic>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "http/service.h"
#include "kube/leader_election.h"
#include "operator/gatekeeper.h"
#include "operator/kinds.h"
#include "operator/metrics.h"

namespace trainyard::ops {
namespace {

constexpr std::string_view kMetricsType = "text/plain; version=0.0.4; charset=utf-8";

class RunningOperator final : public Operator {
 public:
  RunningOperator(kube::Transport& transport, Clock& clock, OperatorOptions options)
      : options_(std::move(options)),
        ids_(IdSource::Random()),
        identity_(kube::MakeIdentity(ids_)),
        transport_(transport, clock, metrics_, options_.qps),
        api_(transport_, clock, IdSource(ids_.Next())),
        events_(api_, clock, IdSource(ids_.Next()),
                {.component = "trainyard-operator", .instance = identity_}),
        kinds_(AllKinds(options_.accelerators.resources)),
        surroundings_(api_, clock, {.accelerators = options_.accelerators}),
        autoscaler_(clock, surroundings_, options_.autoscaler),
        clock_(clock) {
    if (options_.controller.policies.gang == job::GangScheduler::kGates)
      gatekeeper_ = std::make_unique<Gatekeeper>(api_, clock, IdSource(ids_.Next()), surroundings_);
    for (const auto& kind : kinds_) AddController(*kind);
  }

  ~RunningOperator() override {
    health_server_.reset();
    metrics_server_.reset();
    metrics_.ForgetWatched();
    elector_.reset();  // stops the work, then gives the lease away
    autoscaler_.Stop();
    if (gatekeeper_ != nullptr) gatekeeper_->Stop();
    surroundings_.Stop();  // it calls the controllers
    for (const auto& controller : controllers_) controller->Stop();
    events_.Stop(absl::Milliseconds(200));
  }

  absl::Status Open() {
    kube::ElectionOptions election{.identity = identity_,
                                   .lease_duration = options_.lease_duration,
                                   .renew_deadline = options_.renew_deadline,
                                   .retry_period = options_.retry_period};
    if (options_.leader_elect) TY_RETURN_IF_ERROR(kube::Validate(election));
    for (std::size_t i = 0; i < kinds_.size(); ++i) {
      metrics_.WatchJobs(kinds_[i]->resource().kind, [this, i] { return controllers_[i]->CountJobs(); });
    }
    metrics_.WatchQueue([this] { return CountQueues(); });
    metrics_.WatchLeading([this] { return IsWorking(); });
    TY_RETURN_IF_ERROR(OpenServers());
    events_.Start();
    surroundings_.Start();
    for (const auto& controller : controllers_) controller->Start();
    if (!options_.leader_elect) {
      StartWork();
      return absl::OkStatus();
    }
    elector_ = std::make_unique<kube::LeaderElector>(
        api_, clock_, IdSource(ids_.Next()),
        kube::LeaderElector::Options{.lease = options_.lease, .election = std::move(election)},
        kube::LeaderElector::Callbacks{.on_started = [this](std::int64_t) { StartWork(); },
                                       .on_stopped = [this] { StopWork(); }});
    elector_->Start();
    return absl::OkStatus();
  }

  bool IsWorking() const override { return working_; }
  absl::Status WaitForSync(absl::Duration timeout) override {
    for (const auto& controller : controllers_) TY_RETURN_IF_ERROR(controller->WaitForSync(timeout));
    return absl::OkStatus();
  }
  std::string PrintMetrics() const override { return metrics_.Print(); }
  std::uint16_t metrics_port() const override {
    return metrics_server_ == nullptr ? 0 : metrics_server_->port();
  }
  std::uint16_t health_port() const override {
    return health_server_ == nullptr ? 0 : health_server_->port();
  }

 private:
  void AddController(const reconcile::Kind& kind) {
    reconcile::ControllerOptions options = options_.controller;
    if (kind.is_elastic()) {
      options.find_targets = [this](const std::string& uid) { return autoscaler_.FindTargets(uid); };
    }
    if (gatekeeper_ != nullptr)
      options.find_gang = [this](const std::string& uid) { return gatekeeper_->FindGang(uid); };
    controllers_.push_back(std::make_unique<reconcile::Controller>(api_, clock_, kind, surroundings_, events_,
                                                                   metrics_, std::move(options)));
    if (kind.is_elastic()) autoscaler_.Watch(kind, *controllers_.back());
    if (gatekeeper_ != nullptr) gatekeeper_->Watch(*controllers_.back());
  }

  void StartWork() {
    working_ = true;
    for (const auto& controller : controllers_) controller->StartWork();
    autoscaler_.Start();
    if (gatekeeper_ != nullptr) gatekeeper_->Start();
    log::Info("the operator works", {{"identity", identity_}});
  }
  void StopWork() {
    autoscaler_.Stop();
    if (gatekeeper_ != nullptr) gatekeeper_->Stop();
    for (const auto& controller : controllers_) controller->StopWork();
    working_ = false;
    log::Info("the operator rests", {{"identity", identity_}});
  }

  kube::WorkQueue::Counts CountQueues() const {
    kube::WorkQueue::Counts sum;
    for (const auto& controller : controllers_) {
      const kube::WorkQueue::Counts counts = controller->CountQueue();
      sum.ready += counts.ready;
      sum.later += counts.later;
      sum.running += counts.running;
    }
    return sum;
  }

  absl::Status OpenServers() {
    if (!options_.metrics_address.empty()) {
      TY_ASSIGN_OR_RETURN(metrics_server_, http::ServePages(options_.metrics_address,
                                                            {{"/metrics", [this] {
                                                                return http::Response{
                                                                    .content_type = std::string(kMetricsType),
                                                                    .body = metrics_.Print()};
                                                              }}}));
    }
    if (options_.health_address.empty()) return absl::OkStatus();
    TY_ASSIGN_OR_RETURN(health_server_, http::ServePages(options_.health_address,
                                                         {{"/healthz", [] { return Probe(200, "ok"); }},
                                                          {"/readyz", [this] { return Readiness(); }}}));
    return absl::OkStatus();
  }

  static http::Response Probe(int code, std::string_view text) {
    return {.code = code, .content_type = "text/plain; charset=utf-8", .body = StrCat(text, "\n")};
  }
  http::Response Readiness() {
    const absl::Status synced = WaitForSync(absl::ZeroDuration());
    return synced.ok() ? Probe(200, "ok") : Probe(503, Message(synced));
  }

  const OperatorOptions options_;
  IdSource ids_;
  const std::string identity_;
  Metrics metrics_;
  MeteredTransport transport_;
  kube::Api api_;
  kube::EventRecorder events_;
  const std::vector<std::unique_ptr<reconcile::Kind>> kinds_;
  reconcile::Surroundings surroundings_;
  Autoscaler autoscaler_;
  std::unique_ptr<Gatekeeper> gatekeeper_;                           // null: gates start no gangs
  std::vector<std::unique_ptr<reconcile::Controller>> controllers_;  // by kind
  Clock& clock_;
  std::atomic<bool> working_ = false;
  std::unique_ptr<kube::LeaderElector> elector_;
  std::unique_ptr<http::Server> metrics_server_;
  std::unique_ptr<http::Server> health_server_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Operator>> Operator::Start(kube::Transport& transport, Clock& clock,
                                                          OperatorOptions options) {
  if (!options.gang) options.gang = FindGangScheduler(transport, clock);
  options.controller.policies.gang = *options.gang;
  auto running = std::make_unique<RunningOperator>(transport, clock, std::move(options));
  TY_RETURN_IF_ERROR(running->Open());
  return running;
}

}  // namespace trainyard::ops
