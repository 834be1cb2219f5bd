// Where the chunks of a RecordIO file are and which records they have, found by going from header to header.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "data/recordio/layout.h"

namespace trainyard::data {

struct ChunkPlace {
  std::uint64_t offset = 0;
  std::uint64_t end = 0;  // the number of the first record behind it
  bool operator==(const ChunkPlace&) const = default;
};

// 16 bytes for each chunk, which has 24 bytes at least. DataLoss: a header is damaged, or the file is cut or
// has something behind its last chunk; the message names the byte.
absl::StatusOr<std::vector<ChunkPlace>> IndexChunks(std::string_view file,
                                                    std::uint64_t max_chunk_bytes = kMaxChunkBytes);

}  // namespace trainyard::data
