// Record files that nobody wrote: none may crash the reader or make it unpack more than it may, and what is
// read of one is the same after it has been written and read again.
//
// The first byte of an input says what the rest is taken for.
#include <snappy.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/text.h"
#include "data/crc32.h"
#include "data/csv/fields.h"
#include "data/csv/lines.h"
#include "data/endian.h"
#include "data/field_spec.h"
#include "data/idx/file.h"
#include "data/recordio/chunk.h"
#include "data/recordio/index.h"
#include "data/recordio/snappy_block.h"
#include "data/recordio/verifier.h"
#include "data/scratch.h"

namespace trainyard::data {
namespace {

constexpr std::uint64_t kMost = 1 << 20;

using Records = std::vector<std::string>;

// The records before the first damage.
Records ReadChunks(std::string_view file) {
  Records records;
  const auto chunks = IndexChunks(file, kMost);
  if (!chunks.ok()) return records;
  Scratch scratch;
  LoadedChunk chunk(scratch);
  for (const ChunkPlace& place : *chunks) {
    if (!chunk.Load(file, place.offset, kMost).ok()) break;
    for (std::size_t i = 0; i < chunk.size(); ++i) records.emplace_back(chunk[i]);
  }
  TY_CHECK(scratch.unpacked.capacity() <= kMost + kSnappySlop, "no more is unpacked than is allowed");
  return records;
}

// A file is without damage to whoever goes through all of it, if and only if it can be read to its end.
void Verify(std::string_view file) {
  ChunkVerifier verifier(file, kMost);
  bool damaged = false;
  while (!verifier.done()) {
    const std::uint64_t begin = verifier.offset();
    damaged |= !verifier.Next().ok();
    TY_CHECK(verifier.offset() > begin && verifier.offset() <= file.size(), "it comes to an end");
  }
  const auto chunks = IndexChunks(file, kMost);
  const Records records = ReadChunks(file);
  const bool readable = chunks.ok() && records.size() == (chunks->empty() ? 0 : chunks->back().end);
  TY_CHECK(readable != damaged, "damage is what cannot be read");
  TY_CHECK(damaged || verifier.records() == records.size(), "what is whole is counted");
}

void WriteAndRead(const Records& records) {
  std::uint64_t bytes = 0;
  for (const std::string& record : records) bytes += record.size() + 4;
  if (records.empty() || bytes > kMost) return;
  for (const auto compressor : {Compressor::kNone, Compressor::kSnappy, Compressor::kGzip}) {
    ChunkEncoder encoder(compressor);
    for (const std::string& record : records) encoder.Add(record);
    TY_CHECK(ReadChunks(encoder.Finish()) == records, "records are the same when they are read again");
  }
}

// A chunk whose checksum is right, which the fuzzer would not find: the first byte has the layout and the
// compressor, the second the number of records, the rest is the payload.
void Chunk(std::string_view bytes) {
  if (bytes.size() < 2) return;
  const std::uint32_t kind = ByteAt(bytes.data(), 0);
  const std::uint32_t records = ByteAt(bytes.data(), 1);
  const std::string_view payload = bytes.substr(2);
  const auto size = static_cast<std::uint32_t>(payload.size());
  std::string file;
  AppendLittle32(kRecordIoMagic, file);
  if ((kind & 4U) == 0) {
    for (const std::uint32_t field : {Crc32(payload), kind % 3, size, records}) AppendLittle32(field, file);
  } else {
    for (const std::uint32_t field : {records, Crc32c(payload), 1 + kind % 3, size})
      AppendLittle32(field, file);
  }
  WriteAndRead(ReadChunks(file.append(payload)));
}

// The library decides what a block unpacks to, and whether it is one.
void Block(std::string_view packed) {
  std::string room(packed);
  room.append(kSnappySlop, '\0');
  SnappyBlock block;
  const bool parsed = ParseSnappyBlock({room.data(), packed.size()}, block);
  if (parsed && block.unpacked > kMost) return;
  std::string ours(parsed ? block.unpacked + kSnappySlop : 0, '\0');
  const bool good = parsed && UnpackSnappyBlock(block, ours.data());
  std::size_t claimed = 0;
  if (!parsed && snappy::GetUncompressedLength(packed.data(), packed.size(), &claimed) && claimed > kMost)
    return;
  std::string theirs;
  TY_CHECK(snappy::Uncompress(packed.data(), packed.size(), &theirs) == good, "the same blocks are refused");
  if (good) TY_CHECK(ours.substr(0, block.unpacked) == theirs, "a block unpacks to the same");
}

void Csv(std::string_view text) {
  const CsvOptions options;
  const auto index = CsvIndex::Build(text, options);
  if (!index.ok() || index->Count() == 0) return;
  CsvFields fields(options);
  CsvIndex::Place place = index->Before(0);
  while (place.record < index->Count()) {
    const CsvLine line = FindLine(text, place.offset, options);
    TY_CHECK(line.closed && line.end <= line.next && line.next <= text.size(), "a line is within the text");
    const auto split = fields.Split(text.substr(place.offset, line.end - place.offset));
    if (split.ok()) TY_CHECK(!split->empty(), "a record has a field");
    Advance(place, line);
  }
  TY_CHECK(place.offset == text.size(), "the lines are the text");
}

void Idx(const std::shared_ptr<const FileBytes>& bytes) {
  const auto file = OpenIdx(*bytes);
  if (!file.ok()) return;
  Scratch scratch;
  std::uint64_t seen = 0;
  const auto status =
      (*file)->NewReader(bytes, scratch)->Read({0, (*file)->Count()}, [&](std::string_view item) {
        seen += item.size();
        return absl::OkStatus();
      });
  TY_CHECK(status.ok() && seen < bytes->view().size(), "items are within the file");
}

void PlainIdx(std::string_view text) {
  auto bytes = std::make_unique<char[]>(text.size());
  text.copy(bytes.get(), text.size());
  Idx(FileBytes::Own(std::move(bytes), text.size()));
}

}  // namespace
}  // namespace trainyard::data

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace trainyard::data;  // NOLINT(google-build-using-namespace)
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 'r':
      WriteAndRead(ReadChunks(rest));
      break;
    case 'v':
      Verify(rest);
      break;
    case 'f':
      (void)ParseFieldSpecs(rest);
      break;
    case 'k':
      Chunk(rest);
      break;
    case 'b':
      Block(rest);
      break;
    case 'c':
      Csv(rest);
      break;
    case 'i':
      PlainIdx(rest);
      break;
    case 'z':
      if (const auto unpacked = UnpackIdx(rest, kMost); unpacked.ok()) Idx(*unpacked);
      break;
    default: {
      Records records;
      for (const std::string_view record : trainyard::Split(rest, '\n')) records.emplace_back(record);
      WriteAndRead(records);
      break;
    }
  }
  return 0;
}
