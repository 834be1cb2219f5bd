// Tells users what happened to their objects, as events of the cluster (`kubectl get events`). Telling never
// holds up or fails the work that it is about.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/mutex.h"
#include "kube/api.h"
#include "kube/event_correlator.h"

namespace trainyard::kube {

// The API and the clock must outlive it.
class EventRecorder {
 public:
  struct Options {
    std::string component;    // who tells: "trainyard-operator"
    std::string instance;     // which of its processes
    std::size_t room = 1000;  // waiting to be written; beyond that the oldest are dropped
    absl::Duration write_timeout = absl::Seconds(10);
    EventCorrelator::Options correlator;
  };
  EventRecorder(Api& api, Clock& clock, IdSource ids, Options options);
  // Stop().
  ~EventRecorder();
  EventRecorder(const EventRecorder&) = delete;
  EventRecorder& operator=(const EventRecorder&) = delete;

  // Queues an event and returns at once. From any thread. A message is cut off after a kilobyte.
  void Record(const ObjectReference& object, EventType type, std::string_view reason,
              std::string_view message);

  // Starts the thread that writes; once.
  void Start();
  // Writes what is queued, but begins no write after `grace`, and ends the thread. What is recorded
  // afterwards is dropped. May be called twice, by one thread.
  void Stop(absl::Duration grace = absl::Seconds(5));
  // Writes what is queued in this thread instead. Not while the other thread runs.
  void Flush();

  struct Counts {
    std::int64_t written = 0;
    std::int64_t limited = 0;  // dropped: too many about one object
    std::int64_t crowded = 0;  // dropped: no room in the queue, or stopped
    std::int64_t failed = 0;   // dropped: the server did not take it
    bool operator==(const Counts&) const = default;
  };
  Counts Count() const;

 private:
  void Work();
  // Takes the next one; nothing: it was the last before the end.
  std::optional<Occurrence> Await();
  void Write(const Occurrence& occurrence);
  absl::Status Send(const Occurrence& occurrence, const EventWrite& write);
  std::string PrintEvent(const Occurrence& occurrence, const EventWrite& write) const;

  Api& api_;
  Clock& clock_;
  const Options options_;
  EventCorrelator correlator_;  // of the thread that writes
  std::thread thread_;
  mutable Mutex mu_;
  CondVar changed_;
  std::deque<Occurrence> queue_ TY_GUARDED_BY(mu_);
  SteadyTime deadline_ TY_GUARDED_BY(mu_) = SteadyTime::Never();
  bool stopping_ TY_GUARDED_BY(mu_) = false;
  Counts counts_ TY_GUARDED_BY(mu_);
};

}  // namespace trainyard::kube
