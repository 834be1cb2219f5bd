#include "kv/disk/disk_journal.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::kv {
namespace {

// A record from memory: what is staged, before it is on disk.
class StagedRecord final : public RecordSource {
 public:
  StagedRecord(std::string bytes, std::uint32_t segment) : bytes_(std::move(bytes)), segment_(segment) {}
  absl::StatusOr<std::string> ReadValue(const Location& location) const override {
    TY_ASSIGN_OR_RETURN(const DecodedRecord decoded, Decode(bytes_, segment_, location.offset));
    return std::string(decoded.record.value);
  }

 private:
  std::string bytes_;
  std::uint32_t segment_;
};

bool IsData(const Record& record) {
  return record.kind == Record::Kind::kPut || record.kind == Record::Kind::kDelete;
}

// The mark in the ACKED file.
struct Mark {
  std::uint32_t segment = 0;
  std::uint32_t checksum = 0;
  std::uint64_t end = 0;

  std::uint32_t Checksum() const {
    char bytes[12];
    std::memcpy(bytes, &segment, 4);
    std::memcpy(bytes + 4, &end, 8);
    return Crc32c({bytes, sizeof bytes});
  }
};
static_assert(sizeof(Mark) == 16);

bool IsOurs(std::string_view name) {
  return name == "LOCK" || name == "MANIFEST" || name == "MANIFEST.new" || name == "ACKED" ||
         name.ends_with(".seg");
}

}  // namespace

// ---- opening and closing

DiskJournal::DiskJournal(FileSystem& files, std::string folder, DiskJournalOptions options)
    : files_(files), folder_(std::move(folder)), options_(options) {}

absl::StatusOr<std::unique_ptr<DiskJournal>> DiskJournal::Open(FileSystem& files, std::string folder,
                                                               DiskJournalOptions options) {
  std::unique_ptr<DiskJournal> journal(new DiskJournal(files, std::move(folder), options));
  TY_RETURN_IF_ERROR(journal->ReadOrCreate());
  return journal;
}

DiskJournal::~DiskJournal() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
    prepare_.SignalAll();
  }
  if (preparer_.joinable()) preparer_.join();
  MutexLock lock(mu_);
  if (prepared_ != nullptr) (void)files_.Remove(prepared_->path());
}

absl::Status DiskJournal::ReadOrCreate() {
  if (options_.create) TY_RETURN_IF_ERROR(files_.MakeFolder(folder_));
  const absl::StatusOr<std::vector<std::string>> names = files_.List(folder_);
  const bool nothing = names.ok() && std::ranges::none_of(*names, [](const std::string& name) {
                         return name == "MANIFEST" || name.ends_with(".seg");
                       });
  if (!options_.create && (nothing || absl::IsNotFound(names.status()))) {
    return absl::NotFoundError(StrCat("there is no store in ", folder_, ": check the path"));
  }
  TY_RETURN_IF_ERROR(names);
  if (const auto foreign = std::ranges::find_if_not(*names, IsOurs); foreign != names->end() && nothing) {
    return absl::FailedPreconditionError(
        StrCat(folder_, " is not a store: it holds ", *foreign, "; name a new or an empty folder"));
  }
  auto lock = files_.Lock(StrCat(folder_, "/LOCK"));
  if (absl::IsFailedPrecondition(lock.status())) {
    return absl::FailedPreconditionError(StrCat("the store ", folder_, " ", lock.status().message()));
  }
  TY_RETURN_IF_ERROR(lock);
  lock_ = *std::move(lock);

  absl::StatusOr<Manifest> manifest = ReadManifest(files_, folder_);
  if (absl::IsNotFound(manifest.status())) return Create();
  TY_RETURN_IF_ERROR(manifest);
  MutexLock guard(mu_);
  manifest_ = *std::move(manifest);
  for (const ManifestEntry& entry : manifest_) {
    TY_ASSIGN_OR_RETURN(segments_[entry.id], Segment::Open(files_, folder_, entry));
    next_id_ = std::max(next_id_, entry.id + 1);
  }
  active_ = segments_[manifest_.back().id];
  return absl::OkStatus();
}

