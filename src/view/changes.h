// Tells when something about a cluster's jobs has changed, so that nobody has to look again and again.
#pragma once

#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "kube/api.h"
#include "view/job.h"

namespace trainyard::view {

class JobChanges {
 public:
  // Of these kinds, or of all if there are none; in one namespace, or in all if it is "". The transport and
  // the clock outlive it.
  JobChanges(kube::Transport& transport, Clock& clock, std::string ns, const std::vector<Kind>& kinds);
  ~JobChanges();

  // Whether something has changed since the last call that said so, or does within this time. True at first.
  // A watch that had to be opened anew counts as a change: nobody knows what it missed.
  bool Await(absl::Duration time);

 private:
  void Watch(const kube::Resource& resource, const std::string& selector);
  void Pause();
  bool stopping() const;

  Clock& clock_;
  const std::string ns_;
  kube::Api api_;
  mutable Mutex mu_;
  CondVar changed_;
  bool stopping_ TY_GUARDED_BY(mu_) = false;
  bool dirty_ TY_GUARDED_BY(mu_) = true;
  std::vector<kube::WatchStream*> streams_ TY_GUARDED_BY(mu_);
  std::vector<std::thread> threads_;
};

}  // namespace trainyard::view
