#include "data/recordio/writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <utility>

#include "base/files.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::data {
namespace {

std::string FolderOf(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "./" : path.substr(0, slash + 1);
}

// Hidden, so that no glob finds it; unlike any other of this process, and tried again if another process of
// that number has left one.
std::string NextDraftName(const std::string& path) {
  static std::atomic<std::uint64_t> next = 0;
  const std::string folder = FolderOf(path);
  const std::string name = path.substr(path.rfind('/') + 1);
  return StrCat(folder, ".", name, ".", ::getpid(), "-", next++, ".draft");
}

absl::Status SyncFolder(const std::string& folder) {
  const Fd opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.valid()) return ErrnoStatus(errno, StrCat("cannot open ", folder));
  if (::fsync(opened.get()) != 0) return ErrnoStatus(errno, StrCat("cannot sync ", folder));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<RecordIoWriter>> RecordIoWriter::Create(const std::string& path,
                                                                       RecordIoWriterOptions options) {
  if (options.max_chunk_bytes == 0) options.max_chunk_bytes = kDefaultChunkBytes;
  if (options.max_chunk_bytes > kMaxChunkBytes) {
    return absl::InvalidArgumentError(StrCat("cannot write ", path, " with chunks of ",
                                             options.max_chunk_bytes, " bytes: at most ", kMaxChunkBytes));
  }
  struct stat found{};
  if (path.empty() || path.back() == '/' || (::stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode))) {
    return absl::InvalidArgumentError(StrCat("cannot write to '", path, "': it is no name of a file"));
  }
  for (int tries = 0;; ++tries) {
    std::string draft = NextDraftName(path);
    Fd file(::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (file.valid()) {
      return std::unique_ptr<RecordIoWriter>(
          new RecordIoWriter(path, std::move(draft), std::move(file), options));
    }
    if (errno != EEXIST || tries == 1000) return ErrnoStatus(errno, StrCat("cannot make ", draft));
  }
}

RecordIoWriter::RecordIoWriter(std::string path, std::string draft, Fd file, RecordIoWriterOptions options)
    : path_(std::move(path)),
      draft_(std::move(draft)),
      file_(std::move(file)),
      max_chunk_bytes_(options.max_chunk_bytes),
      chunk_(options.compressor) {}

RecordIoWriter::~RecordIoWriter() {
  if (file_.valid()) ::unlink(draft_.c_str());
}

absl::Status RecordIoWriter::Write(std::string_view record) {
  TY_RETURN_IF_ERROR(broken_);
  if (!file_.valid()) return absl::FailedPreconditionError(StrCat(path_, " is closed already"));
  if (record.size() >= max_chunk_bytes_) {
    return absl::InvalidArgumentError(StrCat("a record of ", record.size(), " bytes is too large for ", path_,
                                             ", which has chunks of at most ", max_chunk_bytes_,
                                             ": raise max_chunk_bytes"));
  }
  if (chunk_.record_bytes() + record.size() > max_chunk_bytes_ ||
      chunk_.unpacked_bytes() + 4 + record.size() > kMaxChunkBytes) {
    TY_RETURN_IF_ERROR(Flush());
  }
  chunk_.Add(record);
  return absl::OkStatus();
}

absl::Status RecordIoWriter::Flush() {
  if (chunk_.empty()) return absl::OkStatus();
  const std::string_view chunk = chunk_.Finish();
  broken_ = WriteAll(file_.get(), chunk, draft_);
  if (broken_.ok()) written_bytes_ += chunk.size();
  return broken_;
}

absl::Status RecordIoWriter::Close() {
  if (broken_.ok() && !file_.valid())
    return absl::FailedPreconditionError(StrCat(path_, " is closed already"));
  if (broken_.ok()) broken_ = Flush();
  if (broken_.ok()) broken_ = Publish();
  return broken_;
}

absl::Status RecordIoWriter::Publish() {
  if (::fsync(file_.get()) != 0) return ErrnoStatus(errno, StrCat("cannot sync ", draft_));
  if (::rename(draft_.c_str(), path_.c_str()) != 0) {
    return ErrnoStatus(errno, StrCat("cannot rename ", draft_, " to ", path_));
  }
  file_.Reset();
  return SyncFolder(FolderOf(path_));
}

}  // namespace trainyard::data
