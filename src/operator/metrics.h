// What the operator counts and measures, as Prometheus reads it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "kube/work_queue.h"

namespace trainyard::ops {

// All calls may be made from many threads at once.
class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  void PodsCreated(int count);
  void PodsDeleted(int count);
  void ServicesCreated(int count);
  void ServicesDeleted(int count);
  // A pod or container of a role failed and was started again.
  void Restarted(std::string_view role, std::string_view cause);
  void Planned(absl::Duration took);
  void Passed(absl::Duration took, bool failed);
  // How long a key was ready before its pass began.
  void Waited(absl::Duration time);
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
