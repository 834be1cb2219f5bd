// Keeps every job of one kind as its spec says: watches, and passes over each job that something happened to.
//
//   watches ──▶ caches ──▶ queue of keys ──▶ pass: observe, plan, act, store the status, tell
//
// As a double check every job that has not ended is passed over again after a while (pacing.h), even if
// nothing has happened.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/mutex.h"
#include "job/plan.h"
#include "kube/api.h"
#include "kube/event_recorder.h"
#include "kube/runner.h"
#include "kube/work_queue.h"
#include "reconcile/act.h"
#include "reconcile/caches.h"
#include "reconcile/historian.h"
#include "reconcile/kind.h"
#include "reconcile/pacing.h"
#include "reconcile/surroundings.h"

namespace trainyard::reconcile {

struct ControllerOptions {
  std::string ns;  // empty: all
  Pacing::Options pacing;
  job::Policies policies;
  // How many pods the autoscaler wants roles of a job to have, by name; empty: there is none.
  std::function<std::map<std::string, int>(const std::string& uid)> find_targets;
  // What was counted for the gang of a job that waits behind gates; empty: nothing is.
  std::function<job::GangView(const std::string& uid)> find_gang;
  int workers = 16;
  std::optional<std::uint64_t> seed;  // of back-offs; unset: the system's entropy
};

// What is given must outlive it.
class Controller {
 public:
  Controller(kube::Api& api, Clock& clock, const Kind& kind, Surroundings& surroundings,
             kube::EventRecorder& events, PassMeter& meter, ControllerOptions options);
  ~Controller();  // Stop()
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  // ---- in threads of its own

  // Watches, so that it can work at once when it is to.
  void Start();
  void Stop();
  // Passes over jobs, from now on and until StopWork() returns. May be called again after that.
  void StartWork();
  void StopWork();
  bool HasSynced() const { return caches_.HasSynced(); }
  absl::Status WaitForSync(absl::Duration timeout) { return caches_.WaitForSync(timeout); }

  // ---- in the caller's thread instead

  // Takes one step of every watch, then passes over one job that is due. False: there was nothing to do.
  bool Step();
  // When the next job is due.
  SteadyTime NextTime();

  // ---- for whoever decides about many jobs together

  std::vector<std::shared_ptr<const CompactJob>> ListJobs() const { return caches_.ListJobs(); }
  job::JobView Observe(const CompactJob& job) { return caches_.Observe(job); }
  // Passes over the job, though nothing has happened to it.
  void Look(const kube::ObjectKey& key) { Wake(key, Caches::News::kChange); }

  kube::WorkQueue::Counts CountQueue() const;
  // Jobs by state: "Running", ...; "New" for those that have none.
  std::map<std::string, int> CountJobs() const;

 private:
  struct Work;
  // A job's status as the server has it.
  struct Stored {
    std::string version;
    job::JobStatus status;  // but for the time of the last look
  };

  void Wake(const kube::ObjectKey& key, Caches::News news);
  kube::Pass Reconcile(const kube::ObjectKey& key);
  kube::Pass PassOver(const kube::ObjectKey& key, const CompactJob& job);
  job::JobPlan Plan(const job::JobView& view, absl::Time now);
  // Does what the plan says, if the job is as it was seen; the error is that of Store() or CheckFresh().
  absl::StatusOr<ActResult> CarryOut(const CompactJob& job, const job::JobPlan& plan, Urgency urgency,
                                     absl::Time now, Stored& stored);
  // Conflict: the job is not as it was seen. NotFound: it is gone.
  absl::Status CheckFresh(const CompactJob& job);
  absl::Status Store(const CompactJob& job, job::JobStatus status, absl::Time now, Stored& stored);
  void Tell(const CompactJob& job, const job::JobPlan& plan, const ActResult& acted);
  void Count(const job::JobPlan& plan, const ActResult& acted);
  std::shared_ptr<Work> CurrentWork() const;

  kube::Api& api_;
  Clock& clock_;
  const Kind& kind_;
  kube::EventRecorder& events_;
  PassMeter& meter_;
  const ControllerOptions options_;
  Pacing pacing_;
  mutable Mutex mu_;
  IdSource seeds_;
  std::shared_ptr<Work> work_ TY_GUARDED_BY(mu_);        // null: it does not work now
  std::set<kube::ObjectKey> behind_ TY_GUARDED_BY(mu_);  // jobs whose passes wait for the caches
  Caches caches_;
  Historian historian_;
};

}  // namespace trainyard::reconcile
