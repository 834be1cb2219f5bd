#include "apiserver/proxy_backend.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "apiserver/errors.h"
#include "apiserver/stored_object.h"
#include "base/check.h"
#include "base/status.h"
#include "base/text.h"
#include "kube/error.h"

namespace trainyard::apiserver {
namespace {

constexpr std::uint16_t kHttpPort = 80;

absl::Status Unavailable(std::string message) {
  return kube::ToStatus(
      kube::ApiError{.code = 503, .reason = "ServiceUnavailable", .message = std::move(message)});
}

absl::Status NobodyBehind(std::string_view service) {
  return Unavailable(StrCat("no endpoints available for service \"", service, "\""));
}

std::optional<std::uint16_t> AsPort(std::int64_t number) {
  if (number <= 0 || number > UINT16_MAX) return std::nullopt;
  return static_cast<std::uint16_t>(number);
}

// The objects of a request's namespace.
class Objects {
 public:
  Objects(kv::Store& store, const ResourceTable& resources, std::string_view ns)
      : store_(store), resources_(resources), ns_(ns) {}

  absl::StatusOr<Document> Get(std::string_view plural, std::string_view name) const {
    const auto resource = resources_.Find("", plural);
    TY_CHECK(resource != nullptr, "the kinds that a proxy needs are built in");
    const auto found = store_.Get(StoreKey("", plural, ns_, name));
    if (!found.ok()) return kube::ToStatus(FromStore(found.status()));
    if (!found->kv) return kube::ToStatus(NotFound(*resource, name));
    return DecodeStored("v1", resource->kind, found->kv->value, found->kv->mod_revision);
  }

 private:
  kv::Store& store_;
  const ResourceTable& resources_;
  const std::string_view ns_;
};

absl::StatusOr<ProxyBackend> OfPod(const Objects& objects, const ProxyTarget& target) {
  TY_ASSIGN_OR_RETURN(const Document pod, objects.Get("pods", target.name));
  TY_ASSIGN_OR_RETURN(const std::uint16_t port, PodPort(pod, target.port));
  const std::string_view ip = StringAt(pod, {"status", "podIP"});
  if (ip.empty()) {
    return kube::ToStatus(
        BadRequest(StrCat("address not allowed: pod ", target.name, " has none yet; wait until it runs")));
  }
  return ProxyBackend{.ip = std::string(ip), .port = port};
}

absl::StatusOr<ProxyBackend> OfService(const Objects& objects, const ProxyTarget& target, std::size_t turn) {
  std::string port = target.port;
  if (ParseNumber<std::int64_t>(port)) {
    TY_ASSIGN_OR_RETURN(const Document service, objects.Get("services", target.name));
    TY_ASSIGN_OR_RETURN(port, PortName(service, port));
  }
  TY_ASSIGN_OR_RETURN(const Document endpoints, objects.Get("endpoints", target.name));
  const Array* subsets = ArrayAt(endpoints, {"subsets"});
  if (subsets == nullptr || subsets->empty()) return NobodyBehind(target.name);
  const std::vector<ProxyCandidate> candidates = CandidatesOf(endpoints, port);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const ProxyCandidate& candidate = candidates[(turn + i) % candidates.size()];
    if (candidate.pod.empty() || candidate.ns != target.ns) continue;
    const auto pod = objects.Get("pods", candidate.pod);
    if (!pod.ok() && !kube::IsNotFound(pod.status())) return pod.status();
    if (pod.ok() && HasAddress(*pod, candidate.backend.ip)) return candidate.backend;
  }
  return NobodyBehind(Escaped(target.id));
}

}  // namespace

absl::StatusOr<std::string> PortName(const Document& service, std::string_view port) {
  const auto number = ParseNumber<std::int64_t>(port);
  if (!number) return std::string(port);
  if (const Array* ports = ArrayAt(service, {"spec", "ports"}); ports != nullptr) {
    for (const Document& candidate : *ports) {
      if (IntAt(candidate, {"port"}) == number) return std::string(StringAt(candidate, {"name"}));
    }
  }
  return Unavailable(StrCat("no service port ", *number, " found for service \"",
                            StringAt(service, {"metadata", "name"}), "\""));
}

std::vector<ProxyCandidate> CandidatesOf(const Document& endpoints, std::string_view port_name) {
  std::vector<ProxyCandidate> candidates;
  const Array* subsets = ArrayAt(endpoints, {"subsets"});
  if (subsets == nullptr) return candidates;
  for (const Document& subset : *subsets) {
    const Array* addresses = ArrayAt(subset, {"addresses"});
    const Array* ports = ArrayAt(subset, {"ports"});
    if (addresses == nullptr || ports == nullptr) continue;
    for (const Document& port : *ports) {
      const auto number = AsPort(IntAt(port, {"port"}).value_or(0));
      if (StringAt(port, {"name"}) != port_name || !number) continue;
      for (const Document& address : *addresses) {
        candidates.push_back({.backend = {.ip = std::string(StringAt(address, {"ip"})), .port = *number},
                              .ns = std::string(StringAt(address, {"targetRef", "namespace"})),
                              .pod = std::string(StringAt(address, {"targetRef", "name"}))});
      }
    }
  }
  return candidates;
}

absl::StatusOr<std::uint16_t> PodPort(const Document& pod, std::string_view port) {
  if (!port.empty()) {
    const auto number = ParseNumber<std::int64_t>(port);
    const auto valid = number ? AsPort(*number) : std::nullopt;
    if (valid) return *valid;
    return kube::ToStatus(BadRequest(
        StrCat("\"", Escaped(port), "\" is no port of a pod: give its number, from 1 to ", UINT16_MAX)));
  }
  if (const Array* containers = ArrayAt(pod, {"spec", "containers"}); containers != nullptr) {
    for (const Document& container : *containers) {
      const Array* ports = ArrayAt(container, {"ports"});
      if (ports == nullptr || ports->empty()) continue;
      return AsPort(IntAt(ports->front(), {"containerPort"}).value_or(0)).value_or(kHttpPort);
    }
  }
  return kHttpPort;
}

bool HasAddress(const Document& pod, std::string_view ip) {
  if (ip.empty()) return false;
  if (StringAt(pod, {"status", "podIP"}) == ip) return true;
  const Array* ips = ArrayAt(pod, {"status", "podIPs"});
  if (ips == nullptr) return false;
  return std::ranges::any_of(*ips, [ip](const Document& one) { return StringAt(one, {"ip"}) == ip; });
}

absl::StatusOr<ProxyBackend> FindBackend(kv::Store& store, const ResourceTable& resources,
                                         const ProxyTarget& target, std::size_t turn) {
  const Objects objects(store, resources, target.ns);
  return target.plural == "pods" ? OfPod(objects, target) : OfService(objects, target, turn);
}

}  // namespace trainyard::apiserver
