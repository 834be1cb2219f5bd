#include "data/open_file.h"

#include <algorithm>
#include <cstdint>

#include "base/status.h"
#include "base/text.h"
#include "data/csv/file.h"
#include "data/gzip.h"
#include "data/idx/file.h"
#include "data/idx/header.h"
#include "data/recordio/file.h"
#include "data/recordio/layout.h"

namespace trainyard::data {

absl::StatusOr<Format> DetectFormat(const std::string& path, std::string_view bytes) {
  if (LooksLikeRecordIo(bytes)) return Format::kRecordIo;
  if (LooksLikeIdx(bytes) || LooksLikePackedIdx(bytes)) return Format::kIdx;
  if (path.ends_with(".csv")) return Format::kCsv;
  if (bytes.empty()) return Format::kAuto;
  if (LooksLikeGzip(bytes)) {
    return absl::InvalidArgumentError(
        StrCat(path, " is packed by gzip, and what it begins with is not IDX: unpack it first"));
  }
  return absl::InvalidArgumentError(
      StrCat("cannot tell what ", path, " is by its first bytes: say recordio, csv or idx"));
}

absl::StatusOr<std::unique_ptr<const RecordFile>> IndexFile(Format format, const OpenOptions& options,
                                                            std::shared_ptr<const FileBytes>& bytes) {
  switch (format) {
    case Format::kCsv:
      return OpenCsv(*bytes, options.csv);
    case Format::kIdx:
      if (LooksLikeGzip(bytes->view())) {
        TY_ASSIGN_OR_RETURN(bytes, UnpackIdx(bytes->view(), options.max_unpacked_bytes));
      }
      return OpenIdx(*bytes);
    case Format::kRecordIo:
    case Format::kAuto:
      break;
  }
  return OpenRecordIo(*bytes, ChunkBound(options));
}

}  // namespace trainyard::data
