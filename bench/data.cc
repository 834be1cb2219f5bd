// Reading record files from the page cache, every checksum verified, against copying as many bytes in memory.
#include <snappy.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/text.h"
#include "bench/report.h"
#include "data/open.h"
#include "data/recordio/writer.h"

namespace trainyard::bench {
namespace {

constexpr std::size_t kRecord = 1024;
constexpr double kGiga = 1e9;

// Records as training data may be: words of a small vocabulary, which pack to about a third.
std::string Words(std::uint64_t seed) {
  constexpr std::string_view kWords[] = {"the ",     "loss ",  "of a ",    "gradient ",
                                         "trainer ", "0.25 ",  "pserver ", "is ",
                                         "batch 7 ", "image ", "label ",   "shuffled "};
  std::string record;
  std::uint64_t state = seed * 0x9e3779b97f4a7c15U + 1;
  while (record.size() < kRecord) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    record += kWords[(state >> 33U) % std::size(kWords)];
  }
  record.resize(kRecord);
  return record;
}

absl::Status WriteFile(const std::string& path, data::Compressor compressor, std::size_t records) {
  TY_ASSIGN_OR_RETURN(const auto writer, data::RecordIoWriter::Create(path, {.compressor = compressor}));
  for (std::size_t i = 0; i < records; ++i) TY_RETURN_IF_ERROR(writer->Write(Words(i)));
  return writer->Close();
}

// Bytes of records a second, from opening the file to its last record, again and again.
absl::StatusOr<double> ReadRate(const std::string& path, absl::Duration time) {
  std::uint64_t bytes = 0;
  const SteadyTime start = Clock::System().Steady();
  absl::Duration took;
  do {
    TY_ASSIGN_OR_RETURN(const auto source, data::OpenRecords({path}));
    TY_RETURN_IF_ERROR(source->NewCursor()->Read({0, source->Count()}, [&](std::string_view record) {
      bytes += record.size();
      return absl::OkStatus();
    }));
    took = Clock::System().Steady() - start;
  } while (took < time);
  return static_cast<double>(bytes) / absl::ToDoubleSeconds(took);
}

double CopyRate(const std::vector<char>& from, std::vector<char>& to, absl::Duration time) {
  double bytes = 0;
  const SteadyTime start = Clock::System().Steady();
  absl::Duration took;
  do {
    std::memcpy(to.data(), from.data(), from.size());
    asm volatile("" : : "r"(to.data()) : "memory");  // or the copy could be left out
    bytes += static_cast<double>(from.size());
    took = Clock::System().Steady() - start;
  } while (took < time);
  return bytes / absl::ToDoubleSeconds(took);
}

// The library by itself: the same records, unpacked and neither read nor verified.
double UnpackRate(std::size_t records, absl::Duration time) {
  constexpr std::size_t kBlock = std::size_t{64} << 10;
  std::vector<std::string> blocks;
  std::string block;
  for (std::size_t i = 0; i < records; ++i) {
    block += Words(i);
    if (block.size() < kBlock) continue;
    snappy::Compress(block.data(), block.size(), &blocks.emplace_back());
    block.clear();
  }
  std::vector<char> to(kBlock);
  double bytes = 0;
  const SteadyTime start = Clock::System().Steady();
  absl::Duration took;
  do {
    for (const std::string& packed : blocks) snappy::RawUncompress(packed.data(), packed.size(), to.data());
    bytes += static_cast<double>(blocks.size() * kBlock);
    took = Clock::System().Steady() - start;
  } while (took < time);
  return bytes / absl::ToDoubleSeconds(took);
}

}  // namespace

void DataRows(const Settings& settings, std::vector<Row>& rows) {
  const std::size_t records = settings.quick ? 4 << 10 : 256 << 10;
  const std::vector<char> from(records * kRecord, 'x');
  std::vector<char> to(from.size(), 'y');
  const auto measure = [&](data::Compressor compressor, Row row, const std::function<double()>& limit) {
    const std::string path = StrCat(settings.folder, "/", data::NameOf(compressor), ".rec");
    absl::Status failed = WriteFile(path, compressor, records);
    const Pair pair = Alternate(
        settings.rounds,
        [&] {
          const auto rate = failed.ok() ? ReadRate(path, settings.time) : failed;
          failed.Update(rate.status());
          return rate.value_or(0) / kGiga;
        },
        [&] { return limit() / kGiga; });
    row.unit = "GB/s";
    row.limit = pair.limit;
    Add(rows, std::move(row), failed.ok() ? absl::StatusOr<double>(pair.figure) : failed);
  };
  measure(data::Compressor::kNone,
          {.name = "data: RecordIO read, 1 KiB records, plain",
           .limit_name = "memcpy, GB/s",
           .least_ratio = 0.35},
          [&] { return CopyRate(from, to, settings.time); });
  measure(data::Compressor::kSnappy,
          {.name = "data: RecordIO read, 1 KiB records, snappy",
           .limit_name = "snappy alone, GB/s",
           .least_figure = 1.5},
          [&] { return UnpackRate(records, settings.time); });
}

}  // namespace trainyard::bench
