// What becomes of a job that is followed in the foreground when its user presses Ctrl-C: whoever sits at a
// terminal is asked; whoever does not has ended it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/ending_signals.h"

namespace trainyard::cli {

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
