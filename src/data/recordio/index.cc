#include "data/recordio/index.h"

#include "base/status.h"

namespace trainyard::data {

absl::StatusOr<std::vector<ChunkPlace>> IndexChunks(std::string_view file, std::uint64_t max_chunk_bytes) {
  std::vector<ChunkPlace> chunks;
  std::uint64_t records = 0;
  for (std::uint64_t offset = 0; offset < file.size();) {
    TY_ASSIGN_OR_RETURN(const ChunkHeader header, ParseChunkHeader(file, offset, max_chunk_bytes));
    records += header.records;
    chunks.push_back({.offset = offset, .end = records});
    offset += kChunkHeaderBytes + header.bytes;
  }
  return chunks;
}

}  // namespace trainyard::data
