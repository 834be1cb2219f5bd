// The few things of the operating system that every part of the shim needs: descriptors, time, whole writes,
// and the word for what failed.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace trainyard::shim {

// A descriptor that is closed when its owner goes.
class OwnedFd {
 public:
  OwnedFd() = default;
  explicit OwnedFd(int fd) : fd_(fd) {}
  ~OwnedFd() { Reset(); }
  OwnedFd(OwnedFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept {
    if (this != &other) {
      Reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int Release() { return std::exchange(fd_, -1); }
  void Reset() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
};

// What failed and why. An empty stage: nothing did.
struct Failure {
  std::string stage;  // a sentence's beginning: "cannot mount /data"
  int error = 0;

  bool ok() const { return stage.empty(); }
  static Failure None() { return {}; }
  static Failure Here(std::string stage) { return {.stage = std::move(stage), .error = errno}; }
  std::string Text() const;  // with the system's reason
};

std::uint64_t WallNanos();
std::uint64_t SteadyMillis();

// False: errno says why. Goes on after a signal or a partial write.
bool WriteAll(int fd, std::string_view bytes);
// At most `most` bytes; false: it cannot be read.
bool ReadSmallFile(int folder, const char* path, std::string& out, std::size_t most = 1 << 20);
bool WriteSmallFile(const char* path, std::string_view bytes);

// By number: the C library's own header forgets that it is C.
int PidfdOpen(pid_t pid, unsigned flags);
int PidfdGetfd(int pidfd, int fd);

}  // namespace trainyard::shim
