// What a user wants of a job, whatever its kind. A kind is a translation into this and back (operator/).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "job/job_status.h"
#include "job/restart_rules.h"

namespace trainyard::job {

// Whose end is the end of a group: of the pods of a role, or of the roles of a job.
enum class EndPolicy : std::uint8_t { kAny, kRank0, kAll, kNone };
std::string_view Print(EndPolicy policy);  // "Any", ...

// What becomes of the pods when the job has ended. kRunning: those that have not ended themselves go.
enum class CleanPolicy : std::uint8_t { kAll, kRunning, kNone };

// Who may change how many pods a role has.
enum class SizePolicy : std::uint8_t {
  kPlain,   // the user, to any number
  kManual,  // the user, between the least and the most
  kAuto,    // the autoscaler, between the least and the most
  kFixed,   // nobody
};

// Pods that are made from one template, with indexes from 0.
struct RoleSpec {
  std::string name;  // as the kind spells it: "Worker"
  std::string slug;  // in the names of objects and in messages: "worker"
  int replicas = 1;
  RestartRules restart;
  RestartScope scope = RestartScope::kPod;
  std::optional<std::int64_t> restart_limit;  // of this role alone
  EndPolicy complete = EndPolicy::kNone;      // kNone: the job's success does not depend on it
  EndPolicy fail = EndPolicy::kAny;
  // The end of the container that does the work is the pod's, also where nobody waits for it.
  bool main_alone = false;
  SizePolicy size = SizePolicy::kPlain;
  int least = 0;
  int most = 0;              // least and most: only of a role that is kManual or kAuto
  bool accelerated = false;  // its pods ask for accelerators
  bool gang = false;         // its pods start together with those of all such roles, or not at all
  std::vector<int> ports;    // of its services
  bool operator==(const RoleSpec&) const = default;
};

// How a job is told of.
enum class Telling : std::uint8_t {
  kByState,  // of a TFJob: its end is told first, and what it leaves is cleaned up under it
  kByPhase,  // of an AITrainingJob: it is Terminating until its pods have ended
};

// The user, or something on his behalf, wants the job to end.
struct AskedEnd {
  State state = State::kFailed;
  std::string message;
  bool operator==(const AskedEnd&) const = default;
};

struct JobSpec {
  std::string kind;             // "TFJob"
  std::string version;          // of the kind, whose rules the job follows, where there are several
  std::string reasons;          // that the reasons of conditions begin with; empty: the kind
  std::vector<RoleSpec> roles;  // no two of one name or slug
  Telling telling = Telling::kByState;
  bool names_with_uid = true;  // the names of its objects end with a part of its uid
  bool sized = false;          // how many pods a role has is stored before it is acted on
  EndPolicy complete = EndPolicy::kAll;
  EndPolicy fail = EndPolicy::kAny;
  CleanPolicy clean = CleanPolicy::kRunning;
  std::optional<absl::Duration> ttl;          // after its end the job itself is deleted
  std::optional<absl::Duration> deadline;     // from the start, or from the last time it was resumed
  std::optional<absl::Duration> time_limit;   // from when all its pods ran for the first time
  std::optional<std::int64_t> restart_limit;  // of all pods and containers together
  bool suspend = false;
  bool fault_tolerant = false;  // members may join and leave while the others go on
  // What pods are told of each other does not fit their environment: they mount it as files.
  bool config_in_file = false;
  // All pods of the job are one gang, of which at least so many start together.
  std::optional<int> gang_min_available;
  std::optional<AskedEnd> asked;
  bool operator==(const JobSpec&) const = default;

  int CountPods() const {
    int count = 0;
    for (const RoleSpec& role : roles) count += role.replicas;
    return count;
  }
};

}  // namespace trainyard::job
