#include "client/cluster.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/access.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "client/gateway_store.h"
#include "job/status_document.h"
#include "job/telling.h"
#include "kube/curl_transport.h"
#include "kube/node.h"
#include "kv/open.h"

namespace trainyard::client {
namespace {

constexpr absl::Duration kKindPatience = absl::Seconds(5);
constexpr absl::Duration kBetweenKindLooks = absl::Milliseconds(100);
constexpr absl::Duration kBetweenClusterPolls = absl::Milliseconds(50);

// The kubeconfig of the embedded cluster of this user, if there is one.
std::string EmbeddedKubeconfig() {
  std::string home = kube::ProcessEnvironment("TRAINYARD_HOME").value_or("");
  if (home.empty()) home = StrCat(kube::ProcessEnvironment("HOME").value_or(""), "/.trainyard");
  return StrCat(home, "/kubeconfig");
}

absl::StatusOr<kube::ClusterConfig> LoadConfig(const ClusterOptions& options) {
  auto config = kube::LoadConfig({.path = options.kubeconfig, .context = options.context});
  const bool named = !options.kubeconfig.empty() || !options.context.empty() ||
                     kube::ProcessEnvironment("KUBECONFIG").has_value();
  if (named || !absl::IsNotFound(config.status())) return config;
  const std::string embedded = EmbeddedKubeconfig();
  std::error_code error;
  if (std::filesystem::exists(embedded, error)) return kube::LoadConfig({.path = embedded});
  return absl::NotFoundError(
      "no cluster is configured: start one on this machine with `trainyard up`, or name a kubeconfig");
}

// The parts of "NAME.NAMESPACE.svc…:PORT", where it can be a service of the cluster.
struct ServiceAddress {
  std::string name;
  std::string ns;
  std::string port;
};
std::optional<ServiceAddress> AsService(const std::string& endpoint, const std::string& ns) {
  const std::size_t colon = endpoint.rfind(':');
  if (colon == std::string::npos || endpoint.starts_with('[')) return std::nullopt;
  const std::vector<std::string_view> parts = Split(std::string_view(endpoint).substr(0, colon), '.');
  if (parts.size() > 2 && parts[2] != "svc") return std::nullopt;
  return ServiceAddress{std::string(parts[0]), parts.size() > 1 ? std::string(parts[1]) : ns,
                        endpoint.substr(colon + 1)};
}

// Whether its pods are processes beside this one.
bool IsOfThisMachine(const Document& node) {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return !boot.empty() && StringAt(node, {"status", "nodeInfo", "bootID"}) == boot &&
         StringAt(node, {"status", "nodeInfo", "containerRuntimeVersion"}).starts_with(kube::kProcessRuntime);
}

}  // namespace

job::JobStatus StatusOf(const Document& job) {
  return job::ParseStatus(Find(job, {"status"}), job::kAiTrainingJobStatus);
}

std::string PhaseOf(const job::JobStatus& status) {
  const job::Condition* const current = status.Current();
  if (current == nullptr) return "";
  const std::string_view phase = job::StateName(job::Telling::kByPhase, current->type);
  return current->message.empty() ? std::string(phase) : StrCat(phase, ": ", current->message);
}

absl::StatusOr<std::unique_ptr<Cluster>> Cluster::Open(ClusterOptions options) {
  if (!options.store.empty()) {
    TY_ASSIGN_OR_RETURN(const kv::StoreUrl url, kv::ParseStoreUrl(options.store, {}));
    if (!std::holds_alternative<kv::EtcdOptions>(url)) {
      return absl::InvalidArgumentError(StrCat(
          "the store ", options.store, " is of this process alone: pods need one at etcd://HOST:PORT"));
    }
  }
  if (!options.storage.empty()) TY_RETURN_IF_ERROR(ParseStorage(options.storage));
  TY_ASSIGN_OR_RETURN(kube::ClusterConfig config, LoadConfig(options));
  if (!options.ns.empty()) config.ns = options.ns;
  TY_ASSIGN_OR_RETURN(std::unique_ptr<kube::Transport> transport, kube::NewCurlTransport(config));
  return std::unique_ptr<Cluster>(new Cluster(std::move(options), std::move(config), std::move(transport)));
}

Cluster::Cluster(ClusterOptions options, kube::ClusterConfig config,
                 std::unique_ptr<kube::Transport> transport)
    : options_(std::move(options)),
      config_(std::move(config)),
      inside_(config_.context.empty()),
      transport_(std::move(transport)),
      api_(std::make_unique<kube::Api>(*transport_, Clock::System(), IdSource::Random())) {}

absl::StatusOr<PodSettings> Cluster::FindPodSettings() {
  PodSettings pods{.ns = ns(), .image = options_.image};
  std::string storage = options_.storage;
  if (storage.empty()) {
    TY_ASSIGN_OR_RETURN(const kube::ListPage nodes, api_->ListAll(kube::Resource::Nodes(), "", {}));
    for (const std::string& text : nodes.items) {
      TY_ASSIGN_OR_RETURN(const Document node, ParseJson(text));
      storage = StringAt(node, {"metadata", "annotations", kube::kStorageAnnotation});
      pods.sees_client = IsOfThisMachine(node);
      if (!storage.empty()) break;
    }
  }
  if (storage.empty()) {
    return absl::FailedPreconditionError(
        StrCat("where are checkpoints to be kept? Give storage: a folder that all nodes see, as /mnt/yard, "
               "or claim:NAME; or annotate the nodes with ",
               kube::kStorageAnnotation));
  }
  TY_ASSIGN_OR_RETURN(pods.storage, ParseStorage(storage));
  return pods;
}

std::string Cluster::StoreUrlForPods() const { return HasOwnStore() ? StoreUrl(ns()) : options_.store; }

absl::StatusOr<std::unique_ptr<kv::Store>> Cluster::FindStore() {
  if (!HasOwnStore()) {
    TY_ASSIGN_OR_RETURN(auto named, OpenNamed());
    TY_RETURN_IF_ERROR(AwaitStore(*named));
    return named;
  }
  const absl::StatusOr<Document> job = Get(AITrainingJobs(), kStoreName);
  if (kube::IsNotFound(job.status()))
    return absl::NotFoundError(StrCat("the namespace ", ns(), " has no store yet"));
  if (!job.ok()) return job.status();
  TY_ASSIGN_OR_RETURN(const Document secret, Get(kube::Resource::Secrets(), kStoreName));
  TY_ASSIGN_OR_RETURN(auto store, OpenOwn(secret));
  TY_RETURN_IF_ERROR(AwaitStore(*store));
  return store;
}

absl::StatusOr<std::unique_ptr<kv::Store>> Cluster::EnsureStore() {
  if (HasOwnStore()) TY_RETURN_IF_ERROR(CreateStore());
  return FindStore();
}

// Each piece that is missing; another client may do the same at this moment.
absl::Status Cluster::CreateStore() {
  const auto ensure = [this](const kube::Resource& resource, const Document& object) {
    const absl::Status created = Create(resource, object).status();
    return kube::IsAlreadyExists(created) ? absl::OkStatus() : created;
  };
  if (const absl::Status there = Get(AITrainingJobs(), kStoreName).status(); !kube::IsNotFound(there))
    return there;
  TY_ASSIGN_OR_RETURN(const PodSettings pods, FindPodSettings());
  TY_ASSIGN_OR_RETURN(const std::string token, NewToken());
  TY_RETURN_IF_ERROR(ensure(kube::Resource::Secrets(), TokenSecret(ns(), kStoreName, token)));
  TY_RETURN_IF_ERROR(ensure(kube::Resource::Services(), StoreService(ns())));
  return ensure(AITrainingJobs(), StoreJob(pods));
}

// The service or address that the user named.
absl::StatusOr<std::unique_ptr<kv::Store>> Cluster::OpenNamed() {
  TY_ASSIGN_OR_RETURN(const kv::StoreUrl url, kv::ParseStoreUrl(options_.store, {}));
  const auto& etcd = std::get<kv::EtcdOptions>(url);
  if (!inside_) {
    if (const auto service = AsService(etcd.endpoints[0], ns())) {
      const auto found = api_->Get(kube::Resource::Services(), {.ns = service->ns, .name = service->name});
      if (found.ok()) return OpenThroughServer(service->ns, service->name, service->port, etcd.token);
    }
  }
  return kv::OpenStore(options_.store);
}

absl::StatusOr<std::unique_ptr<kv::Store>> Cluster::OpenOwn(const Document& secret) {
  TY_ASSIGN_OR_RETURN(std::string token, DecodeBase64(StringAt(secret, {"data", kTokenKey})));
  if (!inside_) return OpenThroughServer(ns(), kStoreName, "gateway", std::move(token));
  return kv::OpenEtcdStore(
      {.endpoints = {StrCat(kStoreName, ".", ns(), ":", kStorePort)}, .token = std::move(token)});
}

absl::StatusOr<std::unique_ptr<kv::Store>> Cluster::OpenThroughServer(std::string_view ns,
                                                                      std::string_view service,
                                                                      std::string_view port,
                                                                      std::string token) {
  return OpenGatewayStore(
      {.server = config_, .path = ServiceProxyPath(ns, service, port), .token = std::move(token)});
}

absl::Status Cluster::AwaitStore(kv::Store& store) {
  const SteadyTime deadline = Clock::System().Steady() + options_.patience;
  for (;;) {
    const absl::Status answered = store.Get("trainyard").status();
    const bool away = absl::IsUnavailable(answered) || absl::IsDeadlineExceeded(answered) ||
                      absl::IsUnknown(answered) || absl::IsNotFound(answered);
    if (!away) return answered;
    if (Clock::System().Steady() >= deadline) {
      std::string why(Message(answered));
      if (HasOwnStore()) {
        if (const auto job = Get(AITrainingJobs(), kStoreName); job.ok())
          why = StrCat("AITrainingJob ", kStoreName, " is ", PhaseOf(StatusOf(*job)));
      }
      return absl::UnavailableError(StrCat("the store at ", StoreUrlForPods(), " does not answer: ", why));
    }
    absl::SleepFor(kBetweenClusterPolls);
  }
}

absl::StatusOr<Document> Cluster::Get(const kube::Resource& resource, std::string_view name) {
  TY_ASSIGN_OR_RETURN(const std::string text, api_->Get(resource, {.ns = ns(), .name = std::string(name)}));
  return ParseJson(text);
}

absl::StatusOr<Document> Cluster::Create(const kube::Resource& resource, const Document& object) {
  absl::StatusOr<std::string> made = api_->Create(resource, ns(), PrintJson(object));
  // A cluster that has just been started may not have its kinds yet.
  const SteadyTime deadline = Clock::System().Steady() + kKindPatience;
  while (kube::IsNotFound(made.status()) && !HasKind(resource)) {
    if (Clock::System().Steady() > deadline) {
      return absl::FailedPreconditionError(
          StrCat("the cluster has no ", resource.kind,
                 "s: `kubectl apply -k deploy/` installs the kind and its operator"));
    }
    absl::SleepFor(kBetweenKindLooks);
    made = api_->Create(resource, ns(), PrintJson(object));
  }
  TY_RETURN_IF_ERROR(made.status());
  return ParseJson(*made);
}

bool Cluster::HasKind(const kube::Resource& resource) {
  return !kube::IsNotFound(api_->List(resource, "", {.limit = 1}).status());
}

absl::Status Cluster::Delete(const kube::Resource& resource, std::string_view name) {
  const kube::ObjectKey key{.ns = ns(), .name = std::string(name)};
  const SteadyTime deadline = Clock::System().Steady() + options_.patience;
  const absl::Status deleted = api_->Delete(resource, key, {.propagation = kube::Propagation::kForeground});
  if (!deleted.ok() && !kube::IsNotFound(deleted)) return deleted;
  for (;;) {
    const absl::Status there = api_->Get(resource, key).status();
    if (kube::IsNotFound(there)) return absl::OkStatus();
    if (Clock::System().Steady() >= deadline) {
      return absl::DeadlineExceededError(StrCat(resource.kind, " ", name, " is still there after ",
                                                absl::FormatDuration(options_.patience),
                                                ": its pods have not ended, or nobody removes them"));
    }
    absl::SleepFor(kBetweenClusterPolls);
  }
}

}  // namespace trainyard::client
