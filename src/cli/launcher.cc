// trainyard launcher
#include "absl/time/clock.h"
#include "base/access.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/ending_signals.h"
#include "cli/kube_common.h"
#include "cli/worker_process.h"
#include "kube/api.h"
#include "kube/curl_transport.h"
#include "kube/node.h"
#include "launch/controller.h"
#include "launch/server.h"

namespace trainyard::cli {
namespace {

constexpr absl::Duration kCacheSyncTimeout = absl::Seconds(60);
constexpr absl::Duration kNodePatience = absl::Seconds(10);
constexpr absl::Duration kBetweenNodeLists = absl::Milliseconds(20);
constexpr int kLauncherPort = 7897;

class LauncherCommand final : public Command {
 public:
  std::string name() const override { return "launcher"; }
  std::string summary() const override {
    return "Run the master of launched tasks: an HTTP server in the cluster";
  }
  std::string details() const override {
    return "`trainyard launch` starts one on the embedded cluster by itself; on others deploy/launcher does. "
           "All that\n"
           "it knows is in the cluster: it may be killed at any time and goes on. /openapi.json describes "
           "its API.\n\n"
           "Examples:\n"
           "  trainyard launcher --listen 127.0.0.1:7897\n"
           "  curl 'http://127.0.0.1:7897/create?strategy=AllReduce&n_worker=4&img=/my/example&name=test'";
  }

  void Declare(Flags& flags) override {
    kube_.Declare(flags);
    flags.Text({.name = "-n,--namespace", .value = "NAME", .help = "Where its tasks are (the context's)"},
               ns_);
    flags.Text({.name = "--listen",
                .value = "ADDRESS",
                .help = "Where clients come (127.0.0.1:7897, or the pod's IP)"},
               listen_);
    flags.Text({.name = "--token-file",
                .value = "FILE",
                .help = "Whoever does not show this token is refused ($TRAINYARD_LAUNCHER_TOKEN)"},
               token_file_);
    flags.Text(
        {.name = "--agent-image",
         .value = "IMAGE",
         .help =
             "Has the agent, for an init container that puts it into members' pods; unset on the embedded "
             "cluster, where the agent simply runs"},
        agent_image_);
    flags.Text({.name = "--agent-pull-policy", .value = "POLICY", .help = "Always, IfNotPresent or Never"},
               pull_policy_);
  }

  absl::Status Run() override {
    const EndingSignals signals;  // before the first thread
    TY_ASSIGN_OR_RETURN(kube::ClusterConfig config, kube_.Load());
    if (!ns_.empty()) config.ns = ns_;
    const std::string ns = config.ns.empty() ? "default" : config.ns;
    TY_ASSIGN_OR_RETURN(std::string token, FindToken(token_file_, "TRAINYARD_LAUNCHER_TOKEN"));
    if (listen_.empty()) listen_ = PodAddress(kLauncherPort);
    TY_ASSIGN_OR_RETURN(const ListenAddress address, ParseListenAddress(listen_));
    if (token.empty() && !address.IsLoopback())
      return UsageError(StrCat("--listen ", listen_, " can be reached by others: give --token-file"));
    TY_ASSIGN_OR_RETURN(const auto transport, kube::NewCurlTransport(std::move(config)));
    kube::Api api(*transport, Clock::System(), IdSource::Random());
    TY_ASSIGN_OR_RETURN(const auto calls, http::Calls::Start());
    TY_ASSIGN_OR_RETURN(const launch::AgentSource agent, FindAgent(api));
    launch::Controller controller(api, *calls, Clock::System(), {.ns = ns, .agent = agent});
    TY_RETURN_IF_ERROR(controller.Start());
    TY_RETURN_IF_ERROR(controller.WaitForSync(kCacheSyncTimeout));
    TY_ASSIGN_OR_RETURN(const auto server,
                        launch::Server::Start(controller, {.address = listen_, .token = token}));
    log::Info("the launcher is ready", {{"address", server->address()}, {"namespace", ns}});
    if (!signals.AwaitFor(absl::Seconds(1))) {
      ReturnMemory();
      signals.Await();
    }
    return absl::OkStatus();
  }

 private:
  // On the embedded cluster pods find this very program; elsewhere an image has it.
  absl::StatusOr<launch::AgentSource> FindAgent(kube::Api& api) const {
    if (!agent_image_.empty()) return launch::AgentSource{agent_image_, pull_policy_};
    // A cluster that has just been started may not have a node yet.
    const SteadyTime deadline = Clock::System().Steady() + kNodePatience;
    TY_ASSIGN_OR_RETURN(kube::ListPage nodes, api.List(kube::Resource::Nodes(), "", {.limit = 1}));
    while (nodes.items.empty() && Clock::System().Steady() < deadline) {
      absl::SleepFor(kBetweenNodeLists);
      TY_ASSIGN_OR_RETURN(nodes, api.List(kube::Resource::Nodes(), "", {.limit = 1}));
    }
    for (const std::string& node : nodes.items) {
      if (node.find(kube::kProcessRuntime) != std::string::npos) return launch::AgentSource();
    }
    return UsageError(
        "--agent-image is missing: which image has `trainyard`, for pods to take the agent from?");
  }

  KubeFlags kube_;
  std::string ns_;
  std::string listen_;
  std::string token_file_;
  std::string agent_image_;
  std::string pull_policy_;
};

}  // namespace

std::unique_ptr<Command> NewLauncher() { return std::make_unique<LauncherCommand>(); }

}  // namespace trainyard::cli
