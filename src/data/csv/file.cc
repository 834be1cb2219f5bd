#include "data/csv/file.h"

#include <string>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "data/damage.h"

namespace trainyard::data {
namespace {

class CsvFile final : public RecordFile {
 public:
  CsvFile(CsvIndex index, const CsvOptions& options) : index_(std::move(index)), options_(options) {}

  std::uint64_t Count() const override { return index_.Count(); }

  std::unique_ptr<FileReader> NewReader(std::shared_ptr<const FileBytes> bytes, Scratch&) const override {
    return std::make_unique<Reader>(*this, std::move(bytes));
  }

  std::string Where(std::uint64_t number, const FileBytes& bytes) const override {
    CsvIndex::Place place = index_.Before(number);
    if (!bytes.CheckUnchanged().ok()) return StrCat("record ", number);
    while (place.record < number && place.offset < bytes.view().size()) {
      Advance(place, FindLine(bytes.view(), place.offset, options_));
    }
    return StrCat("line ", place.line);
  }

 private:
  class Reader final : public FileReader {
   public:
    Reader(const CsvFile& file, std::shared_ptr<const FileBytes> bytes)
        : file_(file), bytes_(std::move(bytes)), at_(file.index_.Before(0)) {}

    absl::Status Read(RecordRange range, RecordVisitor visit) override {
      TY_RETURN_IF_ERROR(bytes_->CheckUnchanged());
      const CsvIndex::Place& noted = file_.index_.Before(range.first);
      if (at_.record > range.first || at_.record < noted.record) at_ = noted;
      const std::string_view text = bytes_->view();
      for (const std::uint64_t end = range.first + range.count; at_.record < end;) {
        // Only if it was changed under our hands is there less than the index knows.
        if (at_.offset >= text.size()) return DamageAt(at_.offset, "the file has fewer lines than it had");
        const std::uint64_t start = at_.offset;
        const CsvLine line = FindLine(text, start, file_.options_);
        const bool wanted = at_.record >= range.first;
        Advance(at_, line);
        if (wanted) TY_RETURN_IF_ERROR(visit(text.substr(start, line.end - start)));
      }
      return absl::OkStatus();
    }

   private:
    const CsvFile& file_;
    const std::shared_ptr<const FileBytes> bytes_;
    CsvIndex::Place at_;  // the next record if they are read in order
  };

  const CsvIndex index_;
  const CsvOptions options_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<const RecordFile>> OpenCsv(const FileBytes& bytes, const CsvOptions& options) {
  TY_ASSIGN_OR_RETURN(auto index, CsvIndex::Build(bytes.view(), options));
  return std::make_unique<const CsvFile>(std::move(index), options);
}

}  // namespace trainyard::data
