// Tells the service proxy of services and their endpoints as they change.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "controllers/actions.h"
#include "controllers/observed.h"
#include "controllers/service_proxy.h"
#include "controllers/watches.h"
#include "kube/service.h"

namespace trainyard::controllers {

// Where connections to services go. Pure.
struct ProxyPlan {
  std::vector<ProxyRule> rules;
  // Ports that cannot be served, in words: "port 53/UDP: only TCP is forwarded".
  std::vector<std::string> unserved;
  bool operator==(const ProxyPlan&) const = default;
};

// Null: there are no endpoints.
ProxyPlan PlanProxy(const kube::CompactService& service, const ObservedEndpoints* endpoints);

// The place of the backend that a client with affinity is led to: the same as long as it is there, whatever
// others come and go. `backends` is not empty.
std::size_t ChooseFor(const std::string& client, const std::vector<Backend>& backends);

// Used by one thread. What it is given must outlive it.
class ProxyFeed {
 public:
  ProxyFeed(Watches& watches, Tell tell);

  // From now on; what is known already is told at once.
  void Connect(ServiceProxy& proxy);

 private:
  void Update(const kube::ObjectKey& key);

  Watches& watches_;
  const Tell tell_;
  ServiceProxy* proxy_ = nullptr;
  std::map<kube::ObjectKey, ProxyPlan> plans_;
};

}  // namespace trainyard::controllers
