// The few things of the operating system that every part of the agent needs: descriptors, time, whole writes,
// and the word for what failed.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace trainyard::agent {

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
  std::string stage;  // a sentence's beginning: "cannot listen on 0.0.0.0:7896"
  int error = 0;

  bool ok() const { return stage.empty(); }
  static Failure None() { return {}; }
  static Failure Here(std::string stage) { return {.stage = std::move(stage), .error = errno}; }
  std::string Text() const;  // with the system's reason
};

// A time that never comes; every other one is of SteadyMillis().
inline constexpr std::uint64_t kNever = UINT64_MAX;

std::uint64_t WallMillis();
std::uint64_t SteadyMillis();

// "2024-05-01T10:00:00.123Z".
std::string PrintTime(std::uint64_t wall_millis);

// False: errno says why. Goes on after a signal or a partial write.
bool WriteAll(int fd, std::string_view bytes);
// False: it cannot be read, or has more than `most` bytes.
bool ReadSmallFile(const std::string& path, std::string& out, std::size_t most = std::size_t{1} << 20);

}  // namespace trainyard::agent
