// One container's log on disk: bounded, however much the container prints.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "shim/cri_lines.h"
#include "shim/sys.h"

namespace trainyard::shim {

// NAME is written; when it is full it becomes NAME.1, NAME.1 becomes NAME.2, and what would be one too many
// is forgotten. What cannot be written (the disk is full) is lost: a process never waits for its log.
class LogFile {
 public:
  struct Limits {
    std::uint64_t bytes = std::uint64_t{16} << 20;  // of one file
    unsigned files = 3;                             // with the one being written
  };

  Failure Open(std::string path, Limits limits);
  void Write(std::string_view entries);

 private:
  void Rotate();

  std::string path_;
  Limits limits_;
  OwnedFd file_;
  std::uint64_t size_ = 0;
};

}  // namespace trainyard::shim
