#include "controllers/endpoints_controller.h"

#include <utility>

namespace trainyard::controllers {
namespace {

// A service of a thousand pods that all start is not written a thousand times.
constexpr absl::Duration kBetweenWrites = absl::Milliseconds(100);

}  // namespace

EndpointsController::EndpointsController(kube::Api& api, Watches& watches, Clock& clock, IdSource random)
    : api_(api),
      watches_(watches),
      clock_(clock),
      loop_("endpoints", clock, std::move(random),
            [this](const std::vector<kube::ObjectKey>& keys) { return Pass(keys); }) {
  watches_.pods().OnChange([this](const kube::Change<ObservedPod>& change) { ObservePod(change); });
  watches_.services().OnChange(
      [this](const kube::Change<kube::CompactService>& change) { ObserveService(change); });
  watches_.endpoints().OnChange(
      [this](const kube::Change<ObservedEndpoints>& change) { ObserveEndpoints(change); });
}

void EndpointsController::ObservePod(const kube::Change<ObservedPod>& change) {
  const kube::ObjectKey key = change.Any().meta.Key();
  if (change.after == nullptr) {
    pods_.Remove(key);
  } else {
    pods_.Set(key, change.after->meta.labels);
  }
  if (!MatterToEndpoints(change.before.get(), change.after.get())) return;
  for (const ObservedPod* pod : {change.before.get(), change.after.get()}) {
    if (pod == nullptr) continue;
    for (const kube::ObjectKey& service : services_.Match(pod->meta.ns, pod->meta.labels)) Add(service);
  }
}

void EndpointsController::ObserveService(const kube::Change<kube::CompactService>& change) {
  const kube::ObjectKey key = change.Any().meta.Key();
  if (change.after == nullptr) {
    services_.Remove(key);
    ended_.insert(key);
  } else {
    services_.Set(key, change.after->selector);
    ended_.erase(key);
  }
  loop_.Add(key);
}

void EndpointsController::ObserveEndpoints(const kube::Change<ObservedEndpoints>& change) {
  loop_.Add(change.Any().meta.Key());
}

void EndpointsController::Add(const kube::ObjectKey& service) {
  const auto written = written_.find(service);
  absl::Duration wait = absl::ZeroDuration();
  if (written != written_.end()) wait = written->second + kBetweenWrites - clock_.Steady();
  loop_.Add(service, std::max(wait, absl::ZeroDuration()));
}

std::vector<PodPtr> EndpointsController::PodsOf(const kube::CompactService& service) const {
  std::vector<PodPtr> pods;
  for (const kube::ObjectKey& key : pods_.Match(service.meta.ns, service.selector)) {
    if (PodPtr pod = watches_.pods().cache().Get(key)) pods.push_back(std::move(pod));
  }
  return pods;
}

// Endpoints without a service are removed if they are ours, or if the service was seen to go. Others a user
// may have made on purpose.
std::optional<Action> EndpointsController::PlanRemoval(const kube::ObjectKey& key,
                                                       const std::optional<Document>& live) const {
  if (!live) return std::nullopt;
  const bool ours = StringAt(*live, {"metadata", "labels", kManagedByLabel}) == kManagedByUs;
  if (!ours && !ended_.contains(key)) return std::nullopt;
  return Delete{.ref = {kube::Resource::Endpoints(), key}, .uid = std::string(UidOf(*live))};
}

std::vector<kube::Outcome> EndpointsController::Pass(const std::vector<kube::ObjectKey>& keys) {
  std::vector<kube::Outcome> outcomes(keys.size(), kube::Done{});
  // A service that has not been listed yet is not gone, and pods that have not been are not missing.
  const bool listed = watches_.pods().HasSynced() && watches_.services().HasSynced();
  if (!listed) return std::vector<kube::Outcome>(keys.size(), kube::Again{kBetweenWrites});
  std::vector<ObjectRef> refs;
  std::vector<std::shared_ptr<const kube::CompactService>> services;
  for (const kube::ObjectKey& key : keys) {
    refs.push_back({kube::Resource::Endpoints(), key});
    services.push_back(watches_.services().cache().Get(key));
  }
  auto found = ReadAll(api_, refs);
  std::vector<Action> actions;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (!found[i].ok()) {
      outcomes[i] = kube::Failed{found[i].status()};
      continue;
    }
    auto action = services[i] == nullptr ? PlanRemoval(keys[i], *found[i])
                                         : PlanEndpoints(*services[i], PodsOf(*services[i]), *found[i]);
    if (!action) continue;
    actions.push_back(*std::move(action));
    places.push_back(i);
  }
  const std::vector<absl::Status> results = Perform(api_, actions);
  for (std::size_t i = 0; i < actions.size(); ++i) {
    if (results[i].ok()) {
      written_[keys[places[i]]] = clock_.Steady();
    } else {
      outcomes[places[i]] = kube::Failed{results[i]};
    }
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (services[i] != nullptr || !std::holds_alternative<kube::Done>(outcomes[i])) continue;
    ended_.erase(keys[i]);
    written_.erase(keys[i]);
  }
  return outcomes;
}

}  // namespace trainyard::controllers
