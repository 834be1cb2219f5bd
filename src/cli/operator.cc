// trainyard operator
#include "operator/operator.h"

#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "base/access.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/cluster_common.h"
#include "cli/commands.h"
#include "cli/ending_signals.h"
#include "cli/kube_common.h"
#include "dashboard/dashboard.h"
#include "kube/curl_transport.h"
#include "kube/names.h"

namespace trainyard::cli {
namespace {

// What hangs after this is left: a cluster that is told to end a process does not wait for ever either.
constexpr absl::Duration kEndTime = absl::Milliseconds(900);

// For an API server that does not answer: what waits for it is not waited for.
void EndSoon() {
  struct sigaction action{};
  action.sa_handler = [](int) {
    constexpr std::string_view kWhy =
        "trainyard: the API server does not answer; ended without giving the lease away\n";
    (void)!::write(STDERR_FILENO, kWhy.data(), kWhy.size());
    ::_exit(1);
  };
  ::sigaction(SIGALRM, &action, nullptr);
  const itimerval timer{.it_interval = {}, .it_value = absl::ToTimeval(kEndTime)};
  ::setitimer(ITIMER_REAL, &timer, nullptr);
}

constexpr std::int64_t kMostWorkers = 256;
constexpr std::uint16_t kDashboardPort = 8090;
constexpr absl::Duration kLongestLease = absl::Hours(24);

// What a burst of work has left behind is given back after this at the latest.
constexpr absl::Duration kTrimPeriod = absl::Seconds(10);

class OperatorCommand final : public Command {
 public:
  std::string name() const override { return "operator"; }
  std::string summary() const override { return "Run training jobs on a Kubernetes cluster"; }
  std::string details() const override {
    return "Watches TFJobs, PyTorchJobs and AITrainingJobs and keeps their pods and services as they say. "
           "The cluster "
           "must\n"
           "know the kinds: kubectl apply -k deploy/ puts these and the operator itself there. The embedded\n"
           "cluster of `trainyard up` has all of it already.\n\n"
           "Examples:\n"
           "  trainyard operator --kubeconfig ~/.kube/config --namespace team-a\n"
           "  trainyard operator --master 10.0.0.1:6443 --v 4 --thread-num 1000 --logtostderr \\\n"
           "    --leader-elect=true --enable-creating-failed=true\n"
           "  trainyard operator --leader-elect --metrics-bind-address :8080 --health-probe-bind-address "
           ":8081";
  }

  void Declare(Flags& flags) override {
    kube_.Declare(flags);
    flags.Text({.name = "--master",
                .value = "ADDRESS",
                .help = "Where the API server is, if not where the kubeconfig says, as HOST:PORT"},
               master_);
    flags.Text({.name = "-n,--namespace", .value = "NAME", .help = "Only jobs of this namespace (all)"},
               options_.controller.ns);
    flags.Switch({.name = "--leader-elect", .help = "Of several operators, let one work"},
                 options_.leader_elect);
    flags.Text({.name = "--lease-namespace",
                .value = "NAME",
                .help = "Where the leader's lease is (the current one)"},
               lease_namespace_);
    flags.Duration({.name = "--leader-elect-lease-duration",
                    .value = "TIME",
                    .help = "How long others wait for a leader that is gone (15s)"},
                   lease_duration_);
    flags.Duration({.name = "--leader-elect-renew-deadline",
                    .value = "TIME",
                    .help = "How long the leader tries to renew before it stops leading (10s)"},
                   renew_deadline_);
    flags.Duration({.name = "--leader-elect-retry-period",
                    .value = "TIME",
                    .help = "How often it is tried to lead, or to renew (2s)"},
                   retry_period_);
    flags.Text({.name = "--metrics-bind-address",
                .value = "ADDRESS",
                .help = "Where Prometheus finds /metrics, as :8080 (nowhere)"},
               options_.metrics_address);
    flags.Text({.name = "--health-probe-bind-address",
                .value = "ADDRESS",
                .help = "Where /healthz and /readyz are, as :8081 (nowhere)"},
               options_.health_address);
    dashboard_.Declare(flags, "127.0.0.1:8090, or any port that is free");
    flags.Text({.name = "--dashboard-token-file",
                .value = "FILE",
                .help = "What its first line says opens the page (a new token, which is told)"},
               dashboard_token_);
    flags.Duration({.name = "--resync-period,--reconcile-period",
                    .value = "TIME",
                    .help = "Look at a job again after so long, doubling to 5m while nothing changes (15s)"},
                   reconcile_period_);
    flags.Duration({.name = "--node-grace",
                    .value = "TIME",
                    .help = "Take a node for lost that was not ready for so long (30s)"},
                   node_grace_);
    flags.Number(
        {.name = "--kube-api-qps", .value = "N", .help = "Send at most so many requests a second (no limit)"},
        qps_);
    flags.Number({.name = "--thread-num,--workers",
                  .value = "N",
                  .help = "Look at so many jobs of a kind at a time, 256 at most (16)"},
                 workers_);
    flags.Duration({.name = "--creating-duration-period",
                    .value = "TIME",
                    .help = "Make a pod again whose containers could not be made for so long (15m)"},
                   creating_period_);
    flags.Switch({.name = "--enable-creating-failed",
                  .help = "Fail a job whose containers cannot be made when no restart is left"},
                 options_.controller.policies.creation_fails);
    flags.Text(
        {.name = "--accelerators",
         .value = "NAMES",
         .help = "Resources that are accelerators, beside nvidia.com/gpu and amd.com/gpu; with commas"},
        accelerators_);
    flags.Text({.name = "--accelerator-conditions",
                .value = "TYPES",
                .help = "Conditions of a node that say that an accelerator has failed; with commas"},
               accelerator_conditions_);
    flags.Text(
        {.name = "--gang-scheduler",
         .value = "WHO",
         .help = "Who starts gangs: coscheduling or volcano, by PodGroups, the operator itself, by gates, or "
                 "none (by the server: gates, or coscheduling on the embedded cluster)",
         .one_of = {"coscheduling", "volcano", "gates", "none"}},
        gang_scheduler_);
    max_load_.Declare(flags);
    flags.Number({.name = "--v",
                  .value = "N",
                  .help = "Log more: 1 what the operator does, 4 every pass over a job (0)"},
                 verbosity_);
    flags.Switch({.name = "--logtostderr", .help = "Log to standard error, as it is done in any case"},
                 log_to_stderr_);
  }

