// A queue of keys and what is done about them, many at a time: what a batch of keys writes goes out together.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "kube/resource.h"
#include "kube/runner.h"
#include "kube/work_queue.h"

namespace trainyard::controllers {

// Used by one thread.
class Loop {
 public:
  // One outcome for each key, in their order.
  using Pass = std::function<std::vector<kube::Outcome>(const std::vector<kube::ObjectKey>& keys)>;

  // The clock must outlive it.
  Loop(std::string name, Clock& clock, IdSource random, Pass pass);

  void Add(const kube::ObjectKey& key, absl::Duration after = absl::ZeroDuration()) {
    queue_.Add(key, after);
  }
  // Passes over keys whose time has come, as many as fit in one batch; false if there are none.
  bool Run();
  // When the next key's time comes.
  SteadyTime NextTime() const { return queue_.NextTime(); }

 private:
  void Settle(const kube::ObjectKey& key, const kube::Outcome& outcome);

  const std::string name_;
  Clock& clock_;
  const Pass pass_;
  kube::WorkQueue queue_;
};

// The pass of a controller that looks at one key at a time.
Loop::Pass EachAlone(std::function<kube::Outcome(const kube::ObjectKey& key)> pass);

// Done if the status is OK, else to be tried again.
kube::Outcome OutcomeOf(const absl::Status& status);

}  // namespace trainyard::controllers
