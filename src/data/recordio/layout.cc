#include "data/recordio/layout.h"

#include "base/text.h"
#include "data/damage.h"
#include "data/endian.h"

namespace trainyard::data {
namespace {

constexpr std::uint32_t kLeastPayload = 4;

absl::StatusOr<ChunkHeader> ParseFields(const char* bytes, std::uint64_t offset) {
  const std::uint32_t second = LoadLittle32(bytes + 4);
  const std::uint32_t third = LoadLittle32(bytes + 8);
  const std::uint32_t fourth = LoadLittle32(bytes + 12);
  const std::uint32_t fifth = LoadLittle32(bytes + 16);
  if (fourth >= 1 && fourth < kLeastPayload) {
    return ChunkHeader{.layout = Layout::kOld,
                       .compressor = static_cast<Compressor>(fourth - 1),
                       .checksum = third,
                       .bytes = fifth,
                       .records = second};
  }
  if (third > 2) return DamageAt(offset + 8, StrCat("no compressor has the number ", third));
  return ChunkHeader{.layout = Layout::kNew,
                     .compressor = static_cast<Compressor>(third),
                     .checksum = second,
                     .bytes = fourth,
                     .records = fifth};
}

}  // namespace

std::string_view NameOf(Layout layout) { return layout == Layout::kNew ? "new" : "old"; }

std::string_view NameOf(Compressor compressor) {
  switch (compressor) {
    case Compressor::kNone:
      return "none";
    case Compressor::kSnappy:
      return "snappy";
    case Compressor::kGzip:
      break;
  }
  return "gzip";
}

absl::StatusOr<Compressor> ParseCompressor(std::string_view name) {
  for (const auto compressor : {Compressor::kNone, Compressor::kSnappy, Compressor::kGzip}) {
    if (NameOf(compressor) == name) return compressor;
  }
  return absl::InvalidArgumentError(
      StrCat("unknown compressor '", name, "': there are none, snappy and gzip"));
}

bool LooksLikeRecordIo(std::string_view bytes) {
  return bytes.size() >= 4 && LoadLittle32(bytes.data()) == kRecordIoMagic;
}

absl::StatusOr<ChunkHeader> ParseChunkHeader(std::string_view file, std::uint64_t offset,
                                             std::uint64_t max_chunk_bytes) {
  const std::uint64_t left = file.size() - offset;
  if (left < kChunkHeaderBytes) {
    return DamageAt(offset,
                    StrCat("the header of a chunk is expected, but the file ends ", left, " bytes on"));
  }
  const char* bytes = file.data() + offset;
  if (!LooksLikeRecordIo(file.substr(offset))) {
    return DamageAt(offset, "a chunk is expected, but what is here does not begin like one");
  }
  const auto header = ParseFields(bytes, offset);
  if (!header.ok()) return header;
  if (header->bytes > left - kChunkHeaderBytes) {
    return DamageAt(offset, StrCat("the chunk says that ", header->bytes, " bytes follow its header, but ",
                                   left - kChunkHeaderBytes, " do: the file is cut or the header is wrong"));
  }
  if (header->records == 0 || header->bytes < kLeastPayload) {
    return DamageAt(offset, StrCat("the chunk says that it has ", header->records, " records in ",
                                   header->bytes, " bytes, and nobody writes such a chunk"));
  }
  const std::uint64_t most = header->compressor == Compressor::kNone ? header->bytes : max_chunk_bytes;
  if (header->records > most / kLeastPayload) {
    return DamageAt(offset, StrCat("the chunk says that it has ", header->records, " records, but ", most,
                                   " bytes are the most that they may take"));
  }
  return header;
}

void StoreChunkHeader(const ChunkHeader& header, char* out) {
  StoreLittle32(kRecordIoMagic, out);
  StoreLittle32(header.checksum, out + 4);
  StoreLittle32(static_cast<std::uint32_t>(header.compressor), out + 8);
  StoreLittle32(header.bytes, out + 12);
  StoreLittle32(header.records, out + 16);
}

}  // namespace trainyard::data
