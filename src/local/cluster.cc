#include "local/cluster.h"

#include <unistd.h>

#include <filesystem>
#include <utility>

#include "apiserver/backend_proxy.h"
#include "apiserver/direct_transport.h"
#include "apiserver/errors.h"
#include "apiserver/proxy_target.h"
#include "apiserver/server.h"
#include "base/document.h"
#include "base/files.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "controllers/controllers.h"
#include "controllers/scheduler/scheduler.h"
#include "http/server.h"
#include "http/service_account_token.h"
#include "kube/error.h"
#include "kube/event_recorder.h"
#include "kube/node.h"
#include "kv/open.h"
#include "local/access.h"
#include "node/container_launch.h"
#include "node/log_streams.h"
#include "node/node_agent.h"
#include "node/pod_usage.h"

namespace trainyard::local {
namespace {

constexpr std::size_t kMaxPortBytes = 16;

// The port of the cluster that ran here last, so that clients find it again.
std::uint16_t LastPort(const Home& home) {
  const auto text = ReadFile(home.Port(), kMaxPortBytes);
  return text.ok() ? ParseNumber<std::uint16_t>(*text).value_or(0) : 0;
}

// What pods have of ours. They find the program that made their cluster, behind all else on their PATH.
node::StringMap MachineEnvironment() {
  node::StringMap env = node::PickMachineEnv(environ);
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return env;
  std::string& path = env.try_emplace("PATH", "/usr/local/bin:/usr/bin:/bin").first->second;
  StrAppend(path, ":", program.parent_path().string());
  return env;
}

// What happens to pods on nodes, told as events of the cluster.
class NodeEvents final : public node::EventSink {
 public:
  explicit NodeEvents(kube::EventRecorder& recorder) : recorder_(recorder) {}
  void Record(const node::EventObject& object, const node::EventNote& note) override {
    recorder_.Record({.api_version = "v1",
                      .kind = object.kind,
                      .key = {.ns = object.ns, .name = object.name},
                      .uid = object.uid},
                     note.warning ? kube::EventType::kWarning : kube::EventType::kNormal, note.reason,
                     note.message);
  }

 private:
  kube::EventRecorder& recorder_;
};

std::unique_ptr<kube::EventRecorder> NewRecorder(kube::Api& api, Clock& clock, std::string component) {
  auto recorder = std::make_unique<kube::EventRecorder>(
      api, clock, IdSource::Random(), kube::EventRecorder::Options{.component = std::move(component)});
  recorder->Start();
  return recorder;
}

class ClusterInProcess final : public Cluster {
 public:
  explicit ClusterInProcess(ClusterOptions options) : options_(std::move(options)) {}
  ~ClusterInProcess() override { Stop(); }

  absl::Status Start() {
    TY_ASSIGN_OR_RETURN(HomeLock lock, HomeLock::Take(options_.home));
    lock_.emplace(std::move(lock));
    TY_ASSIGN_OR_RETURN(const Access access, OpenAccess(options_.home, clock_.Now()));
    const std::string url =
        options_.store_url.empty() ? StrCat("embedded:", options_.home.Store()) : options_.store_url;
    TY_ASSIGN_OR_RETURN(store_, kv::OpenStore(url));
    TY_ASSIGN_OR_RETURN(logs_, node::LogStreams::Start(options_.home.root));
    TY_ASSIGN_OR_RETURN(proxy_, apiserver::BackendProxy::Start());
    TY_ASSIGN_OR_RETURN(server_, apiserver::ApiServer::Start({.store = store_.get(),
                                                              .logs = logs_.get(),
                                                              .metrics = &usage_,
                                                              .proxy = proxy_.get(),
                                                              .release = options_.release}));
    TY_RETURN_IF_ERROR(Listen(access));
    TY_RETURN_IF_ERROR(StartControllers(access));
    TY_RETURN_IF_ERROR(PublishApiServer(*api_, http_->port()));
    TY_RETURN_IF_ERROR(StartNodes(access));
    return lock_->Announce(address_);
  }

  const std::string& server() const override { return address_; }
  kube::Transport& transport() override { return *transport_; }

 private:
  absl::Status Listen(const Access& access) {
    const auto tokens = [token = access.token](std::string_view given) -> std::optional<http::Identity> {
      if (auto account = http::FindServiceAccount(token, given)) return account;
      if (!SameSecret(given, token)) return std::nullopt;
      return http::Identity{.user = "trainyard-admin", .groups = {"system:masters", "system:authenticated"}};
    };
    const auto handle = [this](http::ServerRequest request, std::unique_ptr<http::Responder> responder) {
      server_->Handle(std::move(request), std::move(responder));
    };
    const auto judge = http::JudgeByToken(tokens, "the API server", apiserver::PrintRefusal);
    const std::uint16_t port = options_.port != 0 ? options_.port : LastPort(options_.home);
    http::ServerOptions options{.listen = {.host = "127.0.0.1", .port = port},
                                .certificate_pem = access.server.certificate_pem,
                                .key_pem = access.server.key_pem,
                                .client_ca_pem = access.authority_pem,
                                .relayed = apiserver::IsProxyTarget,
                                .print_error = apiserver::PrintRefusal};
    auto http = http::Server::Start(options, judge, handle);
    if (!http.ok() && options_.port == 0 && port != 0) {  // somebody else has the last one now
      options.listen.port = 0;
      http = http::Server::Start(options, judge, handle);
    }
    TY_RETURN_IF_ERROR(http);
    http_ = *std::move(http);
    address_ = StrCat("https://127.0.0.1:", http_->port());
    TY_RETURN_IF_ERROR(
        ReplaceFile(options_.home.Port(), std::to_string(http_->port()), 0600, Durability::kPower));
    return WriteKubeconfig(options_.home, access, address_);
  }