  absl::Status Run() override {
    TY_RETURN_IF_ERROR(Check());
    TY_ASSIGN_OR_RETURN(kube::ClusterConfig config, kube_.LoadAt(master_));
    options_.lease.ns = lease_namespace_.empty() ? config.ns : lease_namespace_;
    const std::string server = config.server;
    ShareHeap();
    const EndingSignals signals;  // before the first thread
    TY_ASSIGN_OR_RETURN(const auto transport, kube::NewCurlTransport(std::move(config)));
    auto started = ops::Operator::Start(*transport, Clock::System(), options_);
    if (absl::IsInvalidArgument(started.status())) return UsageError(std::string(Message(started.status())));
    if (!started.ok()) return started.status();
    auto running = *std::move(started);
    std::cerr << "trainyard: watching " << kinds_ << " at " << server
              << (options_.controller.ns.empty() ? "" : StrCat(" in namespace ", options_.controller.ns))
              << "\n";
    if (running->metrics_port() != 0)
      std::cerr << "trainyard: metrics at port " << running->metrics_port() << "\n";
    if (running->health_port() != 0)
      std::cerr << "trainyard: probes at port " << running->health_port() << "\n";
    TY_ASSIGN_OR_RETURN(std::unique_ptr<dashboard::Dashboard> page, StartDashboard(*transport, server));
    if (!AwaitSync(*running, signals) && !signals.AwaitFor(absl::Seconds(1))) {
      ReturnMemory();
      while (!signals.AwaitFor(kTrimPeriod)) TrimHeap();
    }
    EndSoon();
    page.reset();
    running.reset();
    return absl::OkStatus();
  }

 private:
  // Null: it is not wanted, or is nowhere to be had and nobody has asked for it.
  absl::StatusOr<std::unique_ptr<dashboard::Dashboard>> StartDashboard(kube::Transport& transport,
                                                                       const std::string& server) const {
    if (dashboard_.IsOff()) return nullptr;
    dashboard::DashboardOptions options{.cluster = server, .ns = options_.controller.ns};
    dashboard_.Place(kDashboardPort, options);
    if (!dashboard_token_.empty()) {
      TY_ASSIGN_OR_RETURN(options.token, ReadToken(dashboard_token_));
    }
    auto page = dashboard::Dashboard::Start(transport, Clock::System(), std::move(options));
    if (absl::IsInvalidArgument(page.status()))
      return UsageError(StrCat("--dashboard-address: ", Message(page.status())));
    if (!page.ok() && !dashboard_.IsGiven()) {
      std::cerr << "trainyard: there is no dashboard: " << Message(page.status()) << "\n";
      return nullptr;
    }
    if (!page.ok()) return page;
    const std::string url = (*page)->Url();
    // A token that somebody has chosen is not for the log.
    std::cerr << "trainyard: the dashboard: "
              << (dashboard_token_.empty() ? url : url.substr(0, url.find('?'))) << "\n";
    return page;
  }

