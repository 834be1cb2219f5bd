#include "operator/operator.h"

#include <atomic>
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "kube/leader_election.h"
#include "operator/metered_transport.h"
#include "operator/status_server.h"
#include "operator/tfjob.h"

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
        controller_(api_, clock, kind_, events_, metrics_, options_.controller),
        clock_(clock) {}

  ~RunningOperator() override {
    health_server_.reset();
    metrics_server_.reset();
    metrics_.ForgetWatched();
    elector_.reset();  // stops the work, then gives the lease away
    controller_.Stop();
    events_.Stop(absl::Milliseconds(200));
  }

  absl::Status Open() {
    kube::ElectionOptions election{.identity = identity_,
                                   .lease_duration = options_.lease_duration,
                                   .renew_deadline = options_.renew_deadline,
                                   .retry_period = options_.retry_period};
    if (options_.leader_elect) TY_RETURN_IF_ERROR(kube::Validate(election));
    metrics_.WatchJobs(kind_.resource().kind, [this] { return controller_.CountJobs(); });
    metrics_.WatchQueue([this] { return controller_.CountQueue(); });
    metrics_.WatchLeading([this] { return IsWorking(); });
    TY_RETURN_IF_ERROR(OpenServers());
    events_.Start();
    controller_.Start();
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
  absl::Status WaitForSync(absl::Duration timeout) override { return controller_.WaitForSync(timeout); }
  std::string PrintMetrics() const override { return metrics_.Print(); }
  std::uint16_t metrics_port() const override {
    return metrics_server_ == nullptr ? 0 : metrics_server_->port();
  }
  std::uint16_t health_port() const override {
    return health_server_ == nullptr ? 0 : health_server_->port();
  }

 private:
  void StartWork() {
    working_ = true;
    controller_.StartWork();
    log::Info("the operator works", {{"identity", identity_}});
  }
  void StopWork() {
    controller_.StopWork();
    working_ = false;
    log::Info("the operator rests", {{"identity", identity_}});
  }

  absl::Status OpenServers() {
    if (!options_.metrics_address.empty()) {
      TY_ASSIGN_OR_RETURN(
          metrics_server_,
          StatusServer::Start(options_.metrics_address, {{"/metrics", [this] {
                                                            return StatusPage{
                                                                .body = metrics_.Print(),
                                                                .content_type = std::string(kMetricsType)};
                                                          }}}));
    }
    if (options_.health_address.empty()) return absl::OkStatus();
    TY_ASSIGN_OR_RETURN(
        health_server_,
        StatusServer::Start(options_.health_address, {{"/healthz", [] { return StatusPage{.body = "ok\n"}; }},
                                                      {"/readyz", [this] { return Readiness(); }}}));
    return absl::OkStatus();
  }

  StatusPage Readiness() {
    const absl::Status synced = controller_.WaitForSync(absl::ZeroDuration());
    if (synced.ok()) return {.body = "ok\n"};
    return {.code = 503, .body = StrCat(Message(synced), "\n")};
  }

  const OperatorOptions options_;
  IdSource ids_;
  const std::string identity_;
  Metrics metrics_;
  MeteredTransport transport_;
  kube::Api api_;
  kube::EventRecorder events_;
  const TfJobKind kind_;
  Controller controller_;
  Clock& clock_;
  std::atomic<bool> working_ = false;
  std::unique_ptr<kube::LeaderElector> elector_;
  std::unique_ptr<StatusServer> metrics_server_;
  std::unique_ptr<StatusServer> health_server_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Operator>> Operator::Start(kube::Transport& transport, Clock& clock,
                                                          OperatorOptions options) {
  auto running = std::make_unique<RunningOperator>(transport, clock, std::move(options));
  TY_RETURN_IF_ERROR(running->Open());
  return running;
}

}  // namespace trainyard::ops
