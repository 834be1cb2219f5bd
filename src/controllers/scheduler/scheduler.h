// Gives every pod a node, as soon as there is one for it, and the pods of a PodGroup when there is one for at
// least as many as it says. Those of higher priority come first, then those that have waited longest.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/mutex.h"
#include "kube/api.h"
#include "kube/event_recorder.h"
#include "kube/informer.h"
#include "placement/demand.h"
#include "placement/gang.h"
#include "placement/placement.h"

namespace trainyard::scheduler {

using placement::Binding;
using placement::ClusterRoom;
using placement::PodDemand;
using placement::PodPtr;
using placement::Preemption;

struct SchedulerOptions {
  std::string name = "default-scheduler";  // pods that name another one are left alone
};

class Scheduler {
 public:
  // The API, the clock and the recorder must outlive it.
  Scheduler(kube::Api& api, Clock& clock, IdSource ids, kube::EventRecorder& events,
            SchedulerOptions options = {});
  ~Scheduler();

  // Runs in threads of its own from now on.
  void Start();
  void Stop();

  // One turn in this thread instead: what can be placed is placed. Returns how many were.
  int Step();

 private:
  void Run();
  ClusterRoom Observe() TY_EXCLUDES(mu_);
  std::vector<PodPtr> Waiting();
  // False: it did not come through, and is to be tried again.
  bool Bind(const std::vector<Binding>& bindings);
  void Tell(const std::vector<placement::Unplaced>& unplaced);
  void Preempt(const PodDemand& pod, const Preemption& preemption);
  kube::ObjectReference Reference(const PodDemand& pod) const;

  kube::Api& api_;
  Clock& clock_;
  kube::EventRecorder& events_;
  const SchedulerOptions options_;
  kube::Informer<PodDemand> pods_;
  kube::Informer<kube::CompactNode> nodes_;
  kube::Informer<placement::PodGroup> groups_;
  std::unique_ptr<Alarm> alarm_;

  Mutex mu_;
  bool stopping_ TY_GUARDED_BY(mu_) = false;
  SteadyTime again_ = SteadyTime::Never();  // of the scheduler's thread
  // Bound by us, but not seen so yet: uid to node. What has been bound must not be placed again.
  std::map<std::string, std::string> assumed_ TY_GUARDED_BY(mu_);
  std::thread thread_;
};

}  // namespace trainyard::scheduler
