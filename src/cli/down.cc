// trainyard down, status
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <iostream>
#include <map>

#include "base/document.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/cluster_common.h"
#include "cli/commands.h"
#include "cli/kv_common.h"
#include "node/end_pods.h"

namespace trainyard::cli {
namespace {

constexpr int kPatienceMs = 10000;

class Down final : public Command {
 public:
  std::string name() const override { return "down"; }
  std::string summary() const override { return "End the cluster of this machine and all that it runs"; }
  std::string details() const override {
    return "Objects stay: the next `trainyard up` has them, and starts their pods again.\n\n"
           "Example:\n"
           "  trainyard down --grace 0s";
  }
  void Declare(Flags& flags) override {
    home_.Declare(flags);
    flags.Duration(
        {.name = "--grace", .value = "TIME", .help = "How long processes may take to end by themselves (5s)"},
        grace_);
  }

  absl::Status Run() override {
    if (grace_ && *grace_ < absl::ZeroDuration()) return UsageError("--grace must not be negative");
    TY_ASSIGN_OR_RETURN(const local::Home home, home_.Open());
    TY_ASSIGN_OR_RETURN(const auto running, local::FindRunning(home));
    if (running) TY_RETURN_IF_ERROR(StopProcess(running->pid));
    const int pods = node::CountPods(home.root);
    TY_RETURN_IF_ERROR(node::EndPods(home.root, grace_.value_or(absl::Seconds(5))));
    std::cerr << (running ? "the cluster has ended" : "no cluster was running");
    if (pods > 0) {
      std::cerr << (running ? ", and " : "; ended ") << pods << (pods == 1 ? " pod" : " pods")
                << (running ? " with it" : " that went on without one");
    }
    std::cerr << "\n";
    return absl::OkStatus();
  }

 private:
  static absl::Status StopProcess(pid_t pid) {
    const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (!process.valid())
      return errno == ESRCH ? absl::OkStatus() : ErrnoStatus(errno, StrCat("cannot find process ", pid));
    for (const int signal : {SIGTERM, SIGKILL}) {
      if (::kill(pid, signal) != 0 && errno != ESRCH)
        return ErrnoStatus(errno, StrCat("cannot end process ", pid));
      pollfd ended{.fd = process.get(), .events = POLLIN, .revents = 0};
      if (::poll(&ended, 1, kPatienceMs) > 0) return absl::OkStatus();
    }
    return absl::DeadlineExceededError(StrCat("process ", pid, " does not end"));
  }

  HomeFlag home_;
  std::optional<absl::Duration> grace_;
};

struct Summary {
  std::string server;
  std::map<std::string, int> nodes;  // by state
  std::map<std::string, int> pods;   // by phase
};

std::string NodeState(const Document& node) {
  std::string state = "NotReady";
  if (const Array* conditions = ArrayAt(node, {"status", "conditions"})) {
    for (const Document& condition : *conditions) {
      if (StringAt(condition, {"type"}) == "Ready" && StringAt(condition, {"status"}) == "True")
        state = "Ready";
    }
  }
  return state;
}

std::string Counts(const std::map<std::string, int>& counts) {
  std::string text;
  for (const auto& [what, count] : counts) StrAppend(text, text.empty() ? "" : ", ", count, " ", what);
  return text.empty() ? "none" : text;
}

std::string CountsJson(const std::map<std::string, int>& counts) {
  JsonObject object;
  for (const auto& [what, count] : counts) object.Add(what, count);
  return object.Str();
}

class Status final : public Command {
 public:
  std::string name() const override { return "status"; }
  std::string summary() const override {
    return "Tell whether a cluster runs on this machine, and what it runs";
  }
  std::string details() const override { return "Exits with 1 if none runs."; }
  void Declare(Flags& flags) override {
    home_.Declare(flags);
    flags.Text({.name = "-o,--output",
                .value = "FORMAT",
                .help = "table or json (table)",
                .one_of = {"table", "json"}},
               output_);
  }

  absl::Status Run() override {
    TY_ASSIGN_OR_RETURN(const local::Home home, home_.Open());
    auto client = ClusterClient::Connect(home);
    if (!client.ok()) {
      const int pods = node::CountPods(home.root);
      if (pods == 0) return client.status();
      return Annotate(client.status(), StrCat(pods, pods == 1 ? " pod goes on without a cluster"
                                                              : " pods go on without a cluster"));
    }
    Summary summary{.server = client->running().server};
    TY_ASSIGN_OR_RETURN(const kube::ListPage nodes, client->api().ListAll(kube::Resource::Nodes(), "", {}));
    for (const std::string& text : nodes.items) {
      TY_ASSIGN_OR_RETURN(const Document node, ParseJson(text));
      ++summary.nodes[NodeState(node)];
    }
    TY_ASSIGN_OR_RETURN(const kube::ListPage pods, client->api().ListAll(kube::Resource::Pods(), "", {}));
    for (const std::string& text : pods.items) {
      TY_ASSIGN_OR_RETURN(const Document pod, ParseJson(text));
      ++summary.pods[std::string(StringAt(pod, {"status", "phase"}, "Unknown"))];
    }
    return Show(home, client->running().pid, summary);
  }

 private:
  absl::Status Show(const local::Home& home, pid_t pid, const Summary& summary) const {
    std::string dashboard = ReadDashboardUrl(home);
    if (output_ == "json") {
      return Print(JsonObject()
                       .Add("server", summary.server)
                       .Add("pid", pid)
                       .Add("home", home.root)
                       .Add("kubeconfig", home.Kubeconfig())
                       .Add("dashboard", dashboard)
                       .AddRaw("nodes", CountsJson(summary.nodes))
                       .AddRaw("pods", CountsJson(summary.pods))
                       .Str() +
                   "\n");
    }
    std::vector<std::vector<std::string>> rows = {{"Server", summary.server},
                                                  {"Process", std::to_string(pid)},
                                                  {"Kubeconfig", home.Kubeconfig()},
                                                  {"Nodes", Counts(summary.nodes)},
                                                  {"Pods", Counts(summary.pods)}};
    if (!dashboard.empty()) rows.push_back({"Dashboard", std::move(dashboard)});
    return Print(Table(rows, 2));
  }

  HomeFlag home_;
  std::string output_ = "table";
};

}  // namespace

std::unique_ptr<Command> NewDown() { return std::make_unique<Down>(); }

std::unique_ptr<Command> NewStatus() { return std::make_unique<Status>(); }

}  // namespace trainyard::cli
