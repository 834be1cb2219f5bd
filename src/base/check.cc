#include "base/check.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace trainyard {
namespace {

constexpr int kAborted = 128 + SIGABRT;

}  // namespace

void CheckFailed(std::string_view condition, std::string_view what, const char* file, int line) {
  const std::string text = std::string(file)
                               .append(":")
                               .append(std::to_string(line))
                               .append(": bug: ")
                               .append(what)
                               .append(" (")
                               .append(condition)
                               .append(" does not hold)");
  std::fprintf(stderr, "%s\n", text.c_str());
  WriteTerminationLog(text);
  if (::getpid() == 1) ::_exit(kAborted);
  std::abort();
}

void WriteTerminationLog(std::string_view message) {
  const int log = ::open("/dev/termination-log", O_WRONLY | O_TRUNC | O_CLOEXEC);
  if (log < 0) return;
  while (!message.empty()) {
    const ssize_t written = ::write(log, message.data(), message.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    message.remove_prefix(static_cast<std::size_t>(written));
  }
  ::close(log);
}

void EndByAborts() {
  if (::getpid() == 1) ::signal(SIGABRT, [](int) { ::_exit(kAborted); });
}

}  // namespace trainyard
