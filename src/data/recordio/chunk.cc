#include "data/recordio/chunk.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/status.h"
#include "base/text.h"
#include "data/crc32.h"
#include "data/damage.h"
#include "data/endian.h"
#include "data/recordio/snappy_block.h"
#include "data/recordio/snappy_frames.h"

namespace trainyard::data {
namespace {

// What is read twice, to verify it and to use it, is read in blocks that the processor's caches still have
// the second time.
constexpr std::size_t kBlock = 64 << 10;
constexpr std::uint64_t kLeastRoom = 4096;  // for unpacking what is of unknown size

std::uint32_t Checksum(Layout layout, std::string_view bytes, std::uint32_t seed) {
  return layout == Layout::kNew ? Crc32(bytes, seed) : Crc32c(bytes, seed);
}

absl::Status Mismatch() { return absl::DataLossError("the checksum of the chunk does not match"); }

// Finds where records begin, as the bytes of a payload become known.
class RecordWalk {
 public:
  // There should be so many records, in `most` bytes at most.
  RecordWalk(std::uint32_t records, std::uint64_t most, std::vector<std::uint32_t>& offsets)
      : records_(records), offsets_(offsets) {
    offsets_.clear();
    offsets_.reserve(std::min<std::uint64_t>(records, most / 4) + 1);
  }

  // There are at least so many bytes.
  void Advance(const char* payload, std::size_t known) {
    while (next_ + 4 <= known && offsets_.size() < records_) {
      offsets_.push_back(static_cast<std::uint32_t>(next_));
      next_ += 4 + std::uint64_t{LoadLittle32(payload + next_)};
    }
  }

  // There are exactly so many.
  absl::Status Finish(const char* payload, std::size_t size) {
    Advance(payload, size);
    if (offsets_.size() != records_ || next_ != size) {
      return absl::DataLossError(
          StrCat("the header of the chunk says that it has ", records_, " records, but ", offsets_.size(),
                 next_ < size ? " leave bytes over" : " need more bytes than there are"));
    }
    offsets_.push_back(static_cast<std::uint32_t>(size));
    return absl::OkStatus();
  }