absl::Status DiskJournal::Create() {
  // A crash in here leaves a segment without records and no manifest. Anything more is a store that lost its
  // own.
  TY_ASSIGN_OR_RETURN(const std::vector<std::string> names, files_.List(folder_));
  for (const std::string& name : names) {
    if (!name.ends_with(".seg")) continue;
    TY_ASSIGN_OR_RETURN(const auto file, files_.Open(StrCat(folder_, "/", name), FileSystem::Mode::kOpen));
    TY_ASSIGN_OR_RETURN(const std::uint64_t size, file->Size());
    TY_ASSIGN_OR_RETURN(const std::string bytes, file->ReadAt(kSegmentHeader, size));
    if (bytes.find_first_not_of('\0') != std::string::npos) {
      return absl::DataLossError(StrCat(folder_, "/MANIFEST is missing, though ", name,
                                        " holds records: put back a copy of the folder"));
    }
  }
  TY_ASSIGN_OR_RETURN(auto segment, Segment::Create(files_, folder_, 1, options_.first_segment_bytes));
  const Manifest manifest = {{.id = 1, .size = segment->size(), .end = 0}};
  TY_RETURN_IF_ERROR(WriteManifest(files_, folder_, manifest));
  MutexLock lock(mu_);
  manifest_ = manifest;
  active_ = segment;
  segments_[1] = std::move(segment);
  next_id_ = 2;
  return absl::OkStatus();
}

// What a crash left behind between making a file and naming it in the manifest, or the other way round. It
// holds nothing that the manifest's own segments do not: a record that is newer says that the manifest is not
// this store's last.
absl::Status DiskJournal::RemoveStrays(Revision newest) {
  TY_ASSIGN_OR_RETURN(const std::vector<std::string> names, files_.List(folder_));
  std::vector<std::string> known = {"LOCK", "MANIFEST", "ACKED"};
  {
    MutexLock lock(mu_);
    for (const ManifestEntry& entry : manifest_) known.push_back(SegmentName(entry.id));
  }
  std::vector<std::string> strays;
  for (const std::string& name : names) {
    if (!IsOurs(name) || std::ranges::find(known, name) != known.end()) continue;
    const std::string path = StrCat(folder_, "/", name);
    TY_ASSIGN_OR_RETURN(const Revision last, Segment::LastRevision(files_, path));
    if (last > newest) {
      return absl::DataLossError(StrCat(path, " holds revision ", last, ", but MANIFEST knows only of ",
                                        newest,
                                        ": MANIFEST is out of date; put back a copy of the store's folder"));
    }
    strays.push_back(path);
  }
  for (const std::string& path : strays) TY_RETURN_IF_ERROR(files_.Remove(path));
  return absl::OkStatus();
}

absl::Status DiskJournal::Recover(const Segment::Visit& visit) {
  std::uint64_t live = 0;
  Revision newest = 0;
  const auto count = [&](const Record& record, const Location& location) {
    if (IsData(record)) live += location.length;
    newest = std::max(newest, record.revision);
    visit(record, location);
  };
  const std::string mark_path = StrCat(folder_, "/ACKED");
  absl::StatusOr<std::unique_ptr<File>> mark = files_.Open(mark_path, FileSystem::Mode::kOpen);
  if (absl::IsNotFound(mark.status())) mark = files_.Open(mark_path, FileSystem::Mode::kCreate);
  TY_RETURN_IF_ERROR(mark);
  acknowledged_ = *std::move(mark);

  // Nobody else has the journal yet, and what visits the records has locks of its own.
  Manifest manifest;
  absl::flat_hash_map<std::uint32_t, std::shared_ptr<Segment>> segments;
  {
    MutexLock lock(mu_);
    manifest = manifest_;
    segments = segments_;
  }
  for (const ManifestEntry& entry : manifest) {
    if (entry.end != 0) TY_RETURN_IF_ERROR(segments[entry.id]->ForEach(entry.end, count));
  }
  Segment& active = *segments[manifest.back().id];
  TY_ASSIGN_OR_RETURN(const Segment::Tail tail, active.Recover(ReadAcknowledged(active.id()), count));
  if (tail.torn) {
    log::Debug("dropped a write that was under way when the store was last used, and never acknowledged",
               {{"file", active.path()}, {"offset", tail.end}});
    TY_RETURN_IF_ERROR(active.Scrub(tail.end, active.size()));
  }
  TY_RETURN_IF_ERROR(RemoveStrays(newest));
  // What was read may be in the kernel's memory only: it was written by a process that was killed before its
  // sync. From here on others build on it.
  TY_RETURN_IF_ERROR(active.Sync());
  TY_RETURN_IF_ERROR(files_.SyncFolder(folder_));
  Acknowledge(active.id(), tail.end);
  MutexLock lock(mu_);
  active_end_ = tail.end;
  live_bytes_ = live;
  if (options_.prepare_in_background) preparer_ = std::thread([this] { PrepareSegments(); });
  return absl::OkStatus();
}

