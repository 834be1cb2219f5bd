// What the dashboard's page is told, as JSON. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/document.h"
#include "dashboard/log_plots.h"
#include "dashboard/observer.h"
#include "kube/node.h"
#include "kube/pod.h"
#include "view/job.h"
#include "view/reader.h"

namespace trainyard::dashboard {

Document JobsPage(const Snapshot& snapshot, const std::string& cluster, absl::Time now);
// What is known of a job beside its page.
struct JobExtras {
  const SeenJob* seen = nullptr;             // null: the job is new
  std::map<std::string, view::Usage> usage;  // by pod
  Plots plots;
};
// What an elastic job tells of itself at the moment is the last point of its plots.
Document JobPage(const view::JobPage& page, JobExtras extras, absl::Time now);
Document NodesPage(const std::vector<kube::CompactNode>& nodes, const std::vector<kube::CompactPod>& pods,
                   absl::Time now);
Document EventsPage(const std::vector<ClusterEvent>& events, absl::Time now);
Document PrintEvent(const view::Event& event, const std::string& ns);

}  // namespace trainyard::dashboard
