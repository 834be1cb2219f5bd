// A journal on disk: segments of checksummed records, one of them active, and a manifest that names them.
//
//   folder/LOCK            held by the one process that has the store open; its pid inside
//   folder/MANIFEST        the segments, in order (kv/disk/manifest.h)
//   folder/00000007.seg    records (kv/disk/segment.h, kv/disk/record_codec.h)
//   folder/ACKED           how far the active segment was acknowledged; see Acknowledge()
//
// A group of transactions is one write and one fdatasync. Segments are filled with zeros before they are
// used, and the next one is made ready in the background.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "kv/disk/file_system.h"
#include "kv/disk/manifest.h"
#include "kv/disk/segment.h"
#include "kv/journal.h"

namespace trainyard::kv {

struct DiskJournalOptions {
  bool create = true;                           // make a store where there is none
  std::uint64_t first_segment_bytes = 1 << 20;  // each is twice the one before
  std::uint64_t max_segment_bytes = 64 << 20;
  bool prepare_in_background = true;  // the next segment; else it is made when it is needed
};

class DiskJournal final : public Journal {
 public:
  // Takes the lock and makes or reads the manifest.
  static absl::StatusOr<std::unique_ptr<DiskJournal>> Open(FileSystem& files, std::string folder,
                                                           DiskJournalOptions options);
  ~DiskJournal() override;

  // Once, before anything else: every record kept, in order.
  absl::Status Recover(const Segment::Visit& visit);

  void Stage(std::span<const Record> records, std::vector<Location>& locations) override;
  absl::Status Flush() override;
  std::shared_ptr<const RecordSource> Find(const Location& location) const override;
  void Release(const Location& location) override;

  // Rewriting: what is live is copied together into new segments, and the old ones go. Seal() and Adopt() may
  // not run beside Stage() and Flush(); Copy() may.
  struct LiveRecord {
    std::string key;
    Record record;      // without key and value
    Location location;  // replaced by Copy()
  };
  struct Rewritten {
    std::vector<std::shared_ptr<Segment>> segments;
    Manifest entries;
  };
  bool WorthRewriting() const;
  // From now on new records go to a new segment.
  absl::Status Seal();
  // `heads` first, then the live records with their values.
  absl::StatusOr<Rewritten> Copy(std::span<const Record> heads, std::span<LiveRecord> live);
  // The new segments take the place of all that were sealed when Seal() returned.
  absl::Status Adopt(Rewritten rewritten);
  // After Adopt(), when nobody looks for records in the old segments any more.
  void RemoveOld();

 private:
  // What is staged for one segment.
  struct Part {
    std::shared_ptr<Segment> segment;  // null: to be made, with the id and size that follow
    std::uint32_t id = 0;
    std::uint64_t size = 0;
    std::uint64_t start = kSegmentHeader;
    std::string bytes;
    std::uint64_t end() const { return start + bytes.size(); }
  };

  DiskJournal(FileSystem& files, std::string folder, DiskJournalOptions options);
  absl::Status ReadOrCreate();
  absl::Status Create();
  absl::Status RemoveStrays(Revision newest);
  std::uint64_t ReadAcknowledged(std::uint32_t segment) const;
  void Acknowledge(std::uint32_t segment, std::uint64_t end);
  std::uint64_t NextSize() const TY_REQUIRES(mu_);
  Part NextPart(std::size_t bytes) TY_REQUIRES(mu_);
  absl::Status WriteParts(std::vector<Part>& parts);
  absl::Status WritePart(const Part& part);
  absl::Status Activate(const std::shared_ptr<Segment>& segment);
  absl::Status Break(const absl::Status& why);
  void WantNextSegment() TY_REQUIRES(mu_);
  void PrepareSegments();

  FileSystem& files_;
  const std::string folder_;
  const DiskJournalOptions options_;
  std::unique_ptr<File> lock_;
  std::unique_ptr<File> acknowledged_;

  mutable Mutex mu_;
  absl::flat_hash_map<std::uint32_t, std::shared_ptr<Segment>> segments_ TY_GUARDED_BY(mu_);
  Manifest manifest_ TY_GUARDED_BY(mu_);
  std::shared_ptr<Segment> active_ TY_GUARDED_BY(mu_);
  std::uint64_t active_end_ TY_GUARDED_BY(mu_) = kSegmentHeader;
  std::uint32_t next_id_ TY_GUARDED_BY(mu_) = 1;
  std::uint64_t live_bytes_ TY_GUARDED_BY(mu_) = 0;
  std::uint64_t staged_live_bytes_ TY_GUARDED_BY(mu_) = 0;
  std::vector<Part> staged_ TY_GUARDED_BY(mu_);
  absl::Status broken_ TY_GUARDED_BY(mu_);
  std::size_t sealed_ TY_GUARDED_BY(mu_) = 0;  // how many manifest entries a rewriting replaces
  std::vector<std::shared_ptr<Segment>> old_ TY_GUARDED_BY(mu_);  // not needed any more

  // The next segment, made while there is still room in the active one.
  CondVar prepare_;
  std::shared_ptr<Segment> prepared_ TY_GUARDED_BY(mu_);
  std::uint64_t prepare_size_ TY_GUARDED_BY(mu_) = 0;  // not 0: wanted
  std::uint32_t prepared_for_ TY_GUARDED_BY(mu_) = 0;  // the active segment beside which it was last tried
  bool stopping_ TY_GUARDED_BY(mu_) = false;
  std::thread preparer_;
};

}  // namespace trainyard::kv
