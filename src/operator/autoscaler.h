// Decides again and again how many pods the elastic roles of all jobs are to have. What it decides is carried
// out by the controller of the jobs, which stores it first.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "job/job_view.h"
#include "job/scale/autoscale.h"
#include "kube/node.h"
#include "kube/work_queue.h"
#include "reconcile/controller.h"
#include "reconcile/kind.h"
#include "reconcile/surroundings.h"

namespace trainyard::ops {

// What the autoscaler's rule is about, gathered from jobs, pods and nodes as they are seen.

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

struct AutoscalerOptions {
  job::scale::Limits limits;
  absl::Duration period = absl::Seconds(1);
};

// What is given must outlive it.
class Autoscaler {
 public:
  Autoscaler(Clock& clock, reconcile::Surroundings& surroundings, AutoscalerOptions options);
  ~Autoscaler() { Stop(); }
  Autoscaler(const Autoscaler&) = delete;
  Autoscaler& operator=(const Autoscaler&) = delete;

  // Whose jobs it is about, besides those that it has; before Start(), which must come before the
  // controller's end.
  void Watch(const reconcile::Kind& kind, reconcile::Controller& controller) {
    watched_.push_back({&kind, &controller});
  }
  // Of the job with this uid, by the names of roles; from any thread.
  std::map<std::string, int> FindTargets(const std::string& uid) const;

  // In a thread of its own.
  void Start();
  void Stop();

  // Once, in the caller's.
  void Pass();

 private:
  void Run();
  // What was decided for the job, may still be, and is not stored yet.
  std::map<std::string, int> PendingTargets(const job::JobView& view) const;
  const PodRequests& RequestsOf(const reconcile::Kind& kind, const reconcile::CompactJob& job);

  struct Watched {
    const reconcile::Kind* kind;
    reconcile::Controller* controller;
  };

  Clock& clock_;
  reconcile::Surroundings& surroundings_;
  const AutoscalerOptions options_;
  std::vector<Watched> watched_;
  std::map<std::string, std::pair<std::int64_t, PodRequests>> requests_;  // by uid, of a generation
  std::unique_ptr<Alarm> alarm_;
  std::thread thread_;
  mutable Mutex mu_;
  bool stopping_ TY_GUARDED_BY(mu_) = false;
  std::map<std::string, std::map<std::string, int>> targets_ TY_GUARDED_BY(mu_);  // by uid
};

}  // namespace trainyard::ops