// The mark is not synced: it outlives this process, not always the power. A stale one only says less.
void DiskJournal::Acknowledge(std::uint32_t segment, std::uint64_t end) {
  Mark mark{.segment = segment, .end = end};
  mark.checksum = mark.Checksum();
  (void)acknowledged_->WriteAt(0, {reinterpret_cast<const char*>(&mark), sizeof mark});
}

std::uint64_t DiskJournal::ReadAcknowledged(std::uint32_t segment) const {
  const absl::StatusOr<std::string> bytes = acknowledged_->ReadAt(0, sizeof(Mark));
  Mark mark;
  if (!bytes.ok() || bytes->size() != sizeof mark) return 0;
  std::memcpy(&mark, bytes->data(), sizeof mark);
  return mark.checksum == mark.Checksum() && mark.segment == segment ? mark.end : 0;
}

// ---- writing

std::uint64_t DiskJournal::NextSize() const {
  return std::clamp(active_->size() * 2, options_.first_segment_bytes, options_.max_segment_bytes);
}

DiskJournal::Part DiskJournal::NextPart(std::size_t bytes) {
  const std::uint64_t needed = kSegmentHeader + bytes;
  Part part;
  if (prepared_ != nullptr && prepared_->size() >= needed) {
    part.segment = std::move(prepared_);
    part.id = part.segment->id();
    part.size = part.segment->size();
  } else {
    part.id = next_id_++;
    part.size = std::max(NextSize(), needed);
  }
  return part;
}

void DiskJournal::Stage(std::span<const Record> records, std::vector<Location>& locations) {
  MutexLock lock(mu_);
  std::size_t total = 0;
  for (const Record& record : records) total += EncodedLength(record);
  if (staged_.empty()) {
    staged_.push_back({.segment = active_,
                       .id = active_->id(),
                       .size = active_->size(),
                       .start = active_end_,
                       .bytes = {}});
  }
  // A transaction never straddles two segments, so a sealed one never ends in half of one.
  if (staged_.back().end() + total > staged_.back().size) staged_.push_back(NextPart(total));
  Part& part = staged_.back();
  for (const Record& record : records) {
    const std::uint64_t offset = part.end();
    Encode(record, {.segment = part.id, .offset = offset, .group = part.start}, part.bytes);
    const auto length = static_cast<std::uint32_t>(part.end() - offset);
    locations.push_back({.segment = part.id, .length = length, .offset = offset});
    if (IsData(record)) staged_live_bytes_ += length;
  }
}

absl::Status DiskJournal::Flush() {
  std::vector<Part> parts;
  std::uint64_t live = 0;
  {
    MutexLock lock(mu_);
    parts.swap(staged_);
    live = std::exchange(staged_live_bytes_, 0);
    if (!broken_.ok()) return broken_;
  }
  TY_RETURN_IF_ERROR(WriteParts(parts));
  Acknowledge(parts.back().id, parts.back().end());
  MutexLock lock(mu_);
  live_bytes_ += live;
  WantNextSegment();
  return absl::OkStatus();
}

absl::Status DiskJournal::WriteParts(std::vector<Part>& parts) {
  bool activated = false;
  const auto write = [&]() -> absl::Status {
    // What needs room on the disk comes first, while there is nothing to take back.
    for (Part& part : parts) {
      if (part.segment != nullptr) continue;
      auto made = Segment::Create(files_, folder_, part.id, part.size);
      // On a disk that is nearly full, one that is just large enough may still fit.
      if (absl::IsResourceExhausted(made.status()))
        made = Segment::Create(files_, folder_, part.id, part.end());
      TY_RETURN_IF_ERROR(made);
      part.segment = *std::move(made);
    }
    TY_RETURN_IF_ERROR(WritePart(parts.front()));
    for (std::size_t i = 1; i < parts.size(); ++i) {
      TY_RETURN_IF_ERROR(Activate(parts[i].segment));
      activated = true;
      TY_RETURN_IF_ERROR(WritePart(parts[i]));
    }
    return absl::OkStatus();
  };
  const absl::Status status = write();
  if (status.ok()) return status;
  if (absl::IsDataLoss(status) || activated) return Break(status);
  // Nothing but the first part can have reached the disk. Without it, it is as if this had not been tried.
  const Part& first = parts.front();
  if (const absl::Status scrubbed = first.segment->Scrub(first.start, first.end()); !scrubbed.ok()) {
    return Break(scrubbed);
  }
  for (std::size_t i = 1; i < parts.size(); ++i) {
    if (parts[i].segment != nullptr) (void)files_.Remove(parts[i].segment->path());
  }
  {
    MutexLock lock(mu_);
    active_end_ = first.start;
  }
  if (!absl::IsResourceExhausted(status)) return status;
  return absl::ResourceExhaustedError(
      StrCat(status.message(), ": nothing was changed; free some space and try again"));
}

