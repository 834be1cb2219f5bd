// What the operator counts and measures, as Prometheus reads it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "kube/work_queue.h"
#include "reconcile/pass_meter.h"

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

}  // namespace trainyard::ops
