#include "data/file_pool.h"

#include <utility>

#include "base/status.h"
#include "base/text.h"

namespace trainyard::data {

void FilePool::Add(std::string path, std::shared_ptr<const FileBytes> bytes) {
  MutexLock lock(mu_);
  entries_.push_back({.path = std::move(path),
                      .stamp = bytes->stamp(),
                      .bytes = bytes,
                      .pinned = bytes->mapped() ? nullptr : bytes});
  if (bytes->mapped()) Keep(std::move(bytes));
}

absl::StatusOr<std::shared_ptr<const FileBytes>> FilePool::Get(std::size_t file) {
  std::string path;
  FileBytes::Stamp stamp;
  {
    MutexLock lock(mu_);
    const Entry& entry = entries_[file];
    if (auto bytes = entry.bytes.lock()) return bytes;
    path = entry.path;
    stamp = entry.stamp;
  }
  // Not under the lock: a file of a network takes its time.
  TY_ASSIGN_OR_RETURN(auto bytes, FileBytes::Map(path));
  if (bytes->stamp() != stamp) {
    return absl::FailedPreconditionError(StrCat(path, ": it has ", bytes->view().size(), " bytes and had ",
                                                stamp.size,
                                                ", or was replaced, since it was opened: open it again"));
  }
  MutexLock lock(mu_);
  Entry& entry = entries_[file];
  if (auto others = entry.bytes.lock()) return others;
  entry.bytes = bytes;
  Keep(bytes);
  return bytes;
}

void FilePool::Keep(std::shared_ptr<const FileBytes> bytes) {
  recent_.push_back(std::move(bytes));
  if (recent_.size() > kept_) recent_.pop_front();
}

}  // namespace trainyard::data
