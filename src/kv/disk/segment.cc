#include "kv/disk/segment.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/crc32c.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::kv {
namespace {

constexpr std::size_t kZeroChunk = 1 << 20;

// One line of text, so that `head` tells what the file is.
std::string Header(std::uint32_t id) {
  std::string header = absl::StrFormat("trainyard-segment 1 id %08u", id);
  StrAppend(header, " checksum ", Hex32(Crc32c(header)), "\n");
  header.resize(kSegmentHeader, ' ');
  return header;
}

bool AllZero(std::string_view bytes) {
  return bytes.empty() ||
         (bytes[0] == '\0' && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

// True if a whole record lies somewhere behind `from` that was written after the bytes at `from` were
// acknowledged.
bool LaterGroupBehind(std::string_view bytes, std::uint32_t segment, std::uint64_t from) {
  for (std::uint64_t at = from + 8; at + kRecordHeader <= bytes.size(); at += 8) {
    const std::string_view rest = bytes.substr(at);
    const absl::StatusOr<DecodedRecord> found = Decode(rest, segment, at);
    if (found.ok() && found->group > from) return true;
  }
  return false;
}

}  // namespace

std::string SegmentName(std::uint32_t id) { return absl::StrFormat("%08u.seg", id); }

Segment::Segment(std::unique_ptr<File> file, std::string path, std::uint32_t id, std::uint64_t size)
    : file_(std::move(file)), path_(std::move(path)), id_(id), size_(size) {}

absl::Status Segment::Damaged(std::uint64_t offset, std::string_view why) const {
  return absl::DataLossError(
      StrCat(path_, " is damaged at byte ", offset, " (", why, "): put back a copy of the store's folder"));
}

absl::StatusOr<std::shared_ptr<Segment>> Segment::Create(FileSystem& files, const std::string& folder,
                                                         std::uint32_t id, std::uint64_t size) {
  const std::string path = StrCat(folder, "/", SegmentName(id));
  TY_ASSIGN_OR_RETURN(auto file, files.Open(path, FileSystem::Mode::kCreate));
  const auto fill = [&]() -> absl::Status {
    const std::string zeros(std::min<std::uint64_t>(kZeroChunk, size), '\0');
    for (std::uint64_t at = 0; at < size; at += zeros.size()) {
      const auto n = std::min<std::uint64_t>(zeros.size(), size - at);
      TY_RETURN_IF_ERROR(file->WriteAt(at, std::string_view(zeros).substr(0, n)));
    }
    TY_RETURN_IF_ERROR(file->WriteAt(0, Header(id)));
    TY_RETURN_IF_ERROR(file->Sync());
    return files.SyncFolder(folder);
  };
  if (const absl::Status filled = fill(); !filled.ok()) {
    (void)files.Remove(path);  // or half a file would keep the disk full
    return filled;
  }
  return std::shared_ptr<Segment>(new Segment(std::move(file), path, id, size));
}

absl::StatusOr<std::shared_ptr<Segment>> Segment::Open(FileSystem& files, const std::string& folder,
                                                       const ManifestEntry& entry) {
  const std::string path = StrCat(folder, "/", SegmentName(entry.id));
  auto file = files.Open(path, FileSystem::Mode::kOpen);
  if (absl::IsNotFound(file.status())) {
    return absl::DataLossError(StrCat(path, " is missing: put back a copy of the store's folder"));
  }
  TY_RETURN_IF_ERROR(file);
  std::shared_ptr<Segment> segment(new Segment(*std::move(file), path, entry.id, entry.size));
  TY_ASSIGN_OR_RETURN(const std::uint64_t size, segment->file_->Size());
  if (size != entry.size) {
    return segment->Damaged(std::min(size, entry.size),
                            StrCat("it has ", size, " bytes instead of ", entry.size));
  }
  TY_ASSIGN_OR_RETURN(const std::string header, segment->file_->ReadAt(0, kSegmentHeader));
  if (header != Header(entry.id)) return segment->Damaged(0, "its first line is not that of this segment");
  return segment;
}

absl::StatusOr<Revision> Segment::LastRevision(FileSystem& files, const std::string& path) {
  const std::size_t slash = path.rfind('/') + 1;
  const auto id = ParseNumber<std::uint32_t>(std::string_view(path).substr(slash, path.rfind('.') - slash));
  if (!id) return 0;
  TY_ASSIGN_OR_RETURN(const auto file, files.Open(path, FileSystem::Mode::kOpen));
  TY_ASSIGN_OR_RETURN(const std::uint64_t size, file->Size());
  TY_ASSIGN_OR_RETURN(const std::string bytes, file->ReadAt(0, size));
  Revision newest = 0;
  for (std::uint64_t at = kSegmentHeader; at < bytes.size();) {
    const absl::StatusOr<DecodedRecord> decoded = Decode(std::string_view(bytes).substr(at), *id, at);
    if (!decoded.ok()) break;
    newest = std::max(newest, decoded->record.revision);
    at += decoded->length;
  }
  return newest;
}

absl::StatusOr<std::string> Segment::ReadValue(const Location& location) const {
  TY_ASSIGN_OR_RETURN(std::string bytes, file_->ReadAt(location.offset, location.length));
  const absl::StatusOr<DecodedRecord> decoded = Decode(bytes, id_, location.offset);
  if (!decoded.ok()) return Damaged(location.offset, Message(decoded.status()));
  const std::size_t size = decoded->record.value.size();
  bytes.erase(0, kRecordHeader + decoded->record.key.size());
  bytes.resize(size);
  return bytes;
}

absl::Status Segment::ForEach(std::uint64_t end, const Visit& visit) const {
  TY_ASSIGN_OR_RETURN(const std::string bytes, file_->ReadAt(0, end));
  std::uint64_t at = kSegmentHeader;
  while (at < end) {
    const absl::StatusOr<DecodedRecord> decoded = Decode(std::string_view(bytes).substr(at), id_, at);
    if (!decoded.ok()) return Damaged(at, Message(decoded.status()));
    visit(decoded->record, {.segment = id_, .length = decoded->length, .offset = at});
    at += decoded->length;
  }
  return absl::OkStatus();
}

absl::StatusOr<Segment::Tail> Segment::Recover(std::uint64_t acknowledged, const Visit& visit) const {
  TY_ASSIGN_OR_RETURN(const std::string bytes, file_->ReadAt(0, size_));
  Tail tail;
  std::uint64_t at = kSegmentHeader;
  std::vector<std::pair<Record, Location>> transaction;
  while (at < size_) {
    const absl::StatusOr<DecodedRecord> decoded = Decode(std::string_view(bytes).substr(at), id_, at);
    if (!decoded.ok()) break;
    transaction.emplace_back(decoded->record,
                             Location{.segment = id_, .length = decoded->length, .offset = at});
    at += decoded->length;
    if (!decoded->record.ends_txn) continue;
    for (const auto& [record, location] : transaction) visit(record, location);
    transaction.clear();
    tail.end = at;
  }
  if (acknowledged > tail.end) return Damaged(at, "records that were acknowledged are missing");
  tail.torn = !AllZero(std::string_view(bytes).substr(tail.end));
  if (tail.torn && LaterGroupBehind(bytes, id_, at)) return Damaged(at, "whole records follow");
  return tail;
}

absl::Status Segment::CloseAt(std::uint64_t end) {
  size_ = end;
  return Sync();
}

absl::Status Segment::Scrub(std::uint64_t from, std::uint64_t to) {
  TY_RETURN_IF_ERROR(Write(from, std::string(to - from, '\0')));
  return Sync();
}

}  // namespace trainyard::kv
