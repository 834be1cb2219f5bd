// Tells when something about a cluster's jobs has changed, so that nobody has to look again and again.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "kube/api.h"
#include "view/job.h"
#include "view/watches.h"

namespace trainyard::view {

class JobChanges {
 public:
  // Of these kinds, or of all if there are none; in one namespace, or in all if it is "". The API and the
  // clock outlive it.
  JobChanges(kube::Api& api, Clock& clock, std::string ns, std::vector<Kind> kinds);

  // Whether something has changed since the last call that said so, or does within this time. A watch that
  // had to be opened anew counts as a change: nobody knows what it missed.
  bool Await(absl::Duration time);

 private:
  Clock& clock_;
  Mutex mu_;
  CondVar changed_;
  bool dirty_ TY_GUARDED_BY(mu_) = false;
  Watches watches_;  // ends first
};

}  // namespace trainyard::view
