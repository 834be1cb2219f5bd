// What the dashboard remembers: the jobs of the cluster as they are, how large each was over time, and the
// last events.
//
// While somebody looks at it, it watches the cluster, and looks at the jobs again when something has changed,
// no more often than costs it a small part of its time. While nobody does, it watches nothing:
//
//        Attend()                      nobody for kPatience
//   resting -------> attended (Watches) -------> resting
//   looks each `look_every`, or not at all
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/document.h"
#include "base/mutex.h"
#include "dashboard/log_plots.h"
#include "kube/api.h"
#include "view/job.h"

namespace trainyard::view {
class Watches;
}

namespace trainyard::dashboard {

struct SeenJob {
  view::Job job;  // without its object and what it reports
  Series size{60};
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

struct ObserverOptions {
  std::string ns;  // only jobs of this namespace; "": all
  // How often the jobs are looked at while nobody watches, so that it is known how large they were. Zero: not
  // at all.
  absl::Duration look_every = absl::ZeroDuration();
};

class Observer {
 public:
  // After so long without Attend() it rests.
  static constexpr absl::Duration kPatience = absl::Minutes(5);

  // Called on a thread of the observer, when something has changed and when an event has come.
  struct Listener {
    std::function<void()> changed;
    std::function<void(const ClusterEvent&)> event;
  };
  // The transport and the clock outlive it.
  Observer(kube::Transport& transport, Clock& clock, ObserverOptions options, Listener listener);
  ~Observer();

  // Somebody looks on. All calls may be made from many threads.
  void Attend();
  // These attend. If it was resting they wait until it has looked, but for a few seconds at most.
  std::shared_ptr<const Snapshot> Look();
  std::vector<ClusterEvent> Events();

 private:
  void Run();
  void MarkChanged();
  void TakeEvent(const Document& object);
  void TakeSample(bool attended);
  std::unique_ptr<view::Watches> BeginWatching();
  // What is to be done next, and when.
  struct Next {
    bool stopping = false;
    bool attended = false;
    SteadyTime due;
  };
  Next FindNext(SteadyTime now);
  void Await(const bool& done) TY_REQUIRES(mu_);

  Clock& clock_;
  const ObserverOptions options_;
  const Listener listener_;
  kube::Api api_;
  const std::unique_ptr<Alarm> alarm_;  // of the thread
  mutable Mutex mu_;
  CondVar looked_on_;
  bool stopping_ TY_GUARDED_BY(mu_) = false;
  SteadyTime attended_until_ TY_GUARDED_BY(mu_);
  absl::Time attended_since_ TY_GUARDED_BY(mu_);
  // Since it is attended.
  bool looked_ TY_GUARDED_BY(mu_) = false;
  bool events_listed_ TY_GUARDED_BY(mu_) = false;
  bool dirty_ TY_GUARDED_BY(mu_) = false;
  SteadyTime next_look_ TY_GUARDED_BY(mu_);  // not before
  SteadyTime next_rest_ TY_GUARDED_BY(mu_);  // likewise, while it rests
  std::shared_ptr<const Snapshot> snapshot_ TY_GUARDED_BY(mu_);
  std::deque<ClusterEvent> events_ TY_GUARDED_BY(mu_);
  std::thread thread_;
};

}  // namespace trainyard::dashboard
