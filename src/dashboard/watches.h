// Hears what happens in a cluster for as long as it lives: that something of a job has changed, and each
// event.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/document.h"
#include "base/mutex.h"
#include "kube/api.h"

namespace trainyard::dashboard {

class Watches {
 public:
  // Called on threads of its own. All that is there already is told of first.
  struct Listener {
    std::function<void()> changed;
    std::function<void(const Document& event)> event;
  };
  // The API and the clock outlive it. "": all namespaces.
  Watches(kube::Api& api, Clock& clock, std::string ns, Listener listener);
  ~Watches();
  Watches(const Watches&) = delete;
  Watches& operator=(const Watches&) = delete;

 private:
  void Begin(const kube::Resource& resource, const std::string& selector = "");
  void Run(const kube::Resource& resource, const std::string& selector, Alarm& alarm);
  // Until the stream ends or breaks.
  void Follow(kube::WatchStream& stream, bool events, std::string& version);
  bool stopping() const;

  kube::Api& api_;
  Clock& clock_;
  const std::string ns_;
  const Listener listener_;
  mutable Mutex mu_;
  bool stopping_ TY_GUARDED_BY(mu_) = false;
  std::vector<kube::WatchStream*> streams_ TY_GUARDED_BY(mu_);
  std::vector<std::unique_ptr<Alarm>> alarms_;  // one for each thread
  std::vector<std::thread> threads_;
};

}  // namespace trainyard::dashboard
