// What the dashboard remembers: the jobs of the cluster as they are, how large each was over time, what it
// has told of its learning, and the last events. It looks again when something has changed, and no more often
// than costs it a small part of its time.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "kube/api.h"
#include "view/job.h"

namespace trainyard::dashboard {

// A value over time; when there are too many points, every second one goes.
class Series {
 public:
  explicit Series(std::size_t most = 600) : most_(most) {}
  // Seconds since 1970. A point is taken only if it is so much later than the last one, or, with `on_change`,
  // if the value is another.
  void Add(double seconds, double value, bool on_change = false);
  const std::vector<std::pair<double, double>>& points() const { return points_; }

 private:
  std::size_t most_;
  double least_gap_ = 0;
  std::vector<std::pair<double, double>> points_;
};

struct SeenJob {
  view::Job job;  // without its object
  Series size{60};
  std::map<std::string, Series> plots;  // "loss", "accuracy"
};

// What was known at a moment.
struct Snapshot {
  std::uint64_t number = 0;
  std::vector<std::shared_ptr<const SeenJob>> jobs;
  std::shared_ptr<const SeenJob> Find(view::Kind kind, std::string_view ns, std::string_view name) const;
};

struct ClusterEvent {
  std::string ns;
  std::string uid;  // of the event's own object, which is told again when it is counted up
  view::Event event;
};

class Observer {
 public:
  // Called on a thread of the observer, when something has changed and when an event has come.
  struct Listener {
    std::function<void()> changed;
    std::function<void(const ClusterEvent&)> event;
  };
  // The transport and the clock outlive it.
  Observer(kube::Transport& transport, Clock& clock, std::string ns, Listener listener);
  ~Observer();

  std::shared_ptr<const Snapshot> Look() const;
  std::vector<ClusterEvent> Events() const;

 private:
  void Watch(const kube::Resource& resource, const std::string& selector, bool events);
  void TakeEvent(const Document& object);
  void Sample();
  void TakeSample();
  bool stopping() const;

  Clock& clock_;
  const std::string ns_;  // "": all
  const Listener listener_;
  kube::Api api_;
  const absl::Time begun_;
  mutable Mutex mu_;
  CondVar changed_;
  bool stopping_ TY_GUARDED_BY(mu_) = false;
  bool dirty_ TY_GUARDED_BY(mu_) = true;
  std::vector<kube::WatchStream*> streams_ TY_GUARDED_BY(mu_);
  std::shared_ptr<const Snapshot> snapshot_ TY_GUARDED_BY(mu_);
  std::deque<ClusterEvent> events_ TY_GUARDED_BY(mu_);
  std::vector<std::thread> threads_;
};

}  // namespace trainyard::dashboard
