// What the dashboard's page is told, as JSON. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/document.h"
#include "dashboard/observer.h"
#include "kube/node.h"
#include "kube/pod.h"
#include "view/job.h"
#include "view/usage.h"

namespace trainyard::dashboard {

Document JobsPage(const Snapshot& snapshot, const std::string& cluster, absl::Time now);
// `seen` may be null: the job is new.
Document JobPage(const view::JobPage& page, const SeenJob* seen,
                 const std::map<std::string, view::Usage>& usage, absl::Time now);
Document NodesPage(const std::vector<kube::CompactNode>& nodes, const std::vector<kube::CompactPod>& pods,
                   absl::Time now);
Document EventsPage(const std::vector<ClusterEvent>& events, absl::Time now);
Document PrintEvent(const view::Event& event, const std::string& ns);

}  // namespace trainyard::dashboard
