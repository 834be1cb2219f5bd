#include "data/recordio/verifier.h"

#include <algorithm>

namespace trainyard::data {
namespace {

// As it lies in the file.
constexpr std::string_view kMagic("\x04\x03\x02\x01", 4);

}  // namespace

absl::Status ChunkVerifier::Next() {
  const std::uint64_t start = offset_;
  const auto header = ParseChunkHeader(file_, start, max_chunk_bytes_);
  if (!header.ok()) {
    offset_ = FindChunk(start + 1);
    return header.status();
  }
  const std::uint64_t end = start + kChunkHeaderBytes + header->bytes;
  absl::Status status = chunk_.Load(file_, start, max_chunk_bytes_);
  if (!status.ok()) {
    // No checksum covers the header, so its word for the end may be what is wrong.
    offset_ = BeginsChunk(end) ? end : FindChunk(start + 1);
    return status;
  }
  offset_ = end;
  ++chunks_;
  records_ += chunk_.size();
  return status;
}

bool ChunkVerifier::BeginsChunk(std::uint64_t offset) const {
  const std::string_view rest = file_.substr(offset);
  // The last chunk may be cut within its first bytes.
  return rest.substr(0, kMagic.size()) == kMagic.substr(0, std::min(kMagic.size(), rest.size()));
}

std::uint64_t ChunkVerifier::FindChunk(std::uint64_t from) {
  for (;; ++from) {
    from = file_.find(kMagic, from);
    if (from == std::string_view::npos) return file_.size();
    if (IsChunk(from)) return from;
  }
}

bool ChunkVerifier::IsChunk(std::uint64_t offset) {
  const auto header = ParseChunkHeader(file_, offset, max_chunk_bytes_);
  if (!header.ok()) return false;
  // What is like a header on both its ends is one, as good as certainly. Where what follows is damaged too,
  // the checksum tells; but bytes that are made so that every one of them begins a chunk are not read for
  // each.
  if (BeginsChunk(offset + kChunkHeaderBytes + header->bytes)) return true;
  if (header->bytes > patience_) return false;
  patience_ -= header->bytes;
  return chunk_.Load(file_, offset, max_chunk_bytes_).ok();
}

}  // namespace trainyard::data
