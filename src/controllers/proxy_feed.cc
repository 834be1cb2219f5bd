#include "controllers/proxy_feed.h"

#include <algorithm>
#include <utility>

#include "base/crc32c.h"
#include "base/text.h"

namespace trainyard::controllers {
namespace {

std::vector<Backend> BackendsOf(const ObservedEndpoints& endpoints, const kube::ServicePort& port) {
  std::vector<Backend> backends;
  for (const ObservedEndpoints::Subset& subset : endpoints.subsets) {
    for (const EndpointPort& candidate : subset.ports) {
      if (port.name != candidate.name || candidate.protocol != "TCP" || candidate.port <= 0 ||
          candidate.port > UINT16_MAX) {
        continue;
      }
      for (const std::string& ip : subset.ready) {
        backends.push_back({.ip = ip, .port = static_cast<std::uint16_t>(candidate.port)});
      }
    }
  }
  std::ranges::sort(backends);
  const auto repeated = std::ranges::unique(backends);
  backends.erase(repeated.begin(), repeated.end());
  return backends;
}

}  // namespace

ProxyFeed::ProxyFeed(Watches& watches, Tell tell) : watches_(watches), tell_(std::move(tell)) {
  watches_.services().OnChange(
      [this](const kube::Change<kube::CompactService>& change) { Update(change.Any().meta.Key()); });
  watches_.endpoints().OnChange(
      [this](const kube::Change<ObservedEndpoints>& change) { Update(change.Any().meta.Key()); });
}

void ProxyFeed::Connect(ServiceProxy& proxy) {
  proxy_ = &proxy;
  for (const auto& [key, plan] : plans_) proxy_->Set(key, plan.rules);
}

void ProxyFeed::Update(const kube::ObjectKey& key) {
  const auto service = watches_.services().cache().Get(key);
  if (service == nullptr) {
    if (plans_.erase(key) > 0 && proxy_ != nullptr) proxy_->Set(key, {});
    return;
  }
  ProxyPlan plan = PlanProxy(*service, watches_.endpoints().cache().Get(key).get());
  ProxyPlan& known = plans_[key];
  if (plan.unserved != known.unserved) {
    for (const std::string& port : plan.unserved) {
      tell_({.resource = kube::Resource::Services(),
             .key = key,
             .uid = service->meta.uid,
             .warning = true,
             .reason = "PortNotServed",
             .message = port});
    }
  }
  const bool changed = plan.rules != known.rules;
  known = std::move(plan);
  if (changed && proxy_ != nullptr) proxy_->Set(key, known.rules);
}

ProxyPlan PlanProxy(const kube::CompactService& service, const ObservedEndpoints* endpoints) {
  ProxyPlan plan;
  if (service.type == "ExternalName" || service.cluster_ip.empty() || service.IsHeadless()) return plan;
  // An address of another network would let others in, or is not ours.
  if (!service.cluster_ip.starts_with("127.")) {
    plan.unserved.push_back(
        StrCat("address ", service.cluster_ip, ": only addresses of this machine (127.0.0.0/8) are served"));
    return plan;
  }
  for (const kube::ServicePort& port : service.ports) {
    const bool tcp = port.protocol.empty() || port.protocol == "TCP";
    if (!tcp) {
      plan.unserved.push_back(
          StrCat("port ", port.port, "/", port.protocol.view(), ": only TCP is forwarded"));
      continue;
    }
    ProxyRule rule{.ip = service.cluster_ip, .port = static_cast<std::uint16_t>(port.port)};
    rule.affinity = service.client_affinity;
    if (endpoints != nullptr) rule.backends = BackendsOf(*endpoints, port);
    // Whoever stands behind it is at its address already, as the API server is.
    if (std::ranges::find(rule.backends, Backend{.ip = rule.ip, .port = rule.port}) != rule.backends.end())
      continue;
    plan.rules.push_back(std::move(rule));
  }
  return plan;
}

std::size_t ChooseFor(const std::string& client, const std::vector<Backend>& backends) {
  std::size_t best = 0;
  std::uint32_t highest = 0;
  for (std::size_t i = 0; i < backends.size(); ++i) {
    const std::uint32_t weight = Crc32c(StrCat(client, " ", backends[i].ip, ":", backends[i].port));
    if (i == 0 || weight > highest) {
      best = i;
      highest = weight;
    }
  }
  return best;
}

}  // namespace trainyard::controllers
