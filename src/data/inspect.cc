#include "data/inspect.h"

#include <memory>
#include <utility>

#include "base/status.h"
#include "data/csv/fields.h"
#include "data/file_bytes.h"
#include "data/open_file.h"
#include "data/record_file.h"
#include "data/scratch.h"

namespace trainyard::data {
namespace {

// The index has seen that its headers can be read.
void LookAtChunks(std::string_view file, std::uint64_t max_chunk_bytes, FileSummary& summary) {
  for (std::uint64_t offset = 0; offset < file.size();) {
    const auto header = ParseChunkHeader(file, offset, max_chunk_bytes);
    if (!header.ok()) return;
    ++summary.chunks;
    summary.layouts.insert(header->layout);
    summary.compressors.insert(header->compressor);
    offset += kChunkHeaderBytes + header->bytes;
  }
}

absl::Status CountColumns(const RecordFile& file, const std::shared_ptr<const FileBytes>& bytes,
                          const CsvOptions& options, FileSummary& summary) {
  if (file.Count() == 0) return absl::OkStatus();
  Scratch scratch;
  CsvFields fields(options);
  return file.NewReader(bytes, scratch)->Read({0, 1}, [&](std::string_view record) {
    // What is wrong with a field is not what is asked here.
    if (const auto split = fields.Split(record); split.ok()) summary.columns = split->size();
    return absl::OkStatus();
  });
}

}  // namespace

absl::StatusOr<FileSummary> InspectFile(const std::string& path, const OpenOptions& options) {
  TY_ASSIGN_OR_RETURN(const auto stored, FileBytes::Map(path));
  Format format = options.format;
  if (format == Format::kAuto) {
    TY_ASSIGN_OR_RETURN(format, DetectFormat(path, stored->view()));
    if (format == Format::kAuto) format = Format::kRecordIo;
  }
  auto bytes = stored;
  const auto file = IndexFile(format, options, bytes);
  if (!file.ok()) return Annotate(file.status(), path);
  FileSummary summary{.format = format,
                      .bytes = stored->view().size(),
                      .records = (*file)->Count(),
                      .packed = bytes != stored};
  if (const ItemShape* shape = (*file)->Shape()) summary.shape = *shape;
  if (format == Format::kRecordIo) LookAtChunks(bytes->view(), ChunkBound(options), summary);
  if (format == Format::kCsv) {
    const absl::Status counted = CountColumns(**file, bytes, options.csv, summary);
    if (!counted.ok()) return Annotate(counted, path);
  }
  return summary;
}

}  // namespace trainyard::data
