// Takes keys from a queue and passes over each: a few threads, or one caller that plays them all.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "kube/resource.h"
#include "kube/work_queue.h"

namespace trainyard::kube {

// How a pass over one key ended.
struct Done {  // until something changes
  bool operator==(const Done&) const = default;
};
struct Again {
  absl::Duration after;
  bool operator==(const Again&) const = default;
};
struct Failed {
  absl::Status status;
  bool terminal = false;  // trying again cannot help until something changes
  bool operator==(const Failed&) const = default;
};
using Outcome = std::variant<Done, Again, Failed>;

struct Pass {
  Outcome outcome;
  std::string actions;  // what it did, for the log; empty: nothing
};

// What the log line of a pass says.
struct PassReport {
  ObjectKey key;
  Outcome outcome;
  std::string actions;
  absl::Duration late;  // how long the key had been ready before
  absl::Duration took;
  absl::Duration wait;  // until the next pass, if one is sure to come
};

// Called by many threads at once, but never for one key by two.
using Reconcile = std::function<Pass(const ObjectKey& key)>;

// The queue and the clock must outlive it.
class Runner {
 public:
  struct Options {
    std::string name;  // for the log
    int workers = 4;
    std::function<void(const PassReport&)> on_pass;  // after each pass, in its thread; for metrics
  };
  Runner(WorkQueue& queue, Clock& clock, Reconcile reconcile, Options options);
  // Stop().
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  // Starts the threads; once.
  void Start();
  // Shuts the queue down and waits for the passes under way, and for those that are ready if they are to be
  // drained. May be called twice, by one thread.
  void Stop(WorkQueue::Rest rest = WorkQueue::Rest::kDrain);

  // Passes over the next key that is ready at `now`, in this thread; false if there is none.
  bool RunOne(SteadyTime now);

 private:
  void Work();
  void RunPass(const ObjectKey& key);
  absl::Duration Settle(const ObjectKey& key, const Outcome& outcome);
  void Log(const PassReport& report) const;

  WorkQueue& queue_;
  Clock& clock_;
  const Reconcile reconcile_;
  const Options options_;
  std::vector<std::thread> workers_;
};

}  // namespace trainyard::kube
