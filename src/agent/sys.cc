#include "agent/sys.h"

#include <fcntl.h>
#include <time.h>

#include <cstdio>
#include <cstring>

namespace trainyard::agent {

std::string Failure::Text() const {
  if (error == 0) return stage;
  return stage + ": " + std::strerror(error);
}

std::uint64_t WallMillis() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000 + static_cast<std::uint64_t>(now.tv_nsec) / 1'000'000;
}

std::uint64_t SteadyMillis() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000 + static_cast<std::uint64_t>(now.tv_nsec) / 1'000'000;
}

std::string PrintTime(std::uint64_t wall_millis) {
  const auto seconds = static_cast<time_t>(wall_millis / 1'000);
  tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[64];
  const int size = std::snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d.%03uZ",
                                 parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday, parts.tm_hour,
                                 parts.tm_min, parts.tm_sec, static_cast<unsigned>(wall_millis % 1'000));
  return {text, static_cast<std::size_t>(size)};
}

bool WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

bool ReadSmallFile(const std::string& path, std::string& out, std::size_t most) {
  const OwnedFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return false;
  out.clear();
  char piece[4096];
  while (out.size() <= most) {
    const ssize_t got = ::read(file.get(), piece, sizeof piece);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return false;
    if (got == 0) return true;
    out.append(piece, static_cast<std::size_t>(got));
  }
  errno = EFBIG;
  return false;
}

}  // namespace trainyard::agent
