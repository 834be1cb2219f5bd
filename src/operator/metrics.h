// What the operator counts and measures, as Prometheus reads it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "kube/http.h"
#include "kube/work_queue.h"
#include "reconcile/pacing.h"

namespace trainyard::ops {

// All calls may be made from many threads at once.
class Metrics final : public reconcile::PassMeter {
 public:
  Metrics();
  ~Metrics() override;
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  void PodsCreated(int count) override;
  void PodsDeleted(int count) override;
  void ServicesCreated(int count) override;
  void ServicesDeleted(int count) override;
  void Restarted(std::string_view role, std::string_view cause) override;
  void Planned(absl::Duration took) override;
  void Passed(absl::Duration took, bool failed) override;
  void Waited(absl::Duration time) override;
  // An answer of the API server; code 0: there was none.
  void Requested(std::string_view method, int code);

  // What is asked when the metrics are read: jobs of a kind by state, the queue's length, and whether this
  // process leads.
  using CountJobs = std::function<std::map<std::string, int>()>;
  void WatchJobs(std::string kind, CountJobs count);
  void WatchQueue(std::function<kube::WorkQueue::Counts()> count);
  void WatchLeading(std::function<bool()> leads);
  // Before what is asked goes away.
  void ForgetWatched();

  // In Prometheus' text format.
  std::string Print() const;

 private:
  struct Parts;
  const std::unique_ptr<Parts> parts_;
};

// ---- A transport that counts the answers that pass through it, and if asked to sends no more than so many
// requests a second.

// What is given must outlive it.
class MeteredTransport final : public kube::Transport {
 public:
  // `qps` 0: no limit. After a pause a second's worth may go at once.
  MeteredTransport(kube::Transport& to, Clock& clock, Metrics& metrics, double qps);

  std::vector<absl::StatusOr<kube::Response>> DoAll(std::vector<kube::Request> requests) override;
  absl::StatusOr<kube::OpenedResponse> Open(kube::Request request) override;
  std::string Server() const override { return to_.Server(); }

 private:
  // Waits until at least one may go, and returns how many of those that want to may.
  std::size_t Admit(std::size_t wanted);

  kube::Transport& to_;
  Clock& clock_;
  Metrics& metrics_;
  const double qps_;
  Mutex mu_;
  double allowance_ TY_GUARDED_BY(mu_);
  SteadyTime refilled_ TY_GUARDED_BY(mu_);
};

}  // namespace trainyard::ops
