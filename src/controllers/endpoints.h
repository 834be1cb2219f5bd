// The endpoints of services: which addresses are behind each. Pure.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/document.h"
#include "controllers/actions.h"
#include "controllers/observed.h"
#include "kube/service.h"

namespace trainyard::controllers {

// On what we wrote, so that it can be told from what a user wrote.
inline constexpr std::string_view kManagedByLabel = "endpoints.kubernetes.io/managed-by";
inline constexpr std::string_view kManagedByUs = "endpoint-controller";

using PodPtr = std::shared_ptr<const ObservedPod>;

// The pod's port that the service's port leads to; nothing if it has none of that name.
std::optional<std::int32_t> FindTargetPort(const kube::ServicePort& port, const ObservedPod& pod);

// `subsets` of the Endpoints: addresses with the same ports together, in a fixed order. `pods` are those that
// the service selects.
Array PlanSubsets(const kube::CompactService& service, const std::vector<PodPtr>& pods);

// What makes the live Endpoints those of the service; nothing if they are so already.
std::optional<Action> PlanEndpoints(const kube::CompactService& service, const std::vector<PodPtr>& pods,
                                    const std::optional<Document>& live);

// A change of the pod between the two can change endpoints. Null: it is not there.
bool MatterToEndpoints(const ObservedPod* before, const ObservedPod* after);

}  // namespace trainyard::controllers
