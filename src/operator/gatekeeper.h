// Starts gangs by scheduling gates, on clusters whose scheduler does not know gangs: counts again and again
// which gangs that wait have room for all of their pods. The controllers of the jobs lift the gates.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/mutex.h"
#include "job/job_view.h"
#include "kube/api.h"
#include "kube/informer.h"
#include "placement/gang.h"
#include "reconcile/controller.h"
#include "reconcile/surroundings.h"

namespace trainyard::ops {

// A gang of which pods wait behind gates.
struct WaitingGang {
  std::string job;     // its uid
  absl::Time created;  // when the job was
  int minimum = 1;
  bool admitted = false;             // its gates are being lifted
  std::vector<std::string> members;  // uids of its pods
};

// What holds for each gang, by the job's uid: the oldest that fits is admitted first. Room is kept for gangs
// that were admitted and for pods without a node that any scheduler may place now. Pure.
std::map<std::string, job::GangView> DecideGates(
    std::vector<WaitingGang> gangs, const std::vector<placement::PodPtr>& pods,
    const std::vector<std::shared_ptr<const kube::CompactNode>>& nodes);

// Who starts gangs at the server that says this of its version, as JSON: the scheduler of the embedded
// cluster does it by PodGroups. One that does not answer is taken for a cluster that has gates, which does no
// harm if it has none.
job::GangScheduler DefaultGangScheduler(std::string_view version);
job::GangScheduler FindGangScheduler(kube::Transport& transport, Clock& clock);

// What is given must outlive it.
class Gatekeeper {
 public:
  Gatekeeper(kube::Api& api, Clock& clock, IdSource ids, reconcile::Surroundings& surroundings);
  ~Gatekeeper() { Stop(); }
  Gatekeeper(const Gatekeeper&) = delete;
  Gatekeeper& operator=(const Gatekeeper&) = delete;

  // Whose jobs it is about; before Start().
  void Watch(reconcile::Controller& controller) { controllers_.push_back(&controller); }
  // Of the job with this uid; from any thread.
  job::GangView FindGang(const std::string& uid) const;

  // In a thread of its own.
  void Start();
  void Stop();

  // Once, in the caller's.
  void Pass();

 private:
  void Run();
  // Null: they are not all seen yet. From the first call on they are watched.
  std::unique_ptr<std::vector<placement::PodPtr>> ListPods();

  kube::Api& api_;
  Clock& clock_;
  IdSource ids_;
  reconcile::Surroundings& surroundings_;
  std::vector<reconcile::Controller*> controllers_;
  std::unique_ptr<kube::Informer<placement::PodDemand>> pods_;  // all of the cluster; null: nobody waits yet
  std::unique_ptr<Alarm> alarm_;
  bool threaded_ = false;
  std::thread thread_;
  mutable Mutex mu_;
  bool stopping_ TY_GUARDED_BY(mu_) = false;
  std::map<std::string, job::GangView> gangs_ TY_GUARDED_BY(mu_);  // by uid
  std::map<std::string, std::vector<std::string>> admitted_;       // the uids of their pods, by the job's
};

}  // namespace trainyard::ops
