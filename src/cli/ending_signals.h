// The signals that end a process which serves: blocked from the beginning, so that whoever awaits them gets
// them.
#pragma once

#include <signal.h>

#include <optional>

#include "absl/time/time.h"

namespace trainyard::cli {

// Made before the first thread starts.
class EndingSignals {
 public:
  EndingSignals() {
    ::sigemptyset(&set_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&set_, signal);
    ::pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  }

  // Waits for one.
  void Await() const {
    int signal = 0;
    ::sigwait(&set_, &signal);
  }
  // The same for no longer than so; whether one came.
  bool AwaitFor(absl::Duration time) const { return NextFor(time).has_value(); }
  // And which.
  std::optional<int> NextFor(absl::Duration time) const {
    const timespec limit = absl::ToTimespec(time);
    const int signal = ::sigtimedwait(&set_, nullptr, &limit);
    return signal >= 0 ? std::optional(signal) : std::nullopt;
  }

 private:
  sigset_t set_;
};

}  // namespace trainyard::cli
