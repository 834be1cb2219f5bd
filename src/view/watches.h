// Hears what happens in a cluster for as long as it lives: that something of a job has changed, and each
// event.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/document.h"
#include "base/mutex.h"
#include "kube/api.h"
#include "view/job.h"

namespace trainyard::view {

class Watches {
 public:
  // Called on threads of its own.
  struct Listener {
    std::function<void()> changed;  // also when it begins to watch
    // Those that are there already first. None: nobody is interested in events.
    std::function<void(const Document& event)> event;
    std::function<void()> events_listed;  // these were told of, or cannot be had
  };
  struct Scope {
    std::string ns;           // "": all
    std::vector<Kind> kinds;  // none: all
    bool pods = false;        // also when any pod changes, and not only what jobs tell of theirs
  };
  // The API and the clock outlive it.
  Watches(kube::Api& api, Clock& clock, Scope scope, Listener listener);
  ~Watches();
  Watches(const Watches&) = delete;
  Watches& operator=(const Watches&) = delete;

 private:
  void Begin(const kube::Resource& resource, const std::string& selector = "");
  void Run(const kube::Resource& resource, const std::string& selector, Alarm& alarm);
  // From the version on; if there is none, from what is there now, and of events all of that is told of
  // first.
  absl::StatusOr<std::unique_ptr<kube::WatchStream>> Open(const kube::Resource& resource,
                                                          const std::string& selector, std::string& version);
  // Until the stream ends or breaks.
  void Follow(kube::WatchStream& stream, bool events, std::string& version);
  bool stopping() const;

  kube::Api& api_;
  Clock& clock_;
  const Scope scope_;
  const Listener listener_;
  mutable Mutex mu_;
  bool stopping_ TY_GUARDED_BY(mu_) = false;
  std::vector<kube::WatchStream*> streams_ TY_GUARDED_BY(mu_);
  std::vector<std::unique_ptr<Alarm>> alarms_;  // one for each thread
  std::vector<std::thread> threads_;
};

// ---- Tells when something about a cluster's jobs has changed, so that nobody has to look again and again.

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
