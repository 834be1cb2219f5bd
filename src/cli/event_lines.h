// A line for each event of a cluster, as it happens.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <thread>

#include "base/mutex.h"
#include "kube/api.h"

namespace trainyard::cli {

class EventLines {
 public:
  // `print` is called on a thread of its own, with a line without its end.
  EventLines(kube::Transport& transport, std::function<void(std::string_view)> print);
  ~EventLines();

 private:
  void Run();
  void Follow(kube::WatchStream& stream);

  kube::Api api_;
  std::function<void(std::string_view)> print_;
  Mutex mu_;
  bool stopping_ TY_GUARDED_BY(mu_) = false;
  kube::WatchStream* current_ TY_GUARDED_BY(mu_) = nullptr;
  std::unique_ptr<Alarm> alarm_;
  std::thread thread_;
};

// "12:00:01 pod/default/x Started: ..."; an event's JSON text. Pure.
std::string PrintEventLine(std::string_view event);

}  // namespace trainyard::cli
