// When jobs are passed over again though nothing has happened to them, and how long a status that only tells
// of progress waits before it is stored: a thousand jobs must not be a storm of writes.
#pragma once

#include <map>
#include <string_view>

#include "absl/time/time.h"
#include "base/mutex.h"
#include "job/job_status.h"
#include "kube/resource.h"

namespace trainyard::reconcile {

// How soon what has become of a job is to be stored.

enum class Urgency {
  kProgress,  // the job has come further within its state: that can wait for what else comes
  kGoodNews,  // it has begun, or all that it has to have runs now
  kNow,
};

// Of what is to be stored in the place of what is.
Urgency UrgencyOf(const job::JobStatus& before, const job::JobStatus& after);

// All calls may be made from many threads at once.
class Pacing {
 public:
  struct Options {
    // Between a job's double checks: this, and twice as long each time that there was nothing to do.
    absl::Duration first_period = absl::Seconds(15);
    absl::Duration longest_period = absl::Minutes(5);
  };
  explicit Pacing(Options options) : options_(options) {}

  // ---- writes

  // How long the job's new status waits before it is stored; zero or less: not at all.
  absl::Duration Hold(const kube::ObjectKey& job, Urgency urgency, absl::Time now);
  void NoteStored(const kube::ObjectKey& job, absl::Time now);
  // Passes that create objects come before news that can wait.
  void BeginCreating();
  void EndCreating();

  // ---- double checks

  // Whether the job's double check is due, and may be recorded in its status now.
  bool TakeRecord(const kube::ObjectKey& job, absl::Time now);
  // How long until the next one.
  absl::Duration NextRound(const kube::ObjectKey& job, absl::Time now, bool changed);

  // The job is gone.
  void Forget(const kube::ObjectKey& job);

 private:
  struct Round {
    absl::Duration period;
    absl::Time due = absl::InfiniteFuture();
    absl::Time stored;  // when its status was stored last, or first had to wait
  };

  const Options options_;
  Mutex mu_;
  std::map<kube::ObjectKey, Round> rounds_ TY_GUARDED_BY(mu_);
  int creating_ TY_GUARDED_BY(mu_) = 0;    // passes
  double records_ TY_GUARDED_BY(mu_) = 1;  // that may be made now
  absl::Time recorded_ TY_GUARDED_BY(mu_) = absl::InfinitePast();
};

// ---- What a controller reports of its passes, for metrics.

// All calls may be made from many threads at once.
class PassMeter {
 public:
  virtual ~PassMeter() = default;

  virtual void PodsCreated(int count) = 0;
  virtual void PodsDeleted(int count) = 0;
  virtual void ServicesCreated(int count) = 0;
  virtual void ServicesDeleted(int count) = 0;
  // A pod or container of a role failed and was started again.
  virtual void Restarted(std::string_view role, std::string_view cause) = 0;
  virtual void Planned(absl::Duration took) = 0;
  virtual void Passed(absl::Duration took, bool failed) = 0;
  // How long a key was ready before its pass began.
  virtual void Waited(absl::Duration time) = 0;
};

}  // namespace trainyard::reconcile
