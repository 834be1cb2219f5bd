// The signals that end a process which serves: blocked from the beginning, so that whoever awaits them gets
// them.
#pragma once

#include <signal.h>

#include <cstdint>
#include <optional>
#include <string>

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

// ---- What becomes of a job that is followed in the foreground when its user presses Ctrl-C: whoever sits at
// a terminal is asked; whoever does not has ended it.

enum class Interruption : std::uint8_t {
  kEnd,    // the job ends
  kLeave,  // it goes on, and is followed no more
  kGoOn,   // nothing happens
};

// What a key that was pressed at the question means; nothing: ask again. Pure.
std::optional<Interruption> ParseAnswer(char key);

// Decides what follows a signal. SIGTERM and SIGHUP end the job, and so does Ctrl-C where nobody can be asked
// (standard input or standard error is no terminal). `what` is how the job is called: "job mnist". A second
// Ctrl-C at the question ends the job.
Interruption AskAboutJob(const std::string& what, int signal, const EndingSignals& signals);

}  // namespace trainyard::cli
