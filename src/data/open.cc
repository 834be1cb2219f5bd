#include "data/open.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "data/csv/file.h"
#include "data/file_bytes.h"
#include "data/file_set.h"
#include "data/gzip.h"
#include "data/idx/file.h"
#include "data/idx/header.h"
#include "data/paths.h"
#include "data/record_file.h"
#include "data/recordio/file.h"
#include "data/recordio/layout.h"

namespace trainyard::data {
namespace {

constexpr std::array kFormats = {Format::kAuto, Format::kRecordIo, Format::kCsv, Format::kIdx};

// kAuto for an empty file, which has no records in any format that allows it.
absl::StatusOr<Format> Detect(const std::string& path, std::string_view bytes) {
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

class Opener {
 public:
  explicit Opener(const OpenOptions& options) : options_(options) {}

  absl::Status Add(const std::string& path) {
    TY_ASSIGN_OR_RETURN(auto bytes, FileBytes::Map(path));
    TY_ASSIGN_OR_RETURN(const Format format, FormatOf(path, bytes->view()));
    if (format == Format::kIdx && LooksLikeGzip(bytes->view())) {
      auto unpacked = UnpackIdx(bytes->view(), options_.max_unpacked_bytes);
      if (!unpacked.ok()) return Annotate(unpacked.status(), path);
      bytes = *std::move(unpacked);
    }
    auto file = OpenAs(format, *bytes);
    if (!file.ok()) return Annotate(file.status(), path);
    TY_RETURN_IF_ERROR(CompareShape(path, (*file)->Shape()));
    files_->Add(path, *std::move(file), std::move(bytes));
    return absl::OkStatus();
  }

  std::unique_ptr<const RecordSource> Finish() { return std::move(files_); }

 private:
  absl::StatusOr<Format> FormatOf(const std::string& path, std::string_view bytes) {
    if (options_.format != Format::kAuto) return options_.format;
    TY_ASSIGN_OR_RETURN(const Format format, Detect(path, bytes));
    if (format == Format::kAuto) return Format::kRecordIo;
    if (format_ == Format::kAuto) {
      format_ = format;
      first_ = path;
    }
    if (format != format_) {
      return absl::InvalidArgumentError(StrCat(path, " is ", NameOf(format), ", but ", first_, " is ",
                                               NameOf(format_), ": read them one by one"));
    }
    return format;
  }

  absl::StatusOr<std::unique_ptr<const RecordFile>> OpenAs(Format format, const FileBytes& bytes) {
    switch (format) {
      case Format::kCsv:
        return OpenCsv(bytes, options_.csv);
      case Format::kIdx:
        return OpenIdx(bytes);
      case Format::kRecordIo:
      case Format::kAuto:
        break;
    }
    // Offsets within a chunk have 32 bits.
    return OpenRecordIo(bytes, std::min<std::uint64_t>(options_.max_chunk_bytes, UINT32_MAX));
  }

  absl::Status CompareShape(const std::string& path, const ItemShape* shape) {
    if (shape == nullptr) return absl::OkStatus();
    if (!shape_) {
      shape_ = *shape;
      first_ = path;
    }
    if (*shape_ == *shape) return absl::OkStatus();
    return absl::InvalidArgumentError(
        StrCat("the items of ", path, " have another shape or type than those of ", first_));
  }

  const OpenOptions& options_;
  std::unique_ptr<FileSet> files_ = std::make_unique<FileSet>();
  Format format_ = Format::kAuto;   // of those so far
  std::optional<ItemShape> shape_;  // of those so far
  std::string first_;               // which they were first seen in
};

}  // namespace

std::string_view NameOf(Format format) {
  switch (format) {
    case Format::kAuto:
      return "auto";
    case Format::kRecordIo:
      return "recordio";
    case Format::kCsv:
      return "csv";
    case Format::kIdx:
      return "idx";
  }
  return "";
}

absl::StatusOr<Format> ParseFormat(std::string_view name) {
  for (const Format format : kFormats) {
    if (NameOf(format) == name) return format;
  }
  return absl::InvalidArgumentError(
      StrCat("unknown format '", name, "': there are auto, recordio, csv and idx"));
}

absl::StatusOr<std::unique_ptr<const RecordSource>> OpenRecords(const std::vector<std::string>& paths,
                                                                const OpenOptions& options) {
  if (options.csv.delimiter == '"' || options.csv.delimiter == '\n' || options.csv.delimiter == '\r') {
    return absl::InvalidArgumentError("a quote or a line's end cannot be the delimiter of CSV");
  }
  TY_ASSIGN_OR_RETURN(const auto files, ExpandPaths(paths));
  Opener opener(options);
  for (const std::string& file : files) TY_RETURN_IF_ERROR(opener.Add(file));
  return opener.Finish();
}

}  // namespace trainyard::data
