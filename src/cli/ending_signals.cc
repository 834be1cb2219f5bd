#include "cli/ending_signals.h"

#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <iostream>

#include "absl/time/time.h"

namespace trainyard::cli {
namespace {

constexpr absl::Duration kInterruptionTick = absl::Milliseconds(50);

// While it lives a key counts when it is pressed, and is not shown. Ctrl-C is a signal as ever.
class SingleKeys {
 public:
  SingleKeys() : known_(::tcgetattr(STDIN_FILENO, &before_) == 0) {
    if (!known_) return;
    termios keys = before_;
    keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    keys.c_cc[VMIN] = 1;
    keys.c_cc[VTIME] = 0;
    ::tcsetattr(STDIN_FILENO, TCSANOW, &keys);
  }
  ~SingleKeys() {
    if (known_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  SingleKeys(const SingleKeys&) = delete;
  SingleKeys& operator=(const SingleKeys&) = delete;

 private:
  termios before_{};
  const bool known_;
};

// The key that is pressed next; 0: nobody is there any more; nothing: none in this time.
std::optional<char> NextKey(absl::Duration time) {
  pollfd input{.fd = STDIN_FILENO, .events = POLLIN};
  if (::poll(&input, 1, static_cast<int>(absl::ToInt64Milliseconds(time))) <= 0) return std::nullopt;
  char key = 0;
  return ::read(STDIN_FILENO, &key, 1) == 1 ? key : '\0';
}

}  // namespace

std::optional<Interruption> ParseAnswer(char key) {
  switch (key) {
    case 'e':
    case 'E':
      return Interruption::kEnd;
    case 'l':
    case 'L':
    case '\0':  // the terminal is gone: what runs is not its matter
      return Interruption::kLeave;
    case 'c':
    case 'C':
    case '\n':
    case '\r':
      return Interruption::kGoOn;
    default:
      return std::nullopt;
  }
}

Interruption AskAboutJob(const std::string& what, int signal, const EndingSignals& signals) {
  if (signal != SIGINT || ::isatty(STDIN_FILENO) != 1 || ::isatty(STDERR_FILENO) != 1)
    return Interruption::kEnd;
  std::cerr << "\n"
            << what << " still runs. e: end it, l: leave it running, c: continue to follow it? "
            << std::flush;
  const SingleKeys keys;
  while (true) {
    if (signals.AwaitFor(absl::ZeroDuration())) {
      std::cerr << "end" << std::endl;
      return Interruption::kEnd;
    }
    const std::optional<char> key = NextKey(kInterruptionTick);
    const std::optional<Interruption> answer = key ? ParseAnswer(*key) : std::nullopt;
    if (!answer) continue;
    std::cerr << (*answer == Interruption::kEnd     ? "end"
                  : *answer == Interruption::kLeave ? "leave"
                                                    : "continue")
              << std::endl;
    return *answer;
  }
}

}  // namespace trainyard::cli
