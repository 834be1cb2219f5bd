// All that one attempt prints, bounded: the newest is always there, the oldest is dropped.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/sys.h"

namespace trainyard::agent {

// Where logs lie: files without names in a folder, so that nothing is left of them however the agent ends; in
// memory when the folder cannot be written. Outlives its logs.
class LogSpace {
 public:
  // `bytes`: of all logs together, of which there are two: the present attempt's and the one's before.
  LogSpace(std::string folder, std::uint64_t bytes);
  // For tests: opens a file for a log in another way.
  using Opener = std::function<OwnedFd()>;
  LogSpace(Opener disk, Opener memory, std::uint64_t bytes);

  bool on_disk() const { return on_disk_; }
  // From now on in memory; says so once on standard error.
  void LeaveDisk(const Failure& why);

  OwnedFd Open();
  std::uint64_t FileBytes() const;  // how much one of a log's two files may hold

 private:
  Opener disk_;
  Opener memory_;
  std::uint64_t bytes_;
  bool on_disk_ = true;
};

// Offsets count the attempt's bytes from its start. Two files in turn: when both are full, the older one
// goes.
class AttemptLog {
 public:
  explicit AttemptLog(LogSpace& space) : space_(space) {}

  // What can be written nowhere is dropped with all before it: nobody waits for a log.
  void Append(std::string_view bytes);
  // There will be no more.
  void Close() { closed_ = true; }

  std::uint64_t begin() const;  // the first byte that can be read
  std::uint64_t end() const { return end_; }
  bool closed() const { return closed_; }

  // Bytes from `offset` on, which is from begin() to end(): at most `most`, at least one if there is one.
  // Nothing: they cannot be read.
  std::string Read(std::uint64_t offset, std::size_t most) const;
  // Where the last so many lines begin; one without an end counts.
  std::uint64_t FindTail(std::uint64_t lines) const;

 private:
  struct File {
    OwnedFd fd;
    std::uint64_t begin = 0;  // of its first byte
    std::uint64_t size = 0;
    std::uint64_t limit = 0;
  };
  bool AddFile();

  LogSpace& space_;
  std::vector<File> files_;  // one or two, older first
  std::uint64_t end_ = 0;
  bool closed_ = false;
};

}  // namespace trainyard::agent
