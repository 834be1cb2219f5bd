// trainyard up
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <iostream>
#include <map>
#include <thread>

#include "base/clock.h"
#include "base/fd.h"
#include "base/files.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/cluster_common.h"
#include "cli/commands.h"
#include "cli/ending_signals.h"
#include "cli/event_lines.h"
#include "dashboard/dashboard.h"
#include "kube/quantity.h"
#include "local/cluster.h"
#include "node/end_pods.h"
#include "operator/kinds.h"
#include "operator/operator.h"

namespace trainyard::cli {
namespace {

constexpr absl::Duration kEphemeralGrace = absl::Seconds(2);
constexpr absl::Duration kIdlePollInterval = absl::Seconds(2);  // at jobs, while no dashboard is open

// "cpu=4,memory=8Gi,nvidia.com/gpu=2"
absl::StatusOr<std::map<std::string, std::string>> ParseCapacity(const std::string& text) {
  std::map<std::string, std::string> capacity;
  if (text.empty()) return capacity;
  for (const std::string_view part : Split(text, ',')) {
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      return UsageError(
          StrCat("--capacity is NAME=QUANTITY,..., as cpu=4,memory=8Gi; '", Escaped(part), "' is not"));
    }
    const std::string_view quantity = part.substr(equals + 1);
    const std::string_view name = part.substr(0, equals);
    // What a pod can ask for by that name.
    constexpr std::string_view kPlain[] = {"cpu", "memory", "pods", "ephemeral-storage"};
    if (std::ranges::find(kPlain, name) == std::end(kPlain) && !name.starts_with("hugepages-") &&
        name.find('/') == std::string_view::npos) {
      return UsageError(StrCat(
          "--capacity: '", Escaped(name),
          "' is no resource: there are cpu, memory, pods, ephemeral-storage, hugepages-SIZE, and names "
          "with a domain, as nvidia.com/gpu"));
    }
    if (capacity.contains(std::string(name)))
      return UsageError(StrCat("--capacity: ", Escaped(name), " stands there twice"));
    const auto parsed = kube::Quantity::Parse(quantity);
    if (!parsed.ok()) return UsageError(StrCat("--capacity: ", Message(parsed.status())));
    if (parsed->Sign() < 0) return UsageError(StrCat("--capacity: ", Escaped(name), " cannot be negative"));
    capacity[std::string(name)] = quantity;
  }
  return capacity;
}

class Up final : public Command {
 public:
  std::string name() const override { return "up"; }
  std::string summary() const override { return "Start a Kubernetes cluster on this machine"; }
  std::string details() const override {
    return "Pods run as processes of this machine. What they run goes on when the cluster stops, and is "
           "taken up\n"
           "again when it starts; `trainyard down` ends it all.\n\n"
           "Examples:\n"
           "  trainyard up --detach\n"
           "  trainyard up --nodes 3 --capacity cpu=4,memory=8Gi,nvidia.com/gpu=2";
  }

  void Declare(Flags& flags) override {
    home_.Declare(flags);
    flags.Switch({.name = "-d,--detach", .help = "Go on in the background, and return when it is ready"},
                 detach_);
    flags.Switch(
        {.name = "--ephemeral", .help = "Keep nothing: objects in memory, pods ended with the cluster"},
        ephemeral_);
    flags.Number({.name = "--nodes", .value = "N", .help = "How many nodes it has (1)"}, nodes_);
    flags.Text({.name = "--capacity",
                .value = "LIST",
                .help = "What each node has, as cpu=4,memory=8Gi,nvidia.com/gpu=2 (this machine's)"},
               capacity_);
    flags.Number(
        {.name = "--port", .value = "N", .help = "Where to listen (the last one, or any that is free)"},
        port_);
    flags.Text({.name = "--cluster-store",
                .value = "URL",
                .help = "Where objects are kept, as etcd://127.0.0.1:2379 (the home folder)"},
               store_);
    flags.Duration({.name = "--node-grace",
                    .value = "TIME",
                    .help = "A node without a heartbeat for so long is not ready (10s)"},
                   node_grace_);
    flags.Switch({.name = "--no-operator", .help = "Without the operator for training jobs, and their kinds"},
                 no_operator_);
    dashboard_.Declare(flags, "127.0.0.1, with the last port or any that is free");
  }

