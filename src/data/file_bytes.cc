#include "data/file_bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/status.h"
#include "base/text.h"

namespace trainyard::data {
namespace {

FileBytes::Stamp StampOf(const struct stat& state) {
  return {.device = state.st_dev,
          .inode = state.st_ino,
          .size = state.st_size,
          .seconds = state.st_mtim.tv_sec,
          .nanos = state.st_mtim.tv_nsec};
}

}  // namespace

absl::StatusOr<std::shared_ptr<const FileBytes>> FileBytes::Map(const std::string& path) {
  const std::shared_ptr<FileBytes> bytes(new FileBytes);
  // Without O_NONBLOCK, opening a pipe waits for somebody who writes to it.
  bytes->file_ = Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!bytes->file_.valid()) return ErrnoStatus(errno, StrCat("cannot open ", path));
  struct stat state{};
  if (::fstat(bytes->file_.get(), &state) != 0) return ErrnoStatus(errno, StrCat("cannot look at ", path));
  if (S_ISDIR(state.st_mode)) {
    return absl::InvalidArgumentError(StrCat(path, " is a folder: name its files, as in '", path, "/*'"));
  }
  if (!S_ISREG(state.st_mode)) {
    return absl::InvalidArgumentError(StrCat(path, " is not a file that can be read in any order"));
  }
  bytes->stamp_ = StampOf(state);
  const auto size = static_cast<std::size_t>(state.st_size);
  if (size == 0) return bytes;  // which cannot be mapped
  void* start = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, bytes->file_.get(), 0);
  if (start == MAP_FAILED) return ErrnoStatus(errno, StrCat("cannot map ", path));
  bytes->view_ = {static_cast<const char*>(start), size};
  return bytes;
}

std::shared_ptr<const FileBytes> FileBytes::Own(std::unique_ptr<char[]> bytes, std::size_t size) {
  const std::shared_ptr<FileBytes> owner(new FileBytes);
  owner->view_ = {bytes.get(), size};
  owner->owned_ = std::move(bytes);
  return owner;
}

FileBytes::~FileBytes() {
  if (mapped() && !view_.empty()) ::munmap(const_cast<char*>(view_.data()), view_.size());
}

absl::Status FileBytes::CheckUnchanged() const {
  if (!mapped()) return absl::OkStatus();
  struct stat state{};
  if (::fstat(file_.get(), &state) != 0) return ErrnoStatus(errno, "cannot look at it");
  if (StampOf(state) == stamp_) return absl::OkStatus();
  if (state.st_size != stamp_.size) {
    return absl::FailedPreconditionError(StrCat("it ends at byte ", state.st_size, " and ended at byte ",
                                                stamp_.size,
                                                " when it was opened: open it again when it is complete"));
  }
  return absl::FailedPreconditionError("it was written to since it was opened: open it again");
}

void FileBytes::WillNeed(std::uint64_t offset, std::uint64_t size) const {
  if (!mapped() || size == 0) return;
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t start = offset / page * page;
  // Only advice: what is not read ahead is read when it is touched.
  (void)::madvise(const_cast<char*>(view_.data()) + start, offset + size - start, MADV_WILLNEED);
}

}  // namespace trainyard::data
