// Going through a whole RecordIO file, damage or not.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "data/recordio/chunk.h"
#include "data/recordio/layout.h"
#include "data/scratch.h"

namespace trainyard::data {

// Takes time in proportion to the file's size, whatever is in it.
//
//            chunk is whole                          nothing found, or the file's end
//   at a chunk ──────────────► at the next one ... ──────────────────────────────────► done
//       │                            ▲
//       │ damaged                    │ the header's word for its end, if a chunk begins there;
//       └────────────────────────────┘ else the next place that is like a chunk's header
class ChunkVerifier {
 public:
  // `file` outlives it.
  explicit ChunkVerifier(std::string_view file, std::uint64_t max_chunk_bytes = kMaxChunkBytes)
      : file_(file), max_chunk_bytes_(max_chunk_bytes), patience_(file.size()) {}

  bool done() const { return offset_ == file_.size(); }
  // Where the next chunk is expected.
  std::uint64_t offset() const { return offset_; }
  // Of those that are whole.
  std::uint64_t chunks() const { return chunks_; }
  std::uint64_t records() const { return records_; }

  // Reads what is at offset() and goes on to what is next. Not when done(). OK: it was a whole chunk.
  // DataLoss: it was damage, which extends to the new offset(); the message names the byte.
  absl::Status Next();

 private:
  bool BeginsChunk(std::uint64_t offset) const;
  // Where a chunk may begin behind a place that is damaged, or the file's end.
  std::uint64_t FindChunk(std::uint64_t from);
  bool IsChunk(std::uint64_t offset);

  const std::string_view file_;
  const std::uint64_t max_chunk_bytes_;
  Scratch scratch_;
  LoadedChunk chunk_{scratch_};
  std::uint64_t patience_;  // how many bytes may still be read to find out whether they are a chunk
  std::uint64_t offset_ = 0;
  std::uint64_t chunks_ = 0;
  std::uint64_t records_ = 0;
};

}  // namespace trainyard::data
