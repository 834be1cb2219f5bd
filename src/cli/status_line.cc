#include "cli/status_line.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "cli/jobs_common.h"

namespace trainyard::cli {
namespace {

constexpr absl::Duration kBetweenLines = absl::Seconds(5);  // where there is no terminal
constexpr std::size_t kLeastWidth = 10;

}  // namespace

bool StatusLine::IsTerminal() { return ::isatty(STDERR_FILENO) == 1; }

void StatusLine::Show(const std::string& text) {
  const SteadyTime now = Clock::System().Steady();
  if (!terminal_) {
    if (text == last_ || (shown_at_ != SteadyTime() && now - shown_at_ < kBetweenLines)) return;
    std::cerr << text << std::endl;
  } else {
    const std::size_t width = std::max(TerminalAt(STDERR_FILENO).width, kLeastWidth) - 1;
    std::cerr << "\r\x1b[K" << text.substr(0, width) << std::flush;
    open_ = true;
  }
  last_ = text;
  shown_at_ = now;
}

void StatusLine::Say(const std::string& text) {
  if (open_) std::cerr << "\r\x1b[K";
  std::cerr << text << std::endl;
  open_ = false;
}

void StatusLine::End() {
  if (open_) std::cerr << std::endl;
  open_ = false;
}

}  // namespace trainyard::cli
