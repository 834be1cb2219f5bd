#include "data/verify.h"

#include <memory>
#include <optional>
#include <string_view>

#include "base/status.h"
#include "base/text.h"
#include "data/csv/fields.h"
#include "data/csv/lines.h"
#include "data/damage.h"
#include "data/file_bytes.h"
#include "data/open_file.h"
#include "data/recordio/verifier.h"

namespace trainyard::data {
namespace {

constexpr std::uint64_t kLookStride =
    4 << 20;  // bytes of CSV between looks at whether the file is still the same

class Verifier {
 public:
  Verifier(std::shared_ptr<const FileBytes> bytes, const OpenOptions& options, const VerifyCalls& calls)
      : bytes_(std::move(bytes)), options_(options), calls_(calls) {}

  absl::StatusOr<Verification> Verify(Format format) {
    found_ = {.format = format == Format::kAuto ? Format::kRecordIo : format, .bytes = text().size()};
    switch (found_.format) {
      case Format::kCsv:
        TY_RETURN_IF_ERROR(VerifyCsv());
        break;
      case Format::kIdx:
        TY_RETURN_IF_ERROR(VerifyIdx());
        break;
      case Format::kRecordIo:
      case Format::kAuto:
        TY_RETURN_IF_ERROR(VerifyRecordIo());
        break;
    }
    calls_.progress(text().size());
    return found_;
  }

 private:
  std::string_view text() const { return bytes_->view(); }

  void Tell(std::uint64_t begin, std::uint64_t end, const absl::Status& status) {
    ++found_.damages;
    calls_.damage({.begin = begin, .end = end, .message = std::string(Message(status))});
  }

  absl::Status VerifyRecordIo() {
    ChunkVerifier chunks(text(), ChunkBound(options_));
    while (!chunks.done()) {
      const std::uint64_t begin = chunks.offset();
      calls_.progress(begin);
      TY_RETURN_IF_ERROR(bytes_->CheckUnchanged());
      if (const absl::Status status = chunks.Next(); !status.ok()) Tell(begin, chunks.offset(), status);
    }
    found_.chunks = chunks.chunks();
    found_.records = chunks.records();
    return absl::OkStatus();
  }

  absl::Status VerifyIdx() {
    std::shared_ptr<const FileBytes> unpacked = bytes_;
    const auto file = IndexFile(Format::kIdx, options_, unpacked);
    if (file.ok()) {
      found_.records = (*file)->Count();
    } else if (absl::IsDataLoss(file.status())) {
      Tell(0, text().size(), file.status());
    } else {
      return file.status();
    }
    return absl::OkStatus();
  }

  absl::Status VerifyCsv() {
    CsvIndex::Place place = CsvBegin(text());
    bool header = options_.csv.header;
    std::uint64_t looked = 0;
    while (place.offset < text().size()) {
      if (place.offset >= looked) {
        calls_.progress(place.offset);
        TY_RETURN_IF_ERROR(bytes_->CheckUnchanged());
        looked = place.offset + kLookStride;
      }
      const CsvLine line = FindLine(text(), place.offset, options_.csv);
      if (!line.closed) {
        Tell(place.offset, line.next, NeverClosed(place));
      } else if (header) {
        header = false;
      } else if (const absl::Status status = CheckLine(place, line); !status.ok()) {
        Tell(place.offset, line.next, status);
      } else {
        ++found_.records;
      }
      Advance(place, line);
    }
    return absl::OkStatus();
  }

  absl::Status CheckLine(const CsvIndex::Place& place, const CsvLine& line) {
    const auto fields = fields_.Split(text().substr(place.offset, line.end - place.offset));
    if (!fields.ok())
      return DamageAt(place.offset, StrCat("line ", place.line, ": ", Message(fields.status())));
    if (!columns_) columns_ = fields->size();
    if (fields->size() == *columns_) return absl::OkStatus();
    return DamageAt(place.offset, StrCat("line ", place.line, " has ", fields->size(),
                                         " columns, and the first record has ", *columns_));
  }

  const std::shared_ptr<const FileBytes> bytes_;
  const OpenOptions& options_;
  const VerifyCalls& calls_;
  Verification found_;
  CsvFields fields_{options_.csv};
  std::optional<std::size_t> columns_;  // of CSV: of the first record
};

}  // namespace

absl::StatusOr<Verification> VerifyFile(const std::string& path, const OpenOptions& options,
                                        const VerifyCalls& calls) {
  TY_ASSIGN_OR_RETURN(auto bytes, FileBytes::Map(path));
  Format format = options.format;
  if (format == Format::kAuto) {
    TY_ASSIGN_OR_RETURN(format, DetectFormat(path, bytes->view()));
  }
  auto found = Verifier(std::move(bytes), options, calls).Verify(format);
  if (!found.ok()) return Annotate(found.status(), path);
  return found;
}

}  // namespace trainyard::data
