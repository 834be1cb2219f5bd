// trainyard operator
#include "operator/operator.h"

#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/ending_signals.h"
#include "cli/kube_common.h"
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

// What a burst of work has left behind is given back after this at the latest.
constexpr absl::Duration kTrimPeriod = absl::Seconds(10);

class OperatorCommand final : public Command {
 public:
  std::string name() const override { return "operator"; }
  std::string summary() const override { return "Run training jobs on a Kubernetes cluster"; }
  std::string details() const override {
    return "Watches TFJobs and keeps their pods and services as they say. The cluster must know the kind:\n"
           "kubectl apply -k deploy/ puts that and the operator itself there. The embedded cluster of\n"
           "`trainyard up` has both already.\n\n"
           "Examples:\n"
           "  trainyard operator --kubeconfig ~/.kube/config --namespace team-a\n"
           "  trainyard operator --leader-elect --metrics-bind-address :8080 --health-probe-bind-address "
           ":8081";
  }

  void Declare(Flags& flags) override {
    kube_.Declare(flags);
    flags.Text({.name = "-n,--namespace", .value = "NAME", .help = "Only jobs of this namespace (all)"},
               options_.controller.ns);
    flags.Switch({.name = "--leader-elect", .help = "Of several operators, let one work"},
                 options_.leader_elect);
    flags.Text({.name = "--lease-namespace",
                .value = "NAME",
                .help = "Where the leader's lease is (the current one)"},
               lease_namespace_);
    flags.Text({.name = "--metrics-bind-address",
                .value = "ADDRESS",
                .help = "Where Prometheus finds /metrics, as :8080 (nowhere)"},
               options_.metrics_address);
    flags.Text({.name = "--health-probe-bind-address",
                .value = "ADDRESS",
                .help = "Where /healthz and /readyz are, as :8081 (nowhere)"},
               options_.health_address);
    flags.Duration({.name = "--reconcile-period",
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
    flags.Number({.name = "--workers", .value = "N", .help = "Look at so many jobs at a time (16)"},
                 workers_);
  }

  absl::Status Run() override {
    TY_RETURN_IF_ERROR(Check());
    TY_ASSIGN_OR_RETURN(kube::ClusterConfig config, kube_.Load());
    options_.lease.ns = lease_namespace_.empty() ? config.ns : lease_namespace_;
    const std::string server = config.server;
    ShareHeap();
    const EndingSignals signals;  // before the first thread
    TY_ASSIGN_OR_RETURN(const auto transport, kube::NewCurlTransport(std::move(config)));
    TY_ASSIGN_OR_RETURN(auto running, ops::Operator::Start(*transport, Clock::System(), options_));
    std::cerr << "trainyard: watching " << kinds_ << " at " << server
              << (options_.controller.ns.empty() ? "" : StrCat(" in namespace ", options_.controller.ns))
              << "\n";
    if (running->metrics_port() != 0)
      std::cerr << "trainyard: metrics at port " << running->metrics_port() << "\n";
    if (running->health_port() != 0)
      std::cerr << "trainyard: probes at port " << running->health_port() << "\n";
    if (!AwaitSync(*running, signals) && !signals.AwaitFor(absl::Seconds(1))) {
      ReturnMemory();
      while (!signals.AwaitFor(kTrimPeriod)) TrimHeap();
    }
    EndSoon();
    running.reset();
    return absl::OkStatus();
  }

 private:
  absl::Status Check() {
    for (const auto& [flag, ns] : {std::pair("--namespace", options_.controller.ns),
                                   std::pair("--lease-namespace", lease_namespace_)}) {
      if (ns.empty()) continue;
      const std::string_view problem = kube::FindDns1123LabelProblem(ns);
      if (!problem.empty()) return UsageError(StrCat(flag, ": '", Escaped(ns), "' ", problem));
    }
    if (reconcile_period_ && *reconcile_period_ < absl::Seconds(1)) {
      return UsageError("--reconcile-period must be at least 1s");
    }
    if (node_grace_ && *node_grace_ < absl::ZeroDuration())
      return UsageError("--node-grace must not be negative");
    if (qps_ && (*qps_ < 1 || *qps_ > 1'000'000))
      return UsageError("--kube-api-qps must be between 1 and 1000000");
    if (workers_ && (*workers_ < 1 || *workers_ > 256))
      return UsageError("--workers must be between 1 and 256");
    if (reconcile_period_) options_.controller.reconcile_period = *reconcile_period_;
    options_.controller.longest_period =
        std::max(options_.controller.longest_period, options_.controller.reconcile_period);
    if (node_grace_) options_.controller.policies.node_grace = *node_grace_;
    if (qps_) options_.qps = static_cast<double>(*qps_);
    if (workers_) options_.controller.workers = static_cast<int>(*workers_);
    return absl::OkStatus();
  }

  // A cluster that cannot be watched is waited for, and said to be. Whether it was told to end meanwhile.
  static bool AwaitSync(ops::Operator& running, const EndingSignals& signals) {
    absl::Status synced;
    for (int tenth = 0; tenth < 20; ++tenth) {
      synced = running.WaitForSync(absl::ZeroDuration());
      if (synced.ok()) return false;
      if (signals.AwaitFor(absl::Milliseconds(100))) return true;
    }
    std::cerr << "trainyard: waiting: " << Message(synced) << "\n";
    return false;
  }

  static constexpr std::string_view kinds_ = "tfjobs and aitrainingjobs";
  KubeFlags kube_;
  ops::OperatorOptions options_;
  std::string lease_namespace_;
  std::optional<absl::Duration> reconcile_period_;
  std::optional<absl::Duration> node_grace_;
  std::optional<std::int64_t> qps_;
  std::optional<std::int64_t> workers_;
};

}  // namespace

std::unique_ptr<Command> NewOperator() { return std::make_unique<OperatorCommand>(); }

}  // namespace trainyard::cli
