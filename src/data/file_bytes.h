// The bytes of one file, where they lie: mapped, or unpacked into memory.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/fd.h"

namespace trainyard::data {

// Any number of threads may use it.
class FileBytes {
 public:
  // Errors name the file. InvalidArgument: it is a folder or a device.
  static absl::StatusOr<std::shared_ptr<const FileBytes>> Map(const std::string& path);
  static std::shared_ptr<const FileBytes> Own(std::unique_ptr<char[]> bytes, std::size_t size);
  ~FileBytes();
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;

  std::string_view view() const { return view_; }
  bool mapped() const { return file_.valid(); }

  // FailedPrecondition, without the file's name: it is not any more as it was when it was mapped, as far as
  // its size and time tell. To be asked before its bytes are touched: where a file was cut there is nothing
  // to touch, and the system ends the process that does. A file that is cut between the answer and the touch
  // still does that; whoever reads a mapping cannot prevent it.
  absl::Status CheckUnchanged() const;

  // Has the system begin to read these bytes, which are within the file, from the disk if need be. Nobody
  // waits.
  void WillNeed(std::uint64_t offset, std::uint64_t size) const;

  // What tells a file and its state from others.
  struct Stamp {
    dev_t device = 0;
    ino_t inode = 0;
    off_t size = 0;
    std::int64_t seconds = 0;  // when it was last written
    std::int64_t nanos = 0;
    bool operator==(const Stamp&) const = default;
  };
  const Stamp& stamp() const { return stamp_; }

 private:
  FileBytes() = default;

  Fd file_;
  Stamp stamp_;
  std::unique_ptr<char[]> owned_;
  std::string_view view_;
};

}  // namespace trainyard::data
