// What the controllers keep in memory of the objects that they watch: no more than deciding needs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kube/node.h"
#include "kube/object_meta.h"
#include "kube/pod.h"
#include "kube/service.h"
#include "kube/shared_text.h"

namespace trainyard::controllers {

// An object of any kind. All owners are kept, as of every type below.
struct ObservedObject {
  kube::ObjectMeta meta;
};

struct ContainerPort {
  kube::SharedText name;
  kube::SharedText protocol;  // "TCP", ...
  std::int32_t port = 0;
  bool operator==(const ContainerPort&) const = default;
};

struct Toleration {
  kube::SharedText key;  // empty: every key
  bool exists = false;   // whatever the value is
  kube::SharedText value;
  kube::SharedText effect;              // empty: every effect
  std::optional<std::int64_t> seconds;  // unset: for ever
  bool operator==(const Toleration&) const = default;
};

struct ObservedPod {
  kube::ObjectMeta meta;
  kube::SharedText node;  // empty: not scheduled yet
  kube::PodPhase phase = kube::PodPhase::kPending;
  bool ready = false;
  std::string ip;
  kube::SharedText hostname;
  kube::SharedText subdomain;
  std::vector<ContainerPort> ports;  // of all containers
  std::vector<Toleration> tolerations;

  bool IsFinished() const { return phase == kube::PodPhase::kSucceeded || phase == kube::PodPhase::kFailed; }
};

struct EndpointPort {
  std::string name;
  std::string protocol;
  std::int32_t port = 0;
  bool operator==(const EndpointPort&) const = default;
};

struct ObservedEndpoints {
  struct Subset {
    std::vector<std::string> ready;  // addresses
    std::vector<EndpointPort> ports;
    bool operator==(const Subset&) const = default;
  };
  kube::ObjectMeta meta;
  std::vector<Subset> subsets;
};

struct ObservedNode {
  kube::ObjectMeta meta;
  kube::ConditionStatus ready = kube::ConditionStatus::kUnknown;
  bool has_ready = false;             // the node has said how it is at least once
  std::string heartbeat;              // when it last did, by its own clock: compared, never counted with
  std::vector<std::string> troubles;  // other conditions that are true: "MemoryPressure", ...
  bool unschedulable = false;
  std::vector<kube::Taint> taints;
};

struct ObservedLease {
  kube::ObjectMeta meta;
  std::string renewed;  // by the holder's clock, as above
};

// InvalidArgument: the text is no such object; it names the field.
absl::StatusOr<ObservedObject> ObserveObject(std::string json);
absl::StatusOr<ObservedPod> ObservePod(std::string json);
absl::StatusOr<kube::CompactService> ObserveService(std::string json);
absl::StatusOr<ObservedEndpoints> ObserveEndpoints(std::string json);
absl::StatusOr<ObservedNode> ObserveNode(std::string json);
absl::StatusOr<ObservedLease> ObserveLease(std::string json);

// Being deleted, with its end put off by that finalizer.
bool IsHeldBy(const kube::ObjectMeta& meta, std::string_view finalizer);

}  // namespace trainyard::controllers
