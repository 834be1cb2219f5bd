#include "data/open.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "data/file_bytes.h"
#include "data/file_set.h"
#include "data/open_file.h"
#include "data/paths.h"
#include "data/record_file.h"

namespace trainyard::data {
namespace {

class Opener {
 public:
  explicit Opener(const OpenOptions& options) : options_(options) {}

  absl::Status Add(const std::string& path) {
    TY_ASSIGN_OR_RETURN(auto bytes, FileBytes::Map(path));
    TY_ASSIGN_OR_RETURN(const Format format, FormatOf(path, bytes->view()));
    auto file = IndexFile(format, options_, bytes);
    if (!file.ok()) return Annotate(file.status(), path);
    TY_RETURN_IF_ERROR(CompareShape(path, (*file)->Shape()));
    files_->Add(path, *std::move(file), std::move(bytes));
    return absl::OkStatus();
  }

  std::unique_ptr<const RecordSource> Finish() {
    files_->set_format(options_.format == Format::kAuto ? format_ : options_.format);
    return std::move(files_);
  }

 private:
  absl::StatusOr<Format> FormatOf(const std::string& path, std::string_view bytes) {
    if (options_.format != Format::kAuto) return options_.format;
    TY_ASSIGN_OR_RETURN(const Format format, DetectFormat(path, bytes));
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

std::uint64_t ChunkBound(const OpenOptions& options) {
  // Offsets within a chunk have 32 bits.
  return std::min<std::uint64_t>(options.max_chunk_bytes, UINT32_MAX);
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
