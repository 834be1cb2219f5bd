// One chunk of a RecordIO file, verified and taken apart; and one being put together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "data/gzip.h"
#include "data/recordio/layout.h"
#include "data/scratch.h"

namespace trainyard::data {

// The records of one chunk. They are in `file` itself where it is not compressed, else in the scratch.
class LoadedChunk {
 public:
  // `scratch` outlives it, and is used by nobody else.
  explicit LoadedChunk(Scratch& scratch) : scratch_(scratch) {}

  // Verifies the whole of the chunk at `offset`, which takes the place of what was loaded before. It
  // allocates at most as many bytes as the payload has, and for a compressed one besides, 3 * `max_bytes`: no
  // more than `max_bytes` are unpacked (of which at most 4 GiB). DataLoss: the message names the byte of the
  // file; nothing is loaded then.
  absl::Status Load(std::string_view file, std::uint64_t offset, std::uint64_t max_bytes = kMaxChunkBytes);

  std::size_t size() const { return size_; }
  // The lengths are from when they were verified, whatever has happened to the file since.
  std::string_view operator[](std::size_t i) const {
    const std::uint32_t start = scratch_.offsets[i] + 4;
    return {payload_ + start, scratch_.offsets[i + 1] - start};
  }

 private:
  absl::Status LoadPlain(std::string_view payload, const ChunkHeader& header);
  absl::Status Unpack(std::string_view packed, const ChunkHeader& header, std::uint64_t max_bytes);
  absl::Status UnpackFrames(std::string_view packed, const ChunkHeader& header, std::uint64_t max_bytes);
  absl::Status UnpackBlock(std::string_view packed, const ChunkHeader& header, std::uint64_t max_bytes);
  absl::Status UnpackGzip(std::string_view packed, const ChunkHeader& header, std::uint64_t max_bytes);

  Scratch& scratch_;
  const char* payload_ = nullptr;
  std::size_t size_ = 0;
};

// Puts a chunk of the new layout together.
class ChunkEncoder {
 public:
  explicit ChunkEncoder(Compressor compressor);

  void Add(std::string_view record);
  bool empty() const { return records_ == 0; }
  // Of the records alone, and with their lengths before them.
  std::uint64_t record_bytes() const { return record_bytes_; }
  std::uint64_t unpacked_bytes() const { return record_bytes_ + 4 * std::uint64_t{records_}; }

  // The chunk with its header, as it lies in a file; valid until the next Add(), which begins a new one. It
  // is not empty, and unpacked_bytes() is at most kMaxChunkBytes.
  std::string_view Finish();

 private:
  void Begin();
  void Append(std::string_view bytes);

  const Compressor compressor_;
  std::string chunk_;  // from its header on
  std::optional<GzipWriter> gzip_;
  std::uint32_t records_ = 0;
  std::uint64_t record_bytes_ = 0;
};

}  // namespace trainyard::data
