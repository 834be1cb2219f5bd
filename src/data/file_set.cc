#include "data/file_set.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::data {

class FileSet::Cursor final : public RecordCursor {
 public:
  explicit Cursor(const FileSet& files) : files_(files) {}

  absl::Status Read(RecordRange range, RecordVisitor visit) override {
    const std::uint64_t count = files_.Count();
    if (range.first > count || range.count > count - range.first) {
      return absl::OutOfRangeError(StrCat("no ", range.count, " records from number ", range.first,
                                          " on: there are ", count, ", from 0 on"));
    }
    while (range.count > 0) {
      const std::size_t file = files_.Find(range.first);
      const std::uint64_t here = std::min(range.count, files_.ends_[file] - range.first);
      TY_RETURN_IF_ERROR(ReadOf(file, {range.first - files_.FirstOf(file), here}, visit));
      range = {range.first + here, range.count - here};
    }
    return absl::OkStatus();
  }

 private:
  absl::Status ReadOf(std::size_t file, RecordRange range, RecordVisitor visit) {
    if (reader_ == nullptr || file != file_) {
      reader_.reset();
      TY_ASSIGN_OR_RETURN(auto bytes, files_.pool_.Get(file));
      reader_ = files_.files_[file].index->NewReader(std::move(bytes), scratch_);
      file_ = file;
    }
    // The visitor's error is its own: it is not about the file.
    absl::Status refused;
    const absl::Status status = reader_->Read(range, [&](std::string_view record) {
      absl::Status answer = visit(record);
      if (!answer.ok()) [[unlikely]]
        refused = answer;
      return answer;
    });
    if (status.ok() || !refused.ok()) return status;
    return Annotate(status, files_.files_[file].path);
  }

  const FileSet& files_;
  Scratch scratch_;
  std::size_t file_ = 0;
  std::unique_ptr<FileReader> reader_;  // of file_
};

void FileSet::Add(std::string path, std::unique_ptr<const RecordFile> file,
                  std::shared_ptr<const FileBytes> bytes) {
  ends_.push_back(Count() + file->Count());
  pool_.Add(path, std::move(bytes));
  files_.push_back({.path = std::move(path), .index = std::move(file)});
}

std::unique_ptr<RecordCursor> FileSet::NewCursor() const { return std::make_unique<Cursor>(*this); }

std::string FileSet::Where(std::uint64_t number) const {
  TY_CHECK(number < Count(), "a record lies somewhere if it exists");
  const std::size_t file = Find(number);
  const std::uint64_t within = number - FirstOf(file);
  const auto bytes = pool_.Get(file);
  // Of a file that has vanished in the meantime, its name and the record's number are all that is known.
  if (!bytes.ok()) return StrCat(files_[file].path, ": record ", within);
  return StrCat(files_[file].path, ": ", files_[file].index->Where(within, **bytes));
}

const ItemShape* FileSet::Shape() const { return files_.empty() ? nullptr : files_.front().index->Shape(); }

std::size_t FileSet::Find(std::uint64_t number) const {
  return static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), number) - ends_.begin());
}

}  // namespace trainyard::data
