// The little of the operating system that the disk journal needs, narrow enough to fake: a test can break any
// one call, or take the power away between any two.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace trainyard::kv {

// Every error names the file.
class File {
 public:
  virtual ~File() = default;
  // The bytes at [offset, offset + length); fewer if the file ends before.
  virtual absl::StatusOr<std::string> ReadAt(std::uint64_t offset, std::size_t length) const = 0;
  virtual absl::Status WriteAt(std::uint64_t offset, std::string_view bytes) = 0;
  // Everything written is on the disk, and stays after the power has gone.
  virtual absl::Status Sync() = 0;
  virtual absl::StatusOr<std::uint64_t> Size() const = 0;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;
  // Makes the folder and those above it; OK if it is there.
  virtual absl::Status MakeFolder(const std::string& path) = 0;
  // The names in a folder.
  virtual absl::StatusOr<std::vector<std::string>> List(const std::string& path) = 0;
  enum class Mode { kOpen, kCreate };  // kCreate: made, or emptied
  virtual absl::StatusOr<std::unique_ptr<File>> Open(const std::string& path, Mode mode) = 0;
  virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;
  virtual absl::Status Remove(const std::string& path) = 0;
  // Names made, moved and removed in a folder stay so after the power has gone.
  virtual absl::Status SyncFolder(const std::string& path) = 0;
  // Exclusive until the result goes. FailedPrecondition, naming the process that holds it, if one does.
  virtual absl::StatusOr<std::unique_ptr<File>> Lock(const std::string& path) = 0;

  // This machine's; lives as long as the process.
  static FileSystem& System();
};

}  // namespace trainyard::kv
