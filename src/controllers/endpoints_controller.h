// Writes the Endpoints of every service that selects pods, and removes them with the service.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "controllers/endpoints.h"
#include "controllers/label_index.h"
#include "controllers/loop.h"
#include "controllers/watches.h"
#include "kube/api.h"

namespace trainyard::controllers {

// Used by one thread. What it is given must outlive it.
class EndpointsController {
 public:
  EndpointsController(kube::Api& api, Watches& watches, Clock& clock, IdSource random);

  Loop& loop() { return loop_; }

 private:
  void ObservePod(const kube::Change<ObservedPod>& change);
  void ObserveService(const kube::Change<kube::CompactService>& change);
  void ObserveEndpoints(const kube::Change<ObservedEndpoints>& change);
  void Add(const kube::ObjectKey& service);

  std::vector<kube::Outcome> Pass(const std::vector<kube::ObjectKey>& keys);
  std::vector<PodPtr> PodsOf(const kube::CompactService& service) const;
  std::optional<Action> PlanRemoval(const kube::ObjectKey& key, const std::optional<Document>& live) const;

  kube::Api& api_;
  Watches& watches_;
  Clock& clock_;
  SelectorIndex services_;
  LabelIndex pods_;
  std::set<kube::ObjectKey> ended_;                // services that were seen to go
  std::map<kube::ObjectKey, SteadyTime> written_;  // when, last
  Loop loop_;
};

}  // namespace trainyard::controllers
