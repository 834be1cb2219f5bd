// The objects in the cluster that a graph job is made of. Pure: names and numbers in, documents out.
//
// A graph job is one AITrainingJob with a group `pserver` and a group `trainer`, whose pods run `trainyard
// graph-worker`, and a Secret with the job's token. The store that its graphs find each other through is an
// AITrainingJob of its own, `trainyard-store`, one for each namespace, with a Service and a Secret of that
// name.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "base/document.h"
#include "client/pod_parts.h"
#include "client/storage.h"
#include "graph/pass/transpile.h"
#include "kube/resource.h"

namespace trainyard::client {

inline constexpr std::string_view kStoreName = "trainyard-store";
inline constexpr int kStorePort = 2379;
inline constexpr int kGatewayPort = 2380;
inline constexpr std::string_view kJobLabel =
    "trainyard.dev/graph-job";  // of the AITrainingJob: the job's name
// The exit code of a graph that no restart would mend.
inline constexpr int kFinalExitCode = 3;

const kube::Resource& AITrainingJobs();

// What pods of all kinds have in common.
struct PodSettings {
  std::string ns = "default";
  std::string image;
  std::string program = "trainyard";  // how the image calls it
  Storage storage;
  bool sees_client = false;  // pods are processes of this machine: they find its files by their own paths
};

// Checked and brought into the form that Kubernetes writes: "1", "0.5" or "500m", "512Mi". Empty: nothing is
// asked for. InvalidArgument: which one is wrong, and why.
absl::StatusOr<graph::Resource> CheckResource(const graph::Resource& resource);

struct GroupSettings {
  graph::GraphRole role = graph::GraphRole::kTrainer;
  int replicas = 1;
  graph::Resource resource;
  // Set: the autoscaler may change how many there are, between these (edlPolicy Auto).
  struct Bounds {
    int least = 1;
    int most = 1;
  };
  std::optional<Bounds> elastic;
  std::optional<int> restart_limit;
  int threads = 1;  // inside one operator
};

struct JobSettings {
  std::string name;  // the job's own
  std::string store_url;
  bool store_has_token = false;  // in the Secret `trainyard-store`
  std::string checkpoints;       // the folder of this very job, where containers see it
  PodSettings pods;
};

// One group, as it stands in spec.replicaSpecs under GroupName().
std::string_view GroupName(graph::GraphRole role);
Document GroupObject(const JobSettings& job, const GroupSettings& group);
// The AITrainingJob without groups.
Document GraphJobObject(const JobSettings& job);
// An AITrainingJob of ours whose pods stay with their logs and which restarts whatever is worth another try:
// everything but kFinalExitCode. The label says what kind of job of ours it is.
Document JobObject(std::string_view ns, std::string_view name,
                   std::pair<std::string_view, std::string_view> label, std::string_view framework,
                   Object groups);
// Of a job and of a store.
Document TokenSecret(std::string_view ns, std::string_view name, std::string_view token);
// A merge patch with which an object goes when its owner, an AITrainingJob, does.
Document OwnerPatch(const Document& owner);

// Marks an AITrainingJob that is a service of Trainyard's own and no job of a user; its value is the job's
// name.
inline constexpr std::string_view kServiceLabel = "trainyard.dev/service";
// One pod with this spec, which the operator keeps for ever, on another node if need be. With annotations of
// the pod.
Document ServiceJob(std::string_view ns, std::string_view name, std::string_view group, Object pod,
                    Object annotations = {});

Document StoreJob(const PodSettings& pods);
Document StoreService(std::string_view ns);
// What pods call it by.
std::string StoreUrl(std::string_view ns);

}  // namespace trainyard::client
