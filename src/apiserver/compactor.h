// Lets the store forget what no watch can ask for any more.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <thread>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "kv/store.h"

namespace trainyard::apiserver {

// How much a store remembers: both limits hold.
struct HistoryLimits {
  absl::Duration age = absl::Minutes(5);
  // Each costs about 300 bytes of memory, so a busy minute must not decide how much there is.
  kv::Revision revisions = 50'000;
};

// Which revision may be forgotten. Pure.
class RevisionAges {
 public:
  explicit RevisionAges(HistoryLimits limits) : limits_(limits) {}
  // The newest revision is this one now. Returns the one up to which all may be forgotten, if there is a new
  // one.
  std::optional<kv::Revision> Note(kv::Revision newest, SteadyTime now);

 private:
  struct Seen {
    SteadyTime at;
    kv::Revision revision;
  };
  const HistoryLimits limits_;
  std::deque<Seen> seen_;
  kv::Revision forgotten_ = 0;
};

class Compactor {
 public:
  Compactor(kv::Store& store, Clock& clock, HistoryLimits limits);
  ~Compactor();

 private:
  void Run();

  kv::Store& store_;
  Clock& clock_;
  const absl::Duration every_;
  RevisionAges ages_;
  std::unique_ptr<Alarm> alarm_;
  Mutex mu_;
  bool stopping_ TY_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace trainyard::apiserver