 private:
  const std::uint32_t records_;
  std::vector<std::uint32_t>& offsets_;
  std::uint64_t next_ = 0;
};

absl::Status TooLarge(std::uint64_t bytes, std::uint64_t most) {
  return absl::DataLossError(StrCat("the chunk unpacks to ", bytes, " bytes or more, and at most ", most,
                                    " are allowed: raise max_chunk_bytes if it is right"));
}

// Of the frames that are still to come.
absl::StatusOr<std::uint64_t> UnpackedSize(SnappyFrameReader frames) {
  std::uint64_t size = 0;
  for (SnappyFrame frame; frames.Next(frame);) size += frame.block.unpacked;
  TY_RETURN_IF_ERROR(frames.status());
  return size;
}

}  // namespace

absl::Status LoadedChunk::Load(std::string_view file, std::uint64_t offset, std::uint64_t max_bytes) {
  size_ = 0;
  TY_ASSIGN_OR_RETURN(const ChunkHeader header, ParseChunkHeader(file, offset, max_bytes));
  const std::string_view payload = file.substr(offset + kChunkHeaderBytes, header.bytes);
  const absl::Status status = header.compressor == Compressor::kNone ? LoadPlain(payload, header)
                                                                     : Unpack(payload, header, max_bytes);
  if (!status.ok()) return DamageAt(offset, Message(status));
  size_ = header.records;
  return absl::OkStatus();
}

absl::Status LoadedChunk::LoadPlain(std::string_view payload, const ChunkHeader& header) {
  payload_ = payload.data();
  RecordWalk walk(header.records, payload.size(), scratch_.offsets);
  std::uint32_t checksum = 0;
  for (std::size_t at = 0; at < payload.size(); at += kBlock) {
    const std::string_view block = payload.substr(at, kBlock);
    checksum = Checksum(header.layout, block, checksum);
    walk.Advance(payload_, at + block.size());
  }
  if (checksum != header.checksum) return Mismatch();
  return walk.Finish(payload_, payload.size());
}

absl::Status LoadedChunk::Unpack(std::string_view packed, const ChunkHeader& header,
                                 std::uint64_t max_bytes) {
  // Unpacked from a copy: somebody may write to the file at any time, and what has been verified must be what
  // is unpacked.
  scratch_.packed.Reserve(packed.size() + kSnappySlop);
  char* copy = scratch_.packed.data();
  std::uint32_t checksum = 0;
  for (std::size_t at = 0; at < packed.size(); at += kBlock) {
    const std::size_t n = std::min(kBlock, packed.size() - at);
    std::memcpy(copy + at, packed.data() + at, n);
    checksum = Checksum(header.layout, {copy + at, n}, checksum);
  }
  if (checksum != header.checksum) return Mismatch();
  std::memset(copy + packed.size(), 0, kSnappySlop);
  packed = {copy, packed.size()};
  if (header.compressor == Compressor::kGzip) return UnpackGzip(packed, header, max_bytes);
  return header.layout == Layout::kNew ? UnpackFrames(packed, header, max_bytes)
                                       : UnpackBlock(packed, header, max_bytes);
}

absl::Status LoadedChunk::UnpackFrames(std::string_view packed, const ChunkHeader& header,
                                       std::uint64_t max_bytes) {
  ByteBuffer& out = scratch_.unpacked;
  RecordWalk walk(header.records, packed.size() * kMaxSnappyRatio, scratch_.offsets);
  std::size_t done = 0;
  SnappyFrame frame;
  SnappyFrameReader frames(packed);
  SnappyUnpacker unpacker(scratch_.aside);
  while (frames.Next(frame)) {
    // Most chunks are as large as the one before, and the sizes of their frames need not be added up.
    if (done + frame.block.unpacked + kSnappySlop > out.capacity()) {
      TY_ASSIGN_OR_RETURN(const std::uint64_t rest, UnpackedSize(frames));
      const std::uint64_t total = done + frame.block.unpacked + rest;
      if (total > max_bytes) return TooLarge(total, max_bytes);
      TY_RETURN_IF_ERROR(unpacker.Flush());  // it knows where bytes are to be
      out.Reserve(total + kSnappySlop, done);
    }
    TY_RETURN_IF_ERROR(unpacker.Add(frame, out.data() + done));
    done += frame.block.unpacked;
    if (unpacker.empty()) walk.Advance(out.data(), done);
  }
  TY_RETURN_IF_ERROR(unpacker.Flush());
  TY_RETURN_IF_ERROR(frames.status());
  if (done > max_bytes) return TooLarge(done, max_bytes);
  payload_ = out.data();
  return walk.Finish(payload_, done);
}

absl::Status LoadedChunk::UnpackBlock(std::string_view packed, const ChunkHeader& header,
                                      std::uint64_t max_bytes) {
  SnappyBlock block;
  if (!ParseSnappyBlock(packed, block)) {
    return absl::DataLossError("the snappy block does not say how long it is");
  }
  if (block.unpacked > max_bytes) return TooLarge(block.unpacked, max_bytes);
  scratch_.unpacked.Reserve(block.unpacked + kSnappySlop);
  payload_ = scratch_.unpacked.data();
  if (!UnpackSnappyBlock(block, scratch_.unpacked.data())) {
    return absl::DataLossError("the snappy block cannot be unpacked");
  }
  return RecordWalk(header.records, block.unpacked, scratch_.offsets).Finish(payload_, block.unpacked);
}

absl::Status LoadedChunk::UnpackGzip(std::string_view packed, const ChunkHeader& header,
                                     std::uint64_t max_bytes) {
  // gzip's last four bytes are the size; if that is false, the room grows with what really comes.
  const std::uint64_t hint = LoadLittle32(packed.data() + packed.size() - 4);
  const std::uint64_t most = std::min(max_bytes, packed.size() * kMaxGzipRatio);
  ByteBuffer& out = scratch_.unpacked;
  // One byte more than expected, so that a right hint needs no growing to see the end.
  out.Reserve(std::max(std::min(hint, most) + 1, kLeastRoom));
  GzipReader gzip(packed);
  std::size_t done = 0;
  while (true) {
    TY_ASSIGN_OR_RETURN(const std::size_t n, gzip.Read(out.data() + done, out.capacity() - done));
    done += n;
    if (done < out.capacity()) break;
    if (done > max_bytes) return TooLarge(done, max_bytes);
    out.Reserve(std::min<std::uint64_t>(2 * std::uint64_t{done}, max_bytes + 1), done);
  }
  if (done > max_bytes) return TooLarge(done, max_bytes);
  payload_ = out.data();
  return RecordWalk(header.records, done, scratch_.offsets).Finish(payload_, done);
}

ChunkEncoder::ChunkEncoder(Compressor compressor) : compressor_(compressor) {}

void ChunkEncoder::Begin() {
  chunk_.assign(kChunkHeaderBytes, '\0');
  record_bytes_ = 0;
  if (compressor_ == Compressor::kSnappy) AppendSnappyMark(chunk_);
  if (compressor_ == Compressor::kGzip) gzip_.emplace(chunk_);
}

void ChunkEncoder::Append(std::string_view bytes) {
  switch (compressor_) {
    case Compressor::kNone:
      chunk_ += bytes;
      break;
    case Compressor::kSnappy:
      AppendSnappyFrames(bytes, chunk_);
      break;
    case Compressor::kGzip:
      gzip_->Add(bytes);
      break;
  }
}

void ChunkEncoder::Add(std::string_view record) {
  if (empty()) Begin();
  char length[4];
  StoreLittle32(static_cast<std::uint32_t>(record.size()), length);
  Append({length, sizeof length});
  Append(record);
  ++records_;
  record_bytes_ += record.size();
}

std::string_view ChunkEncoder::Finish() {
  TY_CHECK(!empty() && unpacked_bytes() <= kMaxChunkBytes, "a chunk is neither empty nor too large");
  if (gzip_) gzip_->Finish();
  const std::string_view payload = std::string_view(chunk_).substr(kChunkHeaderBytes);
  StoreChunkHeader({.compressor = compressor_,
                    .checksum = Crc32(payload),
                    .bytes = static_cast<std::uint32_t>(payload.size()),
                    .records = records_},
                   chunk_.data());
  gzip_.reset();
  records_ = 0;
  record_bytes_ = 0;
  return chunk_;
}

}  // namespace trainyard::data
