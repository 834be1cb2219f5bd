// Reads jobs, and all that is known of one, from an API server.
#pragma once

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
// Whether an event is of the job: of its own object, or, by the name, of one of its pods.
bool IsOf(const Event& event, const Job& job);

}  // namespace trainyard::view