absl::Status DiskJournal::WritePart(const Part& part) {
  if (!part.bytes.empty()) {
    TY_RETURN_IF_ERROR(part.segment->Write(part.start, part.bytes));
    // The kernel may have dropped the pages that it could not write: a second try would prove nothing.
    if (const absl::Status synced = part.segment->Sync(); !synced.ok())
      return absl::DataLossError(synced.message());
  }
  MutexLock lock(mu_);
  active_end_ = part.end();
  return absl::OkStatus();
}

// Seals the active segment where it ends now.
absl::Status DiskJournal::Activate(const std::shared_ptr<Segment>& segment) {
  Manifest manifest;
  {
    MutexLock lock(mu_);
    manifest = manifest_;
    manifest.back().end = active_end_;
  }
  manifest.push_back({.id = segment->id(), .size = segment->size(), .end = 0});
  TY_RETURN_IF_ERROR(WriteManifest(files_, folder_, manifest));
  MutexLock lock(mu_);
  manifest_ = std::move(manifest);
  segments_[segment->id()] = segment;
  active_ = segment;
  active_end_ = kSegmentHeader;
  return absl::OkStatus();
}

absl::Status DiskJournal::Break(const absl::Status& why) {
  MutexLock lock(mu_);
  broken_ = absl::DataLossError(StrCat("the store ", folder_,
                                       " takes no more writes, because what is on disk is uncertain (",
                                       why.message(), "): check the disk and open the store again"));
  return broken_;
}

std::shared_ptr<const RecordSource> DiskJournal::Find(const Location& location) const {
  MutexLock lock(mu_);
  for (const Part& part : staged_) {
    if (part.id != location.segment || location.offset < part.start) continue;
    return std::make_shared<StagedRecord>(part.bytes.substr(location.offset - part.start, location.length),
                                          part.id);
  }
  const auto it = segments_.find(location.segment);
  TY_CHECK(it != segments_.end(), "a location is of a segment that is here");
  return it->second;
}

void DiskJournal::Release(const Location& location) {
  MutexLock lock(mu_);
  live_bytes_ -= location.length;
}

// ---- the next segment, made in the background

void DiskJournal::WantNextSegment() {
  if (active_end_ < active_->size() / 2 || prepared_ != nullptr || prepared_for_ == active_->id()) return;
  prepared_for_ = active_->id();
  prepare_size_ = NextSize();
  prepare_.SignalAll();
}

void DiskJournal::PrepareSegments() {
  while (true) {
    std::uint32_t id = 0;
    std::uint64_t size = 0;
    {
      MutexLock lock(mu_);
      while (!stopping_ && prepare_size_ == 0) prepare_.Wait(mu_);
      if (stopping_) return;
      size = std::exchange(prepare_size_, 0);
      id = next_id_++;
    }
    // When it fails, so will the write that needs it, and that one says so to its caller.
    absl::StatusOr<std::shared_ptr<Segment>> segment = Segment::Create(files_, folder_, id, size);
    if (!segment.ok()) continue;
    MutexLock lock(mu_);
    if (prepared_ == nullptr) {
      prepared_ = *std::move(segment);
    } else {
      (void)files_.Remove((*segment)->path());
    }
  }
}

// ---- rewriting

bool DiskJournal::WorthRewriting() const {
  MutexLock lock(mu_);
  std::uint64_t total = active_end_;
  for (const ManifestEntry& entry : manifest_) total += entry.end;
  return total > 2 * live_bytes_ + options_.first_segment_bytes;
}

absl::Status DiskJournal::Seal() {
  Part next;
  {
    MutexLock lock(mu_);
    if (!broken_.ok()) return broken_;
    sealed_ = manifest_.size() - 1;
    if (active_end_ == kSegmentHeader) return absl::OkStatus();  // all there is lies before it already
    next = NextPart(0);
  }
  if (next.segment == nullptr) {
    TY_ASSIGN_OR_RETURN(next.segment, Segment::Create(files_, folder_, next.id, next.size));
  }
  if (const absl::Status activated = Activate(next.segment); !activated.ok()) {
    if (absl::IsDataLoss(activated)) return Break(activated);
    (void)files_.Remove(next.segment->path());
    return activated;
  }
  Acknowledge(next.id, kSegmentHeader);
  MutexLock lock(mu_);
  sealed_ = manifest_.size() - 1;
  return absl::OkStatus();
}

