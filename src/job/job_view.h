// A job and its pods, services and nodes as they are observed at one moment: all that a plan is made from.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "job/job_spec.h"
#include "job/job_status.h"
#include "job/names.h"

namespace trainyard::job {

enum class Phase : std::uint8_t { kPending, kRunning, kSucceeded, kFailed, kUnknown };

// kUnknown: the nodes cannot be seen. That is not the same as gone.
enum class NodeHealth : std::uint8_t { kUnknown, kReady, kNotReady, kGone };

// How a container ended.
struct ContainerEnd {
  std::string container;  // empty: the one that does the work
  int exit_code = 0;
  std::string reason;   // "OOMKilled", "Error"
  std::string message;  // what it had to say of it, in one line
  absl::Time at = absl::InfinitePast();
  absl::Duration ran;  // zero if it is not known
  bool operator==(const ContainerEnd&) const = default;
};

struct Deletion {
  absl::Time asked;  // from then on its end is nobody's fault
  absl::Time due;    // by then it should be gone
  bool operator==(const Deletion&) const = default;
};

struct PodView {
  std::string name;
  std::string uid;
  std::string role;  // its slug; one that the spec does not have: it is of the past
  int index = 0;
  int attempt = 0;    // that it was made under
  bool owned = true;  // false: nobody's, and ours to adopt
  Phase phase = Phase::kPending;
  bool main_runs = false;  // the container that does the work runs
  // It has ended with 0, and not because it was told to go; it may have been started again since.
  bool main_succeeded = false;
  // It has ended otherwise and is not started again, though other containers of the pod may still run.
  bool main_failed = false;
  std::optional<ContainerEnd> end;  // the last end of a container, other than with 0; the main one's first
  std::int64_t restarts = 0;        // of its containers, by the kubelet
  bool restarted_after_success = false;  // the last of those followed an end with 0
  std::optional<absl::Time> resumes;     // when the kubelet starts a container again that it holds back
  std::string reason;                    // of the pod: "Evicted"
  std::string waits;                     // why it does not run yet: "ImagePullBackOff"
  std::string creation_error;            // why its containers cannot be made: "ErrImagePull: no such image"
  std::string accelerator_trouble;       // what has happened to its node's accelerators; empty: nothing
  std::optional<absl::Time> accelerator_since;  // since when it seems so; nothing: it is certain
  std::vector<std::string> avoids;              // nodes that it was kept off when it was made
  bool disrupted = false;                       // something other than itself ended it, or is about to
  absl::Time since = absl::InfinitePast();      // when it last changed its phase, as far as is known
  std::optional<Deletion> deletion;
  bool stopped = false;      // it was told to end, and its object to stay
  bool fenced = false;       // a second instance of it does no harm
  bool mislabelled = false;  // its labels do not say which pod of the job it is
  std::string node;
  NodeHealth node_health = NodeHealth::kUnknown;
  std::optional<absl::Time> node_since;  // since when the node is as it is
  bool operator==(const PodView&) const = default;

  bool IsFinished() const { return phase == Phase::kSucceeded || phase == Phase::kFailed; }
  bool IsActive() const { return phase == Phase::kRunning && !main_failed; }
  bool HasFailed() const { return phase == Phase::kFailed || main_failed; }
};

struct ServiceView {
  std::string name;
  std::string uid;
  std::string role;
  int index = 0;
  bool owned = true;
  bool leaving = false;
  bool altered = false;  // its labels, selector or ports are not those that it was made with
  bool operator==(const ServiceView&) const = default;
};

// A ConfigMap of the job: who its members are, or the configuration that its pods mount.
struct ConfigMapView {
  std::string name;
  std::string uid;
  std::string version;
  std::string text;  // of members: as it is; of the configuration: its fingerprint
  bool owned = true;
  bool leaving = false;
  bool operator==(const ConfigMapView&) const = default;
};

// What is known of nodes and what is known of pods may be behind each other for so long.
inline constexpr absl::Duration kLackGrace = absl::Seconds(1);

// What the operator was told, for all jobs.
struct Policies {
  absl::Duration node_grace = absl::Seconds(30);         // a node that is not ready for so long is lost
  absl::Duration creation_patience = absl::Minutes(15);  // with containers that cannot be made
  bool creation_fails = false;  // such a job fails when no restart is left, where it would wait otherwise
  bool operator==(const Policies&) const = default;
};

struct JobView {
  std::string name;
  std::string ns;
  std::string uid;
  std::int64_t generation = 0;
  bool leaving = false;  // it is being deleted
  JobSpec spec;
  std::string invalid;  // what is wrong with the spec, with the field's path; empty: nothing
  // What is wrong with an edit. `spec` is then the one that was valid before, and `last_valid` is its text.
  std::string edit_problem;
  std::string last_valid;
  JobStatus status;
  std::vector<PodView> pods;
  std::vector<ServiceView> services;
  std::optional<ConfigMapView> members;
  std::optional<ConfigMapView> config;
  std::string wanted_config;             // the fingerprint that `config` is to have; empty: pods mount none
  std::string trouble;                   // why something could not be made just now
  std::vector<std::string> avoid_nodes;  // whose accelerators have failed
  std::map<std::string, int> targets;    // how many pods the autoscaler wants roles to have, by name
  Policies policies;

  NameRule Naming() const { return {.job = name, .uid = spec.names_with_uid ? uid : std::string_view()}; }
};

}  // namespace trainyard::job
