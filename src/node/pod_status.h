// The status of a pod, as the node decides it and the API server keeps it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "base/document.h"

namespace trainyard::node {

struct Waiting {
  std::string reason;
  std::string message;
  bool operator==(const Waiting&) const = default;
};
struct Running {
  absl::Time started_at;
  bool operator==(const Running&) const = default;
};
struct Terminated {
  int exit_code = 0;
  int signal = 0;
  std::string reason;
  std::string message;
  absl::Time started_at;
  absl::Time finished_at;
  std::string container_id;
  bool operator==(const Terminated&) const = default;
};
using ContainerState = std::variant<Waiting, Running, Terminated>;

struct ContainerStatus {
  std::string name;
  std::string image;
  std::string container_id;
  ContainerState state;
  std::optional<Terminated> last;
  bool ready = false;
  bool started = false;
  int restarts = 0;
  bool operator==(const ContainerStatus&) const = default;
};

struct Condition {
  std::string type;
  bool status = false;
  std::string reason;
  std::string message;
  absl::Time since;
  bool operator==(const Condition&) const = default;
};

enum class Phase : std::uint8_t { kPending, kRunning, kSucceeded, kFailed };
std::string_view PrintPhase(Phase phase);

// All times are whole seconds, as the API server keeps them.
struct PodStatus {
  Phase phase = Phase::kPending;
  std::string reason;
  std::string message;
  std::string host_ip;
  std::string pod_ip;
  std::string qos;
  std::optional<absl::Time> start_time;
  std::vector<ContainerStatus> init_containers;
  std::vector<ContainerStatus> containers;
  std::vector<Condition> conditions;  // those that are the node's
  bool operator==(const PodStatus&) const = default;

  bool terminal() const { return phase == Phase::kSucceeded || phase == Phase::kFailed; }
  const ContainerStatus* FindContainer(std::string_view name) const;
  const Condition* FindCondition(std::string_view type) const;
};

// The `status` of a pod object; what is missing is as in a new pod. Conditions of others are read too.
PodStatus ParsePodStatus(const Document& pod);
// What a strategic merge patch of the status subresource has under `status`. A field that became empty is
// null, so that it goes.
Document ToDocument(const PodStatus& status);

inline absl::Time WholeSeconds(absl::Time time) { return absl::FromUnixSeconds(absl::ToUnixSeconds(time)); }

}  // namespace trainyard::node
