#include "data/record_output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::data {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "data-";

std::string FileName(std::uint64_t number) {
  const std::string digits = StrCat(number);
  return StrCat(kPrefix, std::string(5 - std::min<std::size_t>(5, digits.size()), '0'), digits);
}

// Whether a file of a folder is one that we could have made.
bool IsOurs(std::string_view name) {
  if (!name.starts_with(kPrefix)) return false;
  const auto number = ParseNumber<std::uint64_t>(name.substr(kPrefix.size()));
  return number && FileName(*number) == name;
}

absl::StatusOr<std::vector<std::string>> VisibleNames(const std::string& folder) {
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  std::vector<std::string> names;
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    std::string name = entry->path().filename().string();
    if (!name.starts_with('.')) names.push_back(std::move(name));
  }
  if (error) return ErrnoStatus(error.value(), StrCat("cannot list ", folder));
  std::ranges::sort(names);
  return names;
}

absl::Status Rename(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  return ErrnoStatus(errno, StrCat("cannot rename ", from, " to ", to));
}

class FileOutput final : public RecordOutput {
 public:
  explicit FileOutput(std::unique_ptr<RecordIoWriter> writer) : writer_(std::move(writer)) {}

  absl::Status Write(std::string_view record) override { return writer_->Write(record); }

  absl::StatusOr<OutputSize> Finish() override {
    TY_RETURN_IF_ERROR(writer_->Close());
    return OutputSize{.files = 1, .bytes = writer_->written_bytes()};
  }

 private:
  std::unique_ptr<RecordIoWriter> writer_;
};

// Files are written in a hidden folder first: beside one that is new, or within one that was there, which may
// be where a disk is mounted and cannot itself be replaced.
class FolderOutput final : public RecordOutput {
 public:
  FolderOutput(const OutputOptions& options, std::string folder)
      : options_(options), folder_(std::move(folder)) {}

  ~FolderOutput() override {
    writer_.reset();
    std::error_code ignored;
    if (!draft_.empty()) fs::remove_all(draft_, ignored);
  }

  absl::Status Begin() {
    struct stat found{};
    is_new_ = ::stat(folder_.c_str(), &found) != 0;
    if (!is_new_) TY_RETURN_IF_ERROR(LookAtOld());
    const fs::path folder(folder_);
    std::string draft =
        is_new_ ? (folder.parent_path() / StrCat(".", folder.filename().string(), ".XXXXXX")).string()
                : (folder / ".draft.XXXXXX").string();
    if (::mkdtemp(draft.data()) == nullptr) return ErrnoStatus(errno, StrCat("cannot make ", draft));
    draft_ = std::move(draft);
    return NextFile();
  }

  absl::Status Write(std::string_view record) override {
    if (options_.records_per_file > 0 && records_ == options_.records_per_file) {
      TY_RETURN_IF_ERROR(CloseFile());
      TY_RETURN_IF_ERROR(NextFile());
    }
    TY_RETURN_IF_ERROR(writer_->Write(record));
    ++records_;
    return absl::OkStatus();
  }

  absl::StatusOr<OutputSize> Finish() override {
    TY_RETURN_IF_ERROR(CloseFile());
    TY_RETURN_IF_ERROR(is_new_ ? PublishFolder() : PublishFiles());
    return size_;
  }

 private:
  absl::Status LookAtOld() {
    TY_ASSIGN_OR_RETURN(old_, VisibleNames(folder_));
    if (old_.empty()) return absl::OkStatus();
    if (!options_.overwrite) {
      return absl::AlreadyExistsError(StrCat(folder_, " has files already, such as ", old_.front(),
                                             ": name another folder, or overwrite it"));
    }
    const auto other = std::ranges::find_if_not(old_, IsOurs);
    if (other == old_.end()) return absl::OkStatus();
    return absl::AlreadyExistsError(
        StrCat(folder_, " has ", *other, ", which is not overwritten: name another folder, or remove it"));
  }

  absl::Status NextFile() {
    TY_ASSIGN_OR_RETURN(writer_,
                        RecordIoWriter::Create(StrCat(draft_, "/", FileName(size_.files)), options_.writer));
    records_ = 0;
    return absl::OkStatus();
  }

  absl::Status CloseFile() {
    TY_RETURN_IF_ERROR(writer_->Close());
    size_.bytes += writer_->written_bytes();
    ++size_.files;
    return absl::OkStatus();
  }

  absl::Status PublishFolder() {
    // mkdtemp's is for its owner alone.
    const mode_t mask = ::umask(0);
    ::umask(mask);
    if (::chmod(draft_.c_str(), 0777 & ~mask) != 0)
      return ErrnoStatus(errno, StrCat("cannot open up ", draft_));
    TY_RETURN_IF_ERROR(Rename(draft_, folder_));
    draft_.clear();
    return Sync(fs::path(folder_).parent_path().string());
  }

  absl::Status PublishFiles() {
    for (std::uint64_t i = 0; i < size_.files; ++i) {
      TY_RETURN_IF_ERROR(Rename(StrCat(draft_, "/", FileName(i)), StrCat(folder_, "/", FileName(i))));
    }
    for (const std::string& name : old_) {
      const auto number = ParseNumber<std::uint64_t>(std::string_view(name).substr(kPrefix.size()));
      const std::string path = StrCat(folder_, "/", name);
      if (*number >= size_.files && ::unlink(path.c_str()) != 0) {
        return ErrnoStatus(errno, StrCat("cannot remove ", path));
      }
    }
    return Sync(folder_);
  }

  static absl::Status Sync(const std::string& folder) {
    const Fd opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!opened.valid() || ::fsync(opened.get()) != 0)
      return ErrnoStatus(errno, StrCat("cannot sync ", folder));
    return absl::OkStatus();
  }

  const OutputOptions options_;
  const std::string folder_;
  bool is_new_ = false;
  std::vector<std::string> old_;  // names in the folder as it was
  std::string draft_;             // a folder
  std::unique_ptr<RecordIoWriter> writer_;
  std::uint64_t records_ = 0;  // in its file so far
  OutputSize size_;            // of the files that are closed
};

}  // namespace

absl::StatusOr<std::unique_ptr<RecordOutput>> RecordOutput::Create(const OutputOptions& options) {
  if (options.path.empty()) return absl::InvalidArgumentError("the name of what is to be written is empty");
  struct stat found{};
  const bool exists = ::stat(options.path.c_str(), &found) == 0;
  const bool is_folder = exists && S_ISDIR(found.st_mode);
  if (is_folder || options.records_per_file > 0 || options.path.back() == '/') {
    if (exists && !is_folder) {
      return absl::InvalidArgumentError(
          StrCat(options.path, " is a file: name a folder to have several files in"));
    }
    // Absolute, so that it has a folder around it whatever it is called.
    std::string folder = fs::absolute(options.path).lexically_normal().string();
    while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
    auto output = std::make_unique<FolderOutput>(options, std::move(folder));
    TY_RETURN_IF_ERROR(output->Begin());
    return output;
  }
  if (exists && !S_ISREG(found.st_mode)) {
    return absl::InvalidArgumentError(StrCat(options.path, " is neither a file nor a folder"));
  }
  if (exists && !options.overwrite) {
    return absl::AlreadyExistsError(
        StrCat(options.path, " is there already: name another file, or overwrite it"));
  }
  TY_ASSIGN_OR_RETURN(auto writer, RecordIoWriter::Create(options.path, options.writer));
  return std::make_unique<FileOutput>(std::move(writer));
}

}  // namespace trainyard::data
