#include "shim/sys.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <time.h>

#include <cstring>

namespace trainyard::shim {

std::string Failure::Text() const {
  if (error == 0) return stage;
  return stage + ": " + std::strerror(error);
}

std::uint64_t WallNanos() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

std::uint64_t SteadyMillis() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000 + static_cast<std::uint64_t>(now.tv_nsec) / 1'000'000;
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

bool ReadSmallFile(int folder, const char* path, std::string& out, std::size_t most) {
  const OwnedFd file(::openat(folder, path, O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return false;
  out.clear();
  char piece[4096];
  while (out.size() < most) {
    const ssize_t got = ::read(file.get(), piece, sizeof piece);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return false;
    if (got == 0) return true;
    out.append(piece, static_cast<std::size_t>(got));
  }
  errno = EFBIG;
  return false;
}

bool WriteSmallFile(const char* path, std::string_view bytes) {
  const OwnedFd file(::open(path, O_WRONLY | O_CLOEXEC));
  return file.valid() && WriteAll(file.get(), bytes);
}

int PidfdOpen(pid_t pid, unsigned flags) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, flags)); }
int PidfdGetfd(int pidfd, int fd) { return static_cast<int>(::syscall(SYS_pidfd_getfd, pidfd, fd, 0)); }

}  // namespace trainyard::shim