  absl::Status Check() {
    for (const auto& [flag, ns] : {std::pair("--namespace", options_.controller.ns),
                                   std::pair("--lease-namespace", lease_namespace_)}) {
      if (ns.empty()) continue;
      const std::string_view problem = kube::FindDns1123LabelProblem(ns);
      if (!problem.empty()) return UsageError(StrCat(flag, ": '", Escaped(ns), "' ", problem));
    }
    if (reconcile_period_ && *reconcile_period_ < absl::Seconds(1)) {
      return UsageError("--resync-period must be at least 1s");
    }
    if (node_grace_ && *node_grace_ < absl::ZeroDuration())
      return UsageError("--node-grace must not be negative");
    if (qps_ && (*qps_ < 1 || *qps_ > 1'000'000))
      return UsageError("--kube-api-qps must be between 1 and 1000000");
    if (workers_ && *workers_ < 1) return UsageError("--thread-num must be at least 1");
    if (lease_duration_ && *lease_duration_ > kLongestLease)
      return UsageError("--leader-elect-lease-duration must be at most 24h");
    if (creating_period_ && *creating_period_ < absl::Seconds(1))
      return UsageError("--creating-duration-period must be at least 1s");
    if (verbosity_ && *verbosity_ < 0) return UsageError("--v must not be negative");
    TY_RETURN_IF_ERROR(TakeNames("--accelerators", accelerators_, options_.accelerators.resources));
    TY_RETURN_IF_ERROR(
        TakeNames("--accelerator-conditions", accelerator_conditions_, options_.accelerators.conditions));
    TY_ASSIGN_OR_RETURN(options_.autoscaler.limits, max_load_.Get());
    if (!gang_scheduler_.empty()) options_.gang = ParseGangScheduler(gang_scheduler_);
    if (verbosity_ && *verbosity_ > 0)
      log::SetLevel(*verbosity_ < 4 ? log::Level::kInfo : log::Level::kDebug);
    if (creating_period_) options_.controller.policies.creation_patience = *creating_period_;
    if (lease_duration_) options_.lease_duration = *lease_duration_;
    if (renew_deadline_) options_.renew_deadline = *renew_deadline_;
    if (retry_period_) options_.retry_period = *retry_period_;
    reconcile::Pacing::Options& pacing = options_.controller.pacing;
    if (reconcile_period_) pacing.first_period = *reconcile_period_;
    pacing.longest_period = std::max(pacing.longest_period, pacing.first_period);
    if (node_grace_) options_.controller.policies.node_grace = *node_grace_;
    if (qps_) options_.qps = static_cast<double>(*qps_);
    if (workers_) options_.controller.workers = static_cast<int>(std::min(*workers_, kMostWorkers));
    return absl::OkStatus();
  }

  static job::GangScheduler ParseGangScheduler(std::string_view word) {
    if (word == "coscheduling") return job::GangScheduler::kCoscheduling;
    if (word == "volcano") return job::GangScheduler::kVolcano;
    return word == "gates" ? job::GangScheduler::kGates : job::GangScheduler::kNone;
  }

  // Adds what stands between commas.
  static absl::Status TakeNames(std::string_view flag, const std::string& list,
                                std::vector<std::string>& names) {
    if (list.empty()) return absl::OkStatus();
    for (const std::string_view name : Split(std::string_view(list), ',')) {
      const std::string_view problem = kube::FindQualifiedNameProblem(name);
      if (!problem.empty()) return UsageError(StrCat(flag, ": '", Escaped(name), "' ", problem));
      names.emplace_back(name);
    }
    return absl::OkStatus();
  }

  // Waits for a cluster that cannot be watched, and says why: after two seconds, and again once the reason is
  // known, which takes as long as a connection that nobody answers. Returns whether it was told to end.
  static bool AwaitSync(ops::Operator& running, const EndingSignals& signals) {
    for (int tenth = 0;; ++tenth) {
      const absl::Status synced = running.WaitForSync(absl::ZeroDuration());
      if (synced.ok()) return false;
      const bool has_reason = Message(synced).find(": ") != std::string_view::npos;
      if (tenth == 20 || (tenth > 20 && has_reason))
        std::cerr << "trainyard: waiting: " << Message(synced) << "\n";
      if (tenth >= 20 && has_reason) return false;
      if (signals.AwaitFor(absl::Milliseconds(100))) return true;
    }
  }

  static constexpr std::string_view kinds_ = "tfjobs, pytorchjobs and aitrainingjobs";
  KubeFlags kube_;
  ops::OperatorOptions options_;
  std::string lease_namespace_;
  DashboardFlag dashboard_;
  std::string dashboard_token_;
  std::optional<absl::Duration> reconcile_period_;
  std::optional<absl::Duration> node_grace_;
  std::optional<std::int64_t> qps_;
  std::optional<std::int64_t> workers_;
  std::string master_;
  std::optional<absl::Duration> lease_duration_;
  std::optional<absl::Duration> renew_deadline_;
  std::optional<absl::Duration> retry_period_;
  std::optional<absl::Duration> creating_period_;
  MaxLoadFlag max_load_;
  std::string gang_scheduler_;
  std::string accelerators_;
  std::string accelerator_conditions_;
  std::optional<std::int64_t> verbosity_;
  bool log_to_stderr_ = true;
};

}  // namespace

std::unique_ptr<Command> NewOperator() { return std::make_unique<OperatorCommand>(); }

}  // namespace trainyard::cli
