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

// Which revision may be forgotten: what was the newest `keep` ago. Pure.
class RevisionAges {
 public:
  explicit RevisionAges(absl::Duration keep) : keep_(keep) {}
  // The newest revision is this one now. Returns the one up to which all may be forgotten, if there is a new
  // one.
  std::optional<kv::Revision> Note(kv::Revision newest, SteadyTime now);

 private:
  struct Seen {
    SteadyTime at;
    kv::Revision revision;
  };
  const absl::Duration keep_;
  std::deque<Seen> seen_;
  kv::Revision forgotten_ = 0;
};

class Compactor {
 public:
  Compactor(kv::Store& store, Clock& clock, absl::Duration keep);
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
