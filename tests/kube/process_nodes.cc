// usage: process_nodes KUBECONFIG HOME NODES NODE_GRACE_SECONDS [CAPACITY]
//
// Makes a cluster of a bare API server: a scheduler, the controllers and so many nodes whose pods are
// processes of this machine, all of them the embedded cluster's own, speaking over the network. Each node has
// the capacity, as cpu=4,memory=8Gi. Prints "ready" and runs until it is told to end; the pods' processes are
// ended too.
#include <signal.h>

#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "apiserver/direct_transport.h"
#include "apiserver/server.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/ending_signals.h"
#include "controllers/controllers.h"
#include "controllers/scheduler/scheduler.h"
#include "kube/api.h"
#include "kube/curl_transport.h"
#include "kube/event_recorder.h"
#include "kube/kubeconfig.h"
#include "kv/memory_store.h"
#include "node/container_launch.h"
#include "node/end_pods.h"
#include "node/node_agent.h"
#include "operator/kinds.h"

namespace trainyard {
namespace {

struct Options {
  std::string kubeconfig;
  std::string home;
  int nodes = 1;
  absl::Duration grace;
  std::map<std::string, std::string> capacity;
};

std::map<std::string, std::string> ParseCapacity(std::string_view text) {
  std::map<std::string, std::string> capacity;
  for (const std::string_view part : Split(text, ',')) {
    const std::size_t sign = part.find('=');
    if (sign != std::string_view::npos) capacity.emplace(part.substr(0, sign), part.substr(sign + 1));
  }
  return capacity;
}

// A server of our own, only to know what kinds there are.
absl::StatusOr<std::shared_ptr<const apiserver::ResourceTable>> KnownKinds() {
  Clock& clock = Clock::System();
  const auto store = kv::NewMemoryStore(clock);
  TY_ASSIGN_OR_RETURN(const auto server,
                      apiserver::ApiServer::Start({.store = store.get(), .threads = false}));
  apiserver::DirectTransport transport(*server, "kinds");
  kube::Api api(transport, clock, IdSource(1), {.attempts = 1});
  TY_RETURN_IF_ERROR(ops::InstallDefinitions(api));
  return server->resources();
}

absl::Status Run(const Options& options) {
  const cli::EndingSignals signals;
  Clock& clock = Clock::System();
  TY_ASSIGN_OR_RETURN(const auto kinds, KnownKinds());
  TY_ASSIGN_OR_RETURN(kube::ClusterConfig config, kube::LoadConfig({.path = options.kubeconfig}));
  TY_ASSIGN_OR_RETURN(const auto transport, kube::NewCurlTransport(std::move(config)));
  kube::Api api(*transport, clock, IdSource::Random());
  kube::EventRecorder events(api, clock, IdSource::Random(),
                             {.component = "test-cluster", .instance = "test-cluster"});
  events.Start();
  scheduler::Scheduler scheduler(api, clock, IdSource::Random(), events);
  scheduler.Start();
  controllers::ControllerOptions control{.proxy = false};
  control.nodes.grace = control.nodes.startup_grace = options.grace;
  controllers::Controllers controllers(*transport, clock, control, [&] { return kinds; });
  node::NodeAgentOptions nodes{.home = options.home,
                               .bin = options.home + "/bin",
                               .machine_env = node::PickMachineEnv(environ),
                               .heartbeat = options.grace / 5};
  for (int number = 1; number <= options.nodes; ++number) {
    nodes.nodes.push_back({.name = StrCat("node-", number), .labels = {}, .capacity = options.capacity});
  }
  TY_ASSIGN_OR_RETURN(auto agent, node::NodeAgent::Start(api, clock, std::move(nodes)));
  std::cout << "ready" << std::endl;
  // Nobody tells when a watch over the network has something to say.
  while (!signals.AwaitFor(absl::Milliseconds(10))) controllers.Step();
  agent.reset();
  return node::EndPods(options.home, absl::Seconds(1));
}

}  // namespace
}  // namespace trainyard

int main(int argc, char** argv) {
  if (argc != 5 && argc != 6) {
    std::cerr << "usage: process_nodes KUBECONFIG HOME NODES NODE_GRACE_SECONDS [CAPACITY]\n";
    return 2;
  }
  ::signal(SIGPIPE, SIG_IGN);
  const absl::Status status =
      trainyard::Run({.kubeconfig = argv[1],
                      .home = argv[2],
                      .nodes = std::atoi(argv[3]),
                      .grace = absl::Seconds(std::atoi(argv[4])),
                      .capacity = trainyard::ParseCapacity(argc == 6 ? argv[5] : "")});
  if (status.ok()) return 0;
  std::cerr << status << "\n";
  return 1;
}