absl::StatusOr<DiskJournal::Rewritten> DiskJournal::Copy(std::span<const Record> heads,
                                                         std::span<LiveRecord> live) {
  constexpr std::size_t kChunk = 1 << 20;
  Rewritten rewritten;
  std::string chunk;
  std::uint64_t chunk_start = 0;
  std::uint64_t end = 0;

  const auto write = [&]() -> absl::Status {
    TY_RETURN_IF_ERROR(rewritten.segments.back()->Write(chunk_start, chunk));
    chunk_start += chunk.size();
    chunk.clear();
    return absl::OkStatus();
  };
  const auto close = [&]() -> absl::Status {
    if (rewritten.segments.empty()) return absl::OkStatus();
    TY_RETURN_IF_ERROR(write());
    Segment& segment = *rewritten.segments.back();
    TY_RETURN_IF_ERROR(segment.CloseAt(end));
    rewritten.entries.push_back({.id = segment.id(), .size = end, .end = end});
    return absl::OkStatus();
  };
  const auto add = [&](const Record& record) -> absl::StatusOr<Location> {
    const std::size_t length = EncodedLength(record);
    if (rewritten.segments.empty() || end + length > options_.max_segment_bytes) {
      TY_RETURN_IF_ERROR(close());
      std::uint32_t id = 0;
      {
        MutexLock lock(mu_);
        id = next_id_++;
      }
      TY_ASSIGN_OR_RETURN(auto segment, Segment::Create(files_, folder_, id, kSegmentHeader));
      rewritten.segments.push_back(std::move(segment));
      chunk_start = end = kSegmentHeader;
    }
    const Location location{.segment = rewritten.segments.back()->id(),
                            .length = static_cast<std::uint32_t>(length),
                            .offset = end};
    Encode(record, {.segment = location.segment, .offset = end, .group = kSegmentHeader}, chunk);
    end += length;
    if (chunk.size() >= kChunk) TY_RETURN_IF_ERROR(write());
    return location;
  };
  const auto copy = [&]() -> absl::Status {
    for (const Record& head : heads) TY_RETURN_IF_ERROR(add(head));
    for (LiveRecord& item : live) {
      std::string value;
      if (item.record.kind == Record::Kind::kPut) {
        TY_ASSIGN_OR_RETURN(value, Find(item.location)->ReadValue(item.location));
      }
      item.record.key = item.key;
      item.record.value = value;
      TY_ASSIGN_OR_RETURN(item.location, add(item.record));
      item.record.key = item.record.value = {};
    }
    return close();
  };

  if (const absl::Status copied = copy(); !copied.ok()) {
    for (const auto& segment : rewritten.segments) (void)files_.Remove(segment->path());
    return copied;
  }
  return rewritten;
}

absl::Status DiskJournal::Adopt(Rewritten rewritten) {
  Manifest manifest = std::move(rewritten.entries);
  {
    MutexLock lock(mu_);
    if (!broken_.ok()) return broken_;
    manifest.insert(manifest.end(), manifest_.begin() + static_cast<std::ptrdiff_t>(sealed_),
                    manifest_.end());
  }
  if (const absl::Status written = WriteManifest(files_, folder_, manifest); !written.ok()) {
    if (absl::IsDataLoss(written)) return Break(written);
    for (const auto& segment : rewritten.segments) (void)files_.Remove(segment->path());
    return written;
  }
  MutexLock lock(mu_);
  for (std::size_t i = 0; i < sealed_; ++i) old_.push_back(segments_[manifest_[i].id]);
  manifest_ = std::move(manifest);
  for (auto& segment : rewritten.segments) segments_[segment->id()] = std::move(segment);
  return absl::OkStatus();
}

void DiskJournal::RemoveOld() {
  std::vector<std::shared_ptr<Segment>> old;
  {
    MutexLock lock(mu_);
    old.swap(old_);
    for (const auto& segment : old) segments_.erase(segment->id());
  }
  for (const auto& segment : old) (void)files_.Remove(segment->path());  // or the next start does
}

}  // namespace trainyard::kv
