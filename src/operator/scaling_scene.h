// What the autoscaler's rule is about, gathered from jobs, pods and nodes as they are seen.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "job/job_view.h"
#include "job/scale/autoscale.h"
#include "kube/node.h"
#include "reconcile/kind.h"
#include "reconcile/surroundings.h"

namespace trainyard::ops {

// What labels of nodes are called among the resources.
inline constexpr std::string_view kNodeLabel = "node label ";

struct ScalingScene {
  job::scale::Cluster cluster;
  std::vector<job::scale::ElasticRole> roles;
  std::vector<job::scale::WaitingPods> waiting;
};

// Whether the autoscaler has a say in one of its roles: it lives, and has such a role.
bool IsElastic(const reconcile::CompactJob& job);

// What a job is called in decisions: "team/mnist", and with its kind where that is not an AITrainingJob.
std::string TitleOf(const job::JobView& job);

// What one pod of each role takes, by the role's name.
using PodRequests = std::map<std::string, job::scale::Resources>;
PodRequests FindRequests(const reconcile::Kind& kind, const reconcile::CompactJob& job);

// `requests` are those of the jobs, by uid. The view's targets are what was decided and is not stored yet.
ScalingScene ObserveScaling(const std::vector<job::JobView>& jobs,
                            const std::map<std::string, PodRequests>& requests,
                            const std::vector<std::shared_ptr<const reconcile::LoadPod>>& load,
                            const std::vector<std::shared_ptr<const kube::CompactNode>>& nodes);

}  // namespace trainyard::ops
