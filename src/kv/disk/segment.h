// One file of records. Its size is fixed when it is made, and what holds no record yet is zero: a file of
// another size has been tampered with, and a write into it needs no change of the file system's own books.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kv/disk/file_system.h"
#include "kv/disk/manifest.h"
#include "kv/disk/record_codec.h"
#include "kv/journal.h"

namespace trainyard::kv {

inline constexpr std::uint64_t kSegmentHeader = 64;  // where the first record starts

std::string SegmentName(std::uint32_t id);  // "00000007.seg"

class Segment final : public RecordSource {
 public:
  // Durable, zeros behind its header.
  static absl::StatusOr<std::shared_ptr<Segment>> Create(FileSystem& files, const std::string& folder,
                                                         std::uint32_t id, std::uint64_t size);
  // DataLoss if it is missing, or not the file that the manifest means.
  static absl::StatusOr<std::shared_ptr<Segment>> Open(FileSystem& files, const std::string& folder,
                                                       const ManifestEntry& entry);

  // The newest revision of the whole records at the start of any segment file, 0 if there are none.
  static absl::StatusOr<Revision> LastRevision(FileSystem& files, const std::string& path);

  absl::StatusOr<std::string> ReadValue(const Location& location) const override;

  using Visit = std::function<void(const Record&, const Location&)>;
  // All records of a sealed segment, which end at `end`: each must be there.
  absl::Status ForEach(std::uint64_t end, const Visit& visit) const;

  // What the last segment of a store that was not closed holds.
  struct Tail {
    std::uint64_t end = kSegmentHeader;  // of the last whole transaction
    bool torn = false;                   // something lies behind it that was never acknowledged
  };
  // The records of whole transactions. What was being written when the power went is passed over; but what
  // had been acknowledged must be there: up to `acknowledged`, and before any group that was written later.
  absl::StatusOr<Tail> Recover(std::uint64_t acknowledged, const Visit& visit) const;

  absl::Status Write(std::uint64_t offset, std::string_view bytes) { return file_->WriteAt(offset, bytes); }
  absl::Status Sync() { return file_->Sync(); }
  // For one that was made with nothing but its header and written to behind it: durable, and it ends at
  // `end`.
  absl::Status CloseAt(std::uint64_t end);
  // Puts zeros where a write failed or was torn, durably.
  absl::Status Scrub(std::uint64_t from, std::uint64_t to);

  std::uint32_t id() const { return id_; }
  std::uint64_t size() const { return size_; }
  const std::string& path() const { return path_; }

 private:
  Segment(std::unique_ptr<File> file, std::string path, std::uint32_t id, std::uint64_t size);
  absl::Status Damaged(std::uint64_t offset, std::string_view why) const;

  std::unique_ptr<File> file_;
  std::string path_;
  std::uint32_t id_;
  std::uint64_t size_;
};

}  // namespace trainyard::kv