  absl::Status Run() override {
    TY_ASSIGN_OR_RETURN(options_.capacity, ParseCapacity(capacity_));
    if (nodes_ && (*nodes_ < 1 || *nodes_ > 250)) return UsageError("--nodes must be between 1 and 250");
    if (port_ && (*port_ < 0 || *port_ > 65535)) return UsageError("--port must be between 0 and 65535");
    if (node_grace_ && *node_grace_ < absl::Seconds(1)) return UsageError("--node-grace must be at least 1s");
    if (ephemeral_ && !store_.empty())
      return UsageError("--ephemeral and --cluster-store exclude each other");
    TY_ASSIGN_OR_RETURN(options_.home, home_.Open());
    options_.nodes = static_cast<int>(nodes_.value_or(1));
    options_.port = static_cast<std::uint16_t>(port_.value_or(0));
    options_.store_url = ephemeral_ ? "memory:" : store_;
    options_.release = Release();
    if (node_grace_) options_.node_grace = *node_grace_;
    if (node_grace_) options_.heartbeat = *node_grace_ / 5;
    return detach_ ? Detach() : Serve(nullptr);
  }

 private:
  // Tells the process that waits for a detached cluster that it is ready, or why it never will be.
  using Tell = std::function<void(const absl::StatusOr<std::string>& server)>;

  absl::Status Serve(const Tell& tell) {
    const EndingSignals signals;
    auto cluster = local::Cluster::Start(options_);
    std::unique_ptr<ops::Operator> running_operator;
    if (cluster.ok() && !no_operator_) {
      auto started = StartOperator(**cluster);
      if (started.ok()) {
        running_operator = *std::move(started);
      } else {
        cluster = started.status();
      }
    }
    std::unique_ptr<dashboard::Dashboard> page;
    if (cluster.ok()) {
      auto started = StartDashboard(**cluster);
      if (started.ok()) {
        page = *std::move(started);
      } else if (dashboard_.IsGiven()) {
        cluster = started.status();
      } else {
        log::Warn("there is no dashboard", {{"error", started.status()}});
      }
    }
    if (page == nullptr) ::unlink(options_.home.Dashboard().c_str());
    if (tell) tell(cluster.ok() ? absl::StatusOr<std::string>((*cluster)->server()) : cluster.status());
    if (!cluster.ok()) return cluster.status();
    if (!tell) Welcome((*cluster)->server());
    {
      EventLines lines((*cluster)->transport(),
                       [](std::string_view line) { std::cout << line << std::endl; });
      // When it has settled it gives back what only its start needed.
      if (!signals.AwaitFor(absl::Seconds(1))) {
        ReturnMemory();
        signals.Await();
      }
    }
    page.reset();
    running_operator.reset();
    cluster->reset();
    const int left = node::CountPods(options_.home.root);
    if (ephemeral_) return node::EndPods(options_.home.root, kEphemeralGrace);
    if (left > 0) {
      std::cerr << "trainyard: the cluster has stopped; " << left
                << (left == 1 ? " pod goes on. " : " pods go on. ")
                << "`trainyard up` takes up what runs, `trainyard down` ends it\n";
    }
    return absl::OkStatus();
  }

  // In this very process: jobs of our kinds just work.
  absl::StatusOr<std::unique_ptr<ops::Operator>> StartOperator(local::Cluster& cluster) const {
    kube::Api api(cluster.transport(), Clock::System(), IdSource::Random());
    TY_RETURN_IF_ERROR(ops::InstallDefinitions(api));
    ops::OperatorOptions options;
    // A node that this cluster calls not ready has had its grace.
    options.controller.policies.node_grace = absl::ZeroDuration();
    options.gang = job::GangScheduler::kCoscheduling;  // which the cluster's scheduler does
    return ops::Operator::Start(cluster.transport(), Clock::System(), std::move(options));
  }

