// What holds of RecordIO whatever the records are: they come back, by any range, and never as something else.
#include <snappy.h>

#include "data/data_testing.h"
#include "gtest/gtest.h"
#include "rapidcheck/gtest.h"

namespace trainyard::data {
namespace {

Compressor AnyCompressor() {
  return *rc::gen::element(Compressor::kNone, Compressor::kSnappy, Compressor::kGzip);
}

// Short ones and empty ones, ones that compress well, and now and then one of several frames.
std::string AnyRecord() {
  switch (*rc::gen::inRange(0, 8)) {
    case 0:
      return "";
    case 1:
      return std::string(*rc::gen::inRange<std::size_t>(0, 2000), *rc::gen::arbitrary<char>());
    case 2:
      return std::string(*rc::gen::weightedElement<std::size_t>({{50, 17}, {1, 65536}, {1, 140000}}), 'x');
    default:
      return *rc::gen::arbitrary<std::string>();
  }
}

std::vector<Records> AnyChunks() {
  std::vector<Records> chunks(*rc::gen::inRange<std::size_t>(0, 4));
  for (Records& records : chunks) {
    records.resize(*rc::gen::inRange<std::size_t>(1, 6));
    for (std::string& record : records) record = AnyRecord();
  }
  return chunks;
}

Records Joined(const std::vector<Records>& chunks) {
  Records all;
  for (const Records& records : chunks) all.insert(all.end(), records.begin(), records.end());
  return all;
}

RC_GTEST_PROP(RecordIoProperties, RecordsComeBackAsTheyWere, ()) {
  const auto chunks = AnyChunks();
  RC_ASSERT(ReadRecordIo(RecordIo(chunks, AnyCompressor())).value() == Joined(chunks));
}

RC_GTEST_PROP(RecordIoProperties, RecordsOfTheOldLayoutComeBackAsTheyWere, ()) {
  std::string file;
  const auto chunks = AnyChunks();
  for (const Records& records : chunks) {
    const std::string payload = Payload(records);
    const auto count = static_cast<std::uint32_t>(records.size());
    std::string packed = payload;
    const Compressor compressor = AnyCompressor();
    if (compressor == Compressor::kSnappy) snappy::Compress(payload.data(), payload.size(), &packed);
    if (compressor == Compressor::kGzip) {
      packed.clear();
      GzipWriter writer(packed);
      writer.Add(payload);
      writer.Finish();
    }
    file += OldChunk(compressor, count, packed);
  }
  RC_ASSERT(ReadRecordIo(file).value() == Joined(chunks));
}

RC_GTEST_PROP(RecordIoProperties, ADamagedFileIsAnErrorOrTheSame, ()) {
  const auto chunks = AnyChunks();
  std::string file = RecordIo(chunks, AnyCompressor());
  if (file.empty()) return;
  // One change of up to four bytes: what CRC-32 is sure to find.
  const auto at = *rc::gen::inRange<std::size_t>(0, file.size());
  for (std::size_t i = at; i < std::min(at + 4, file.size()); ++i) file[i] = *rc::gen::arbitrary<char>();
  const auto read = ReadRecordIo(file);
  if (read.ok()) RC_ASSERT(*read == Joined(chunks));
}

RC_GTEST_PROP(RecordIoProperties, ACutFileIsAnErrorOrWholeChunks, ()) {
  const auto chunks = AnyChunks();
  const std::string file = RecordIo(chunks, AnyCompressor());
  const auto length = *rc::gen::inRange<std::size_t>(0, file.size() + 1);
  const auto read = ReadRecordIo(std::string_view(file).substr(0, length));
  if (!read.ok()) return;
  const auto whole = IndexChunks(file).value();
  const auto cut = IndexChunks(std::string_view(file).substr(0, length)).value();
  RC_ASSERT((cut.size() == whole.size() || whole[cut.size()].offset == length));
  const Records all = Joined(chunks);
  RC_ASSERT(std::equal(read->begin(), read->end(), all.begin()));
}

}  // namespace
}  // namespace trainyard::data
