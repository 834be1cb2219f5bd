// A pod in a compact form: what deciding about it needs, and no more. A typical one takes about a kilobyte,
// where its JSON text has four to ten.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/boxed.h"
#include "kube/object_meta.h"
#include "kube/shared_text.h"

namespace trainyard::kube {

enum class PodPhase : std::uint8_t { kPending, kRunning, kSucceeded, kFailed, kUnknown };
std::string_view PrintPhase(PodPhase phase);  // "Pending", ...

enum class PodRestartPolicy : std::uint8_t { kAlways, kOnFailure, kNever };

// A condition that is not there is kUnknown, without a time.
enum class ConditionStatus : std::uint8_t { kUnknown, kTrue, kFalse };

struct Condition {
  ConditionStatus status = ConditionStatus::kUnknown;
  SharedText reason;
  std::optional<absl::Time> since;
  bool operator==(const Condition&) const = default;
};

// Where a container stands.
struct ContainerState {
  enum class Kind : std::uint8_t { kWaiting, kRunning, kTerminated };
  Kind kind = Kind::kWaiting;
  SharedText reason;  // "CrashLoopBackOff", "OOMKilled", ...
  std::int32_t exit_code = 0;
  std::int32_t signal = 0;
  std::optional<absl::Time> started;
  std::optional<absl::Time> finished;
  std::string message;  // its first bytes
  bool operator==(const ContainerState&) const = default;
};

struct ContainerStatus {
  SharedText name;
  bool ready = false;
  std::int32_t restart_count = 0;
  ContainerState state;
  Boxed<ContainerState> last_termination;  // how it ended before it was restarted
  bool operator==(const ContainerStatus&) const = default;
};

// So much of "cpu", "memory", "nvidia.com/gpu", in thousandths; more than fits is the most that does.
struct ResourceAmount {
  SharedText name;
  std::int64_t milli = 0;
  bool operator==(const ResourceAmount&) const = default;
};

// "nvidia.com/gpu" and the like: what a vendor's plugin gives out, and no fraction of.
bool IsAccelerator(std::string_view resource);
// The amount of that name, in thousandths; 0 if there is none.
std::int64_t FindAmount(const std::vector<ResourceAmount>& amounts, std::string_view name);

struct CompactPod {
  ObjectMeta meta;
  SharedText node;  // empty: not scheduled yet
  PodPhase phase = PodPhase::kPending;
  PodRestartPolicy restart_policy = PodRestartPolicy::kAlways;
  SharedText reason;    // "Evicted", "NodeLost", ...
  std::string message;  // its first bytes
  std::string pod_ip;
  SharedText host_ip;
  std::optional<absl::Time> start_time;
  Condition ready;
  Condition scheduled;
  SharedText unscheduled;  // why it could not be scheduled so far: "0/3 nodes are available: ..."
  Condition disruption;  // true: something other than the pod itself is about to end it; the reason says what
  std::vector<ContainerStatus> init_containers;
  std::vector<ContainerStatus> containers;
  // What a node must have free for it: the sum of its containers, or what one of the init containers needs
  // alone, if that is more. By name.
  std::vector<ResourceAmount> requests;
  TextMap node_selector;                     // labels that its node must have
  std::vector<SharedText> scheduling_gates;  // that keep it from getting a node

  bool IsBeingDeleted() const { return meta.deletion_time.has_value(); }
  bool IsFinished() const { return phase == PodPhase::kSucceeded || phase == PodPhase::kFailed; }
  const ContainerStatus* FindContainer(std::string_view name) const;
  bool operator==(const CompactPod&) const = default;
};

// InvalidArgument: the text is no pod; it names the field.
absl::StatusOr<CompactPod> ParsePod(std::string json, const MetaOptions& options = {});

}  // namespace trainyard::kube
