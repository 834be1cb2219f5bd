// Tells the service proxy of services and their endpoints as they change.
#pragma once

#include <map>
#include <memory>

#include "local/control/actions.h"
#include "local/control/proxy_rules.h"
#include "local/control/service_proxy.h"
#include "local/control/watches.h"

namespace trainyard::local::control {

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

}  // namespace trainyard::local::control
