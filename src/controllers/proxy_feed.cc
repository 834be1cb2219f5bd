#include "controllers/proxy_feed.h"

#include <utility>

#include "base/text.h"

namespace trainyard::controllers {

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

}  // namespace trainyard::controllers
