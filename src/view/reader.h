// Reads jobs, and all that is known of one, from an API server.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kube/api.h"
#include "view/job.h"

namespace trainyard::view {

struct JobFilter {
  std::string ns;           // "": all
  std::vector<Kind> kinds;  // none: all
  std::string selector;     // labels of the jobs
};
// By namespace, kind and name. A kind that the cluster does not know has none.
absl::StatusOr<std::vector<Job>> ListJobs(kube::Api& api, const JobFilter& filter);

// What a user calls a job: "mnist" or "tfjob/mnist".
struct JobName {
  std::optional<Kind> kind;
  std::string name;
};
// InvalidArgument: there is no such kind.
absl::StatusOr<JobName> ParseJobName(std::string_view text);

// NotFound: none of that name; InvalidArgument: there are several, of different kinds.
absl::StatusOr<Job> FindJob(kube::Api& api, const std::string& ns, const JobName& name);

// Its pods, in no order.
absl::StatusOr<std::vector<kube::CompactPod>> ListPods(kube::Api& api, const Job& job);
// Its members and its history, without events and nodes: cheap enough to be asked for again and again.
absl::StatusOr<JobPage> ReadMembers(kube::Api& api, Job job);
// All of it.
absl::StatusOr<JobPage> ReadPage(kube::Api& api, Job job);
// Events of a namespace, the oldest first; "": of all.
absl::StatusOr<std::vector<Event>> ListEvents(kube::Api& api, const std::string& ns);
// Whether a pod is the job's.
bool IsOf(const kube::CompactPod& pod, const Job& job);
// Whether the event is about the job itself or about one of its pods that are there or in its history.
bool IsOf(const Event& event, const JobPage& page);

// ---- What pods use, as the cluster's metrics (metrics.k8s.io) say.

struct Usage {
  double processors = 0;
  double memory_bytes = 0;
};
// By the pods' names. NotFound, as kube::IsNotFound() sees it: the cluster has no metrics.
absl::StatusOr<std::map<std::string, Usage>> ReadUsage(kube::Api& api, const std::string& ns);

// "12Mi", "1.5Gi".
std::string PrintBytes(double bytes);

}  // namespace trainyard::view
