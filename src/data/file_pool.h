// The files of a source that are mapped at the moment: some of them, so that a source can have more files
// than a process may have open.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "data/file_bytes.h"

namespace trainyard::data {

// Any number of threads may Get(); Add() is called before.
class FilePool {
 public:
  // So many stay mapped after their last use. What is in use is mapped besides.
  explicit FilePool(std::size_t kept = 64) : kept_(kept) {}

  // Files get the numbers 0, 1, 2...
  void Add(std::string path, std::shared_ptr<const FileBytes> bytes);

  // The file as it was when it was added. Errors name the file; FailedPrecondition: it was changed since.
  absl::StatusOr<std::shared_ptr<const FileBytes>> Get(std::size_t file);

 private:
  struct Entry {
    std::string path;
    FileBytes::Stamp stamp;
    std::weak_ptr<const FileBytes> bytes;
    std::shared_ptr<const FileBytes> pinned;  // what is in memory, and cannot be mapped again
  };

  void Keep(std::shared_ptr<const FileBytes> bytes) TY_REQUIRES(mu_);

  const std::size_t kept_;
  Mutex mu_;
  std::vector<Entry> entries_ TY_GUARDED_BY(mu_);
  std::deque<std::shared_ptr<const FileBytes>> recent_ TY_GUARDED_BY(mu_);
};

}  // namespace trainyard::data
