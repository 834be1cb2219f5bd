// RecordIO on disk. A file is chunks, one behind the other, and nothing else; an empty file has no records. A
// chunk is a header of five 32-bit numbers (little-endian) and a payload. There are two layouts of one magic:
//
//    byte   new: Go, and Python later          old: Python at first
//      0    magic 0x01020304                   magic 0x01020304
//      4    CRC-32 of the payload              number of records
//      8    0 plain, 1 snappy frames, 2 gzip   CRC-32C of the payload
//     12    payload bytes                      1 plain, 2 one snappy block, 3 gzip
//     16    number of records                  payload bytes
//     20    payload                            payload
//
// An unpacked payload has, for each record, its length (32 bits) and its bytes. So no payload has less than 4
// bytes, and what stands at byte 12 tells the layouts apart.
//
// The checksum does not cover the header. What it says is therefore only believed once the whole payload has
// been seen to agree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"

namespace trainyard::data {

inline constexpr std::uint32_t kRecordIoMagic = 0x01020304;
inline constexpr std::size_t kChunkHeaderBytes = 20;
inline constexpr std::uint64_t kMaxChunkBytes = 256
                                                << 20;  // unpacked; unless a reader's options say otherwise

enum class Layout : std::uint8_t { kNew, kOld };
enum class Compressor : std::uint8_t { kNone, kSnappy, kGzip };
// "new", "old"; "none", "snappy", "gzip".
std::string_view NameOf(Layout layout);
std::string_view NameOf(Compressor compressor);
absl::StatusOr<Compressor> ParseCompressor(std::string_view name);

struct ChunkHeader {
  Layout layout = Layout::kNew;
  Compressor compressor = Compressor::kNone;
  std::uint32_t checksum = 0;
  std::uint32_t bytes = 0;  // of the payload, as it is stored
  std::uint32_t records = 0;
  bool operator==(const ChunkHeader&) const = default;
};

// Whether a file that begins so is RecordIO.
bool LooksLikeRecordIo(std::string_view bytes);

// The header of the chunk at `offset` of a file. It is plausible: the payload ends within the file, and has
// room for so many records, if a compressed one is at most `max_chunk_bytes` long. DataLoss: it is not; the
// message names the byte.
absl::StatusOr<ChunkHeader> ParseChunkHeader(std::string_view file, std::uint64_t offset,
                                             std::uint64_t max_chunk_bytes = kMaxChunkBytes);

// Writes kChunkHeaderBytes bytes, in the new layout.
void StoreChunkHeader(const ChunkHeader& header, char* out);

}  // namespace trainyard::data
