// Opening record files: many files of one format as one sequence of records.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "data/csv/lines.h"
#include "data/format.h"
#include "data/record_source.h"
#include "data/recordio/layout.h"

namespace trainyard::data {

// The bounds are on what a file can make us allocate beyond its own size: one that wants more is refused
// before it gets it. Files whose bytes are used where they lie (plain RecordIO, CSV, IDX) need none.
struct OpenOptions {
  Format format = Format::kAuto;  // by each file's first bytes; CSV, which has none, by the name's end
  CsvOptions csv;
  std::uint64_t max_chunk_bytes =
      kMaxChunkBytes;  // one compressed chunk, unpacked; a cursor holds one at a time
  std::uint64_t max_unpacked_bytes = 1U << 30;  // one .gz file, unpacked; the source holds it
};
// max_chunk_bytes as far as chunks can be that large.
std::uint64_t ChunkBound(const OpenOptions& options);

// The records of all files in the order in which they are named; what a glob matches and what is in a folder,
// in the order of bytes of the names. A file that is named twice is read twice. Headers and line ends are
// read here, and damage to them is found here; damage to records is found when they are read. Only RecordIO
// and gzip have checksums: a changed byte of a CSV or IDX file is a changed record, and a CSV file that was
// cut before it was opened is a shorter one.
//   InvalidArgument  no files, or files of several formats or shapes
//   NotFound         no such file, no match of a glob, or nothing in a folder
//   DataLoss         a header is damaged, or the file is cut or has something behind its end
absl::StatusOr<std::unique_ptr<const RecordSource>> OpenRecords(const std::vector<std::string>& paths,
                                                                const OpenOptions& options = {});

}  // namespace trainyard::data