  absl::Status StartControllers(const Access& access) {
    transport_ = std::make_unique<apiserver::DirectTransport>(*server_, "trainyard");
    api_ = std::make_unique<kube::Api>(*transport_, clock_, IdSource::Random());
    events_ = NewRecorder(*api_, clock_, "default-scheduler");
    scheduler_ = std::make_unique<scheduler::Scheduler>(*api_, clock_, IdSource::Random(), *events_);
    scheduler_->Start();
    controllers::ControllerOptions options{.authority_pem = access.authority_pem, .wake = clock_.NewAlarm()};
    options.nodes.grace = options_.node_grace;
    options.nodes.startup_grace = options_.node_grace;
    control_transport_ =
        std::make_unique<apiserver::DirectTransport>(*server_, "trainyard-controllers", options.wake);
    controllers_ = std::make_unique<controllers::Controllers>(*control_transport_, clock_, std::move(options),
                                                              [this] { return server_->resources(); });
    return controllers_->Start();
  }

  // Those that an earlier run had and this one has not. What a user made stays.
  absl::Status RemoveOldNodes() {
    TY_ASSIGN_OR_RETURN(const kube::ListPage nodes, api_->ListAll(kube::Resource::Nodes(), "", {}));
    for (const std::string& text : nodes.items) {
      TY_ASSIGN_OR_RETURN(const Document node, ParseJson(text));
      const std::string name(StringAt(node, {"metadata", "name"}));
      const std::string_view version = StringAt(node, {"status", "nodeInfo", "kubeletVersion"});
      if (version.find("+trainyard") == std::string_view::npos || IsConfigured(name)) continue;
      const absl::Status removed = api_->Delete(kube::Resource::Nodes(), {.ns = "", .name = name});
      if (!removed.ok() && !kube::IsNotFound(removed)) return removed;
    }
    return absl::OkStatus();
  }
  bool IsConfigured(std::string_view node) const {
    for (int number = 1; number <= options_.nodes; ++number) {
      if (node == NodeName(number)) return true;
    }
    return false;
  }
  static std::string NodeName(int number) { return StrCat("node-", number); }

  absl::Status StartNodes(const Access& access) {
    TY_RETURN_IF_ERROR(RemoveOldNodes());
    std::error_code error;
    std::filesystem::create_directories(options_.home.Storage(), error);
    if (error) return ErrnoStatus(error.value(), StrCat("cannot make the folder ", options_.home.Storage()));
    node_recorder_ = NewRecorder(*api_, clock_, "kubelet");
    node_events_ = std::make_unique<NodeEvents>(*node_recorder_);
    node::NodeAgentOptions options{.home = options_.home.root,
                                   .bin = options_.home.Bin(),
                                   .release = options_.release,
                                   .work_folder = std::filesystem::current_path().string(),
                                   .machine_env = MachineEnvironment(),
                                   .heartbeat = options_.heartbeat,
                                   .token =
                                       [token = access.token](const node::PodSpec& pod) {
                                         return http::ServiceAccountToken(token, pod.ns, pod.service_account);
                                       },
                                   .events = node_events_.get()};
    for (int number = 1; number <= options_.nodes; ++number) {
      options.nodes.push_back(
          {.name = NodeName(number),
           .labels = {},
           .annotations = {{std::string(kube::kStorageAnnotation), options_.home.Storage()}},
           .capacity = options_.capacity});
    }
    TY_ASSIGN_OR_RETURN(nodes_, node::NodeAgent::Start(*api_, clock_, std::move(options)));
    for (const std::string& shortcoming : nodes_->shortcomings()) log::Warn(shortcoming);
    return absl::OkStatus();
  }

  // Those who ask first, those who answer last.
  void Stop() {
    nodes_.reset();
    if (node_recorder_) node_recorder_->Stop();
    controllers_.reset();
    scheduler_.reset();
    if (events_) events_->Stop();
    events_.reset();
    http_.reset();
    server_.reset();
    proxy_.reset();
    logs_.reset();
    store_.reset();
  }

  const ClusterOptions options_;
  Clock& clock_ = Clock::System();
  std::optional<HomeLock> lock_;
  std::unique_ptr<kv::Store> store_;
  std::unique_ptr<node::LogStreams> logs_;
  node::PodUsageReader usage_{options_.home.root};
  std::unique_ptr<apiserver::BackendProxy> proxy_;
  std::unique_ptr<apiserver::ApiServer> server_;
  std::unique_ptr<http::Server> http_;
  std::string address_;
  std::unique_ptr<apiserver::DirectTransport> transport_;
  std::unique_ptr<apiserver::DirectTransport> control_transport_;
  std::unique_ptr<kube::Api> api_;
  std::unique_ptr<kube::EventRecorder> events_;
  std::unique_ptr<scheduler::Scheduler> scheduler_;
  std::unique_ptr<controllers::Controllers> controllers_;
  std::unique_ptr<kube::EventRecorder> node_recorder_;
  std::unique_ptr<NodeEvents> node_events_;
  std::unique_ptr<node::NodeAgent> nodes_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Cluster>> Cluster::Start(ClusterOptions options) {
  auto cluster = std::make_unique<ClusterInProcess>(std::move(options));
  TY_RETURN_IF_ERROR(cluster->Start());
  return cluster;
}

}  // namespace trainyard::local
