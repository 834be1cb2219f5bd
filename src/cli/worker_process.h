// What processes that work for a job share: what their environment says, how they are stopped, and who is
// told of it.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/mutex.h"

namespace trainyard::cli {

// A variable of the environment; "" if it is not set.
std::string Variable(const char* name);

// The job's token: what the file has, or if none is named $TRAINYARD_JOB_TOKEN.
absl::StatusOr<std::string> JobToken(const std::string& file);

// "HOST:PORT", by the pod's own IP, or by loopback outside of pods.
std::string PodAddress(int port);

// This machine's, or the pod's.
std::string HostName();

// Runs `work` in a thread of its own until it ends; the first of the signals that end a process stops it
// through what `work` gave, as often as it gives something.
class SignalStopper {
 public:
  using Stop = std::function<void()>;
  absl::Status Run(const std::function<absl::Status(const std::function<void(Stop)>& on_running)>& work);
  // Waits so long, or until it is to stop: true.
  bool AwaitFor(absl::Duration time);

 private:
  void Set(Stop stop);
  void Ask();

  Mutex mu_;
  CondVar changed_;
  Stop stop_ TY_GUARDED_BY(mu_);
  bool asked_ TY_GUARDED_BY(mu_) = false;
};

}  // namespace trainyard::cli
