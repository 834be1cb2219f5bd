// Keeps a job's pods of one role as they should be: watches them, decides (pods/plan.h), launches and
// deletes; tells the master of those that are gone, and people of why.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/document.h"
#include "base/mutex.h"
#include "kube/api.h"
#include "kube/event_recorder.h"
#include "kube/informer.h"
#include "kube/pod.h"
#include "kube/pod_history.h"
#include "master/master.h"
#include "master/pods/plan.h"

namespace trainyard::master {

inline constexpr std::string_view kElasticJobLabel = "trainyard.dev/elastic-job";
inline constexpr std::string_view kElasticRoleLabel = "trainyard.dev/elastic-role";
inline constexpr std::string_view kElasticIndexLabel = "trainyard.dev/elastic-index";
inline constexpr std::string_view kElasticLaunchLabel = "trainyard.dev/elastic-launch";
inline constexpr std::string_view kElasticRestartsLabel = "trainyard.dev/elastic-restarts";

enum class PodRole : std::uint8_t { kWorker, kPserver };
std::string_view Name(PodRole role);  // "worker", "pserver"

struct KeeperOptions {
  PodRole role = PodRole::kWorker;
  std::string ns;
  std::string job;
  std::string pod;  // the master's own, which owns the others
  std::string pod_uid;
  std::string address;    // where they find the master: HOST:PORT
  Document pod_template;  // a pod, without name, index and owner
  PodLimits limits;
  int target = 1;
};

// Why a pod was launched again.
struct Restart {
  absl::Time time;
  PodRole role = PodRole::kWorker;
  int index = 0;
  std::string pod;
  std::string cause;
};

struct PodsReport {
  int target = 0;  // workers
  int running = 0;
  int restarts = 0;
  std::vector<Restart> last;  // the newest ones
  std::string waiting;
};

class PodKeeper {
 public:
  // The API and the master outlive it.
  PodKeeper(kube::Api& api, Master& master, KeeperOptions options);
  ~PodKeeper();

  void Start();
  // Nothing is launched any more; workers that run end by themselves.
  void Stop();
  PodsReport Report();

 private:
  void Run();
  void Pass();
  std::vector<SeenPod> See();
  std::vector<int> AtWork();
  void TakeHistory(const std::vector<SeenPod>& pods);
  bool MasterIsLeaving();
  void Act(const PodsPlan& plan);
  // What is left of pods that have ended, for those who ask later.
  void KeepHistory(const PodsPlan& plan);
  std::string PodText(const PodsPlan::Launch& launch) const;
  std::string NameOf(const PodsPlan::Launch& launch) const;
  void Wake();

  kube::Api& api_;
  Master& master_;
  const KeeperOptions options_;
  kube::Informer<kube::CompactPod> pods_;
  kube::EventRecorder events_;
  kube::PodHistory history_;
  bool begun_ = false;    // of the thread
  bool leaving_ = false;  // of the thread: the master's own pod is being deleted
  PodMemory memory_;      // of the thread
  std::map<std::string, SeenPod>
      launched_;                      // of the thread: not seen in the cache yet, or seen and gone since
  std::map<std::string, bool> told_;  // of the thread: pods whose end the master knows of

  Mutex mu_;
  CondVar changed_;
  bool woken_ TY_GUARDED_BY(mu_) = false;
  bool stopping_ TY_GUARDED_BY(mu_) = false;
  absl::Duration wait_ TY_GUARDED_BY(mu_);
  PodsReport report_ TY_GUARDED_BY(mu_);
  std::thread thread_;
};

// Deletes the pods of the job that have not ended, of both roles: after its master, which owns them, they
// would wait for it in vain.
absl::Status EndPods(kube::Api& api, std::string_view ns, std::string_view job, std::string_view master_uid);

// How a pod is seen, by what the API server says of it.
SeenPod SeenOf(const kube::CompactPod& pod);

}  // namespace trainyard::master
