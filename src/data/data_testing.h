// What tests of record files share: bytes, files, and reading everything.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/crc32c.h"
#include "base/status.h"
#include "base/text.h"
#include "data/endian.h"
#include "data/record_source.h"
#include "data/recordio/chunk.h"
#include "data/recordio/index.h"
#include "data/scratch.h"

namespace trainyard::data {

using Records = std::vector<std::string>;

// "0403 02" is three bytes.
inline std::string FromHex(std::string_view text) {
  std::string bytes;
  std::string digits;
  for (const char c : text) {
    if (c == ' ') continue;
    digits += c;
    if (digits.size() < 2) continue;
    bytes += static_cast<char>(*ParseNumber<unsigned>(digits, 16));
    digits.clear();
  }
  return bytes;
}

inline void WriteBytes(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

inline std::string ReadBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// A file of chunks that each have the records of one list.
inline std::string RecordIo(const std::vector<Records>& chunks, Compressor compressor) {
  std::string file;
  ChunkEncoder encoder(compressor);
  for (const Records& records : chunks) {
    for (const std::string& record : records) encoder.Add(record);
    file += encoder.Finish();
  }
  return file;
}

// A chunk of the old layout around a payload.
inline std::string OldChunk(Compressor compressor, std::uint32_t records, std::string_view payload) {
  std::string chunk;
  for (const std::uint32_t number :
       {kRecordIoMagic, records, Crc32c(payload), static_cast<std::uint32_t>(compressor) + 1,
        static_cast<std::uint32_t>(payload.size())}) {
    AppendLittle32(number, chunk);
  }
  return chunk.append(payload);
}

// Every record with its length before it: what a payload unpacks to.
inline std::string Payload(const Records& records) {
  std::string payload;
  for (const std::string& record : records) {
    AppendLittle32(static_cast<std::uint32_t>(record.size()), payload);
    payload += record;
  }
  return payload;
}

// All records of a RecordIO file that is in memory.
inline absl::StatusOr<Records> ReadRecordIo(std::string_view file,
                                            std::uint64_t max_chunk_bytes = kMaxChunkBytes) {
  TY_ASSIGN_OR_RETURN(const auto chunks, IndexChunks(file, max_chunk_bytes));
  Records records;
  Scratch scratch;
  LoadedChunk chunk(scratch);
  for (const ChunkPlace& place : chunks) {
    TY_RETURN_IF_ERROR(chunk.Load(file, place.offset, max_chunk_bytes));
    for (std::size_t i = 0; i < chunk.size(); ++i) records.emplace_back(chunk[i]);
  }
  return records;
}

inline absl::StatusOr<Records> ReadRange(RecordCursor& cursor, RecordRange range) {
  Records records;
  TY_RETURN_IF_ERROR(cursor.Read(range, [&](std::string_view record) {
    records.emplace_back(record);
    return absl::OkStatus();
  }));
  return records;
}

inline absl::StatusOr<Records> ReadAll(const RecordSource& source) {
  return ReadRange(*source.NewCursor(), {0, source.Count()});
}

}  // namespace trainyard::data
