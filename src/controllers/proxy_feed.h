// Tells the service proxy of services and their endpoints as they change.
#pragma once

#include <map>
#include <memory>

#include "controllers/actions.h"
#include "controllers/proxy_rules.h"
#include "controllers/service_proxy.h"
#include "controllers/watches.h"

namespace trainyard::controllers {

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