  // Its address, with the token, is in the home folder, for whoever may read that; and for the next time, so
  // that a page that is open goes on then. Null: it is not wanted.
  absl::StatusOr<std::unique_ptr<dashboard::Dashboard>> StartDashboard(local::Cluster& cluster) const {
    if (dashboard_.IsOff()) return nullptr;
    DashboardPlace last = ParseDashboardUrl(ReadDashboardUrl(options_.home));
    dashboard::DashboardOptions options{.token = std::move(last.token), .look_every = kIdlePollInterval};
    dashboard_.Place(last.port, options);
    auto page = dashboard::Dashboard::Start(cluster.transport(), Clock::System(), std::move(options));
    if (!page.ok())
      return dashboard_.IsGiven() ? Annotate(page.status(), "--dashboard-address") : page.status();
    TY_RETURN_IF_ERROR(ReplaceFile(options_.home.Dashboard(), (*page)->Url(), 0600, Durability::kProcess));
    return page;
  }

  void Welcome(const std::string& server) const {
    std::cout << "The cluster is ready: " << server << (ephemeral_ ? " (nothing is kept)" : "") << "\n\n"
              << "  export KUBECONFIG=" << options_.home.Kubeconfig() << "\n"
              << "  kubectl get nodes\n"
              << "  kubectl run hello --image=none --restart=Never --command -- echo hello\n\n"
              << DashboardLine()
              << (detach_ ? StrCat("What it has to say goes to ", options_.home.Log(),
                                   ". trainyard status shows it, trainyard down ends it.\n")
                          : std::string("Ctrl-C stops it.\n"))
              << std::flush;
  }

  std::string DashboardLine() const {
    const std::string url = ReadDashboardUrl(options_.home);
    return url.empty() ? "" : StrCat("The dashboard: ", url, "\n\n");
  }

  absl::Status Detach() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "cannot make a pipe");
    Fd read_end(ends[0]);
    Fd write_end(ends[1]);
    const pid_t child = ::fork();  // before the first thread
    if (child < 0) return ErrnoStatus(errno, "cannot start a process");
    if (child == 0) {
      read_end.Reset();
      return ServeDetached(std::move(write_end));
    }
    write_end.Reset();
    return AwaitDetached(std::move(read_end), child);
  }

  absl::Status ServeDetached(Fd told) {
    ::setsid();
    Fd log(::open(options_.home.Log().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    const auto tell = [&](const absl::StatusOr<std::string>& server) {
      const std::string text = server.ok() ? StrCat("+", *server) : StrCat("-", Message(server.status()));
      if (::write(told.get(), text.data(), text.size()) < 0) return;  // nobody waits any more
      told.Reset();
    };
    if (!log.valid()) {
      tell(ErrnoStatus(errno, StrCat("cannot open ", options_.home.Log())));
      ::_exit(1);
    }
    ::dup2(null.get(), STDIN_FILENO);
    ::dup2(log.get(), STDOUT_FILENO);
    ::dup2(log.get(), STDERR_FILENO);
    return Serve(tell);
  }

  absl::Status AwaitDetached(Fd told, pid_t child) const {
    std::string text;
    char buffer[4096];
    for (;;) {
      const ssize_t size = ::read(told.get(), buffer, sizeof buffer);
      if (size < 0 && errno == EINTR) continue;
      if (size <= 0) break;
      text.append(buffer, static_cast<std::size_t>(size));
    }
    if (text.starts_with('+')) {
      Welcome(text.substr(1));
      return absl::OkStatus();
    }
    ::waitpid(child, nullptr, 0);
    if (text.starts_with('-')) return absl::UnavailableError(text.substr(1));
    return absl::UnavailableError(
        StrCat("the cluster ended before it was ready; ", options_.home.Log(), " may say why"));
  }

  HomeFlag home_;
  bool detach_ = false;
  bool ephemeral_ = false;
  bool no_operator_ = false;
  std::optional<std::int64_t> nodes_;
  std::string capacity_;
  std::optional<std::int64_t> port_;
  std::string store_;
  DashboardFlag dashboard_;
  std::optional<absl::Duration> node_grace_;
  local::ClusterOptions options_;
};

}  // namespace

std::unique_ptr<Command> NewUp() { return std::make_unique<Up>(); }

}  // namespace trainyard::cli
