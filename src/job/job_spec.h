// What a user wants of a job, whatever its kind. A kind is a translation into this and back (operator/).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace trainyard::job {

// When a pod is to go on after its end.
enum class RestartPolicy : std::uint8_t {
  kAlways,     // by the kubelet, after any end; by us, if the pod itself has failed
  kOnFailure,  // the same, but not after success
  kNever,
  kExitCode,  // by us: 128-255 is worth another try, 1-127 is not
};

// Whose success is the success of a role.
enum class EndPolicy : std::uint8_t { kAny, kRank0, kAll, kNone };

// What becomes of the pods when the job has ended. kRunning: those that have not ended themselves go.
enum class CleanPolicy : std::uint8_t { kAll, kRunning, kNone };

// Pods that are made from one template, with indexes from 0.
struct RoleSpec {
  std::string name;  // as the kind spells it: "Worker"
  std::string slug;  // in the names of objects and in messages: "worker"
  int replicas = 1;
  RestartPolicy restart = RestartPolicy::kAlways;
  EndPolicy complete = EndPolicy::kNone;  // kNone: the job's success does not depend on it
  bool operator==(const RoleSpec&) const = default;
};

struct JobSpec {
  std::string kind;             // "TFJob": begins the reasons of conditions
  std::vector<RoleSpec> roles;  // no two of one name or slug
  CleanPolicy clean = CleanPolicy::kRunning;
  std::optional<absl::Duration> ttl;          // after its end the job itself is deleted
  std::optional<absl::Duration> deadline;     // from the start, or from the last time it was resumed
  std::optional<std::int64_t> restart_limit;  // of all pods and containers together
  bool suspend = false;
  bool operator==(const JobSpec&) const = default;

  int CountPods() const {
    int count = 0;
    for (const RoleSpec& role : roles) count += role.replicas;
    return count;
  }
};

}  // namespace trainyard::job
