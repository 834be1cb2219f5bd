#include "kv/disk/file_system.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "base/fd.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::kv {
namespace {

class SystemFile final : public File {
 public:
  SystemFile(Fd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  absl::StatusOr<std::string> ReadAt(std::uint64_t offset, std::size_t length) const override {
    std::string bytes(length, '\0');
    std::size_t done = 0;
    while (done < length) {
      const ssize_t n =
          ::pread(fd_.get(), bytes.data() + done, length - done, static_cast<off_t>(offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return ErrnoStatus(errno, StrCat("cannot read ", path_));
      if (n == 0) break;
      done += static_cast<std::size_t>(n);
    }
    bytes.resize(done);
    return bytes;
  }

  absl::Status WriteAt(std::uint64_t offset, std::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t n = ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return ErrnoStatus(errno, StrCat("cannot write ", path_));
      offset += static_cast<std::uint64_t>(n);
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return absl::OkStatus();
  }

  absl::Status Sync() override {
    if (::fdatasync(fd_.get()) != 0) return ErrnoStatus(errno, StrCat("cannot sync ", path_));
    return absl::OkStatus();
  }

  absl::StatusOr<std::uint64_t> Size() const override {
    struct stat info{};
    if (::fstat(fd_.get(), &info) != 0) return ErrnoStatus(errno, StrCat("cannot stat ", path_));
    return static_cast<std::uint64_t>(info.st_size);
  }

 private:
  Fd fd_;
  std::string path_;
};

class SystemFileSystem final : public FileSystem {
 public:
  absl::Status MakeFolder(const std::string& path) override {
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (error) return ErrnoStatus(error.value(), StrCat("cannot make folder ", path));
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<std::string>> List(const std::string& path) override {
    std::vector<std::string> names;
    std::error_code error;
    for (std::filesystem::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
      names.push_back(it->path().filename().string());
    }
    if (error) return ErrnoStatus(error.value(), StrCat("cannot list folder ", path));
    return names;
  }

  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& path, Mode mode) override {
    const int flags = O_RDWR | O_CLOEXEC | (mode == Mode::kCreate ? O_CREAT | O_TRUNC : 0);
    Fd fd(::open(path.c_str(), flags, 0600));
    if (!fd.valid()) return ErrnoStatus(errno, StrCat("cannot open ", path));
    return std::make_unique<SystemFile>(std::move(fd), path);
  }

  absl::Status Rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) return ErrnoStatus(errno, StrCat("cannot rename ", from));
    return absl::OkStatus();
  }

  absl::Status Remove(const std::string& path) override {
    if (::unlink(path.c_str()) != 0) return ErrnoStatus(errno, StrCat("cannot remove ", path));
    return absl::OkStatus();
  }

  absl::Status SyncFolder(const std::string& path) override {
    const Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd.valid() || ::fsync(fd.get()) != 0) return ErrnoStatus(errno, StrCat("cannot sync folder ", path));
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<File>> Lock(const std::string& path) override {
    Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!fd.valid()) return ErrnoStatus(errno, StrCat("cannot open ", path));
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) return ErrnoStatus(errno, StrCat("cannot lock ", path));
      return HeldBy(SystemFile(std::move(fd), path));
    }
    const std::string pid = StrCat(::getpid(), "\n");
    if (::ftruncate(fd.get(), 0) != 0) return ErrnoStatus(errno, StrCat("cannot write ", path));
    auto lock = std::make_unique<SystemFile>(std::move(fd), path);
    TY_RETURN_IF_ERROR(lock->WriteAt(0, pid));
    return lock;
  }

 private:
  static absl::Status HeldBy(const SystemFile& lock) {
    TY_ASSIGN_OR_RETURN(std::string text, lock.ReadAt(0, 32));
    const std::string_view pid = Split(text, '\n').front();
    if (pid == StrCat(::getpid())) {
      return absl::FailedPreconditionError(StrCat("is in use by this very process (pid ", pid, ")"));
    }
    return absl::FailedPreconditionError(StrCat("is in use by process ", pid.empty() ? "unknown" : pid,
                                                ": stop that process first, or use it"));
  }
};

}  // namespace

FileSystem& FileSystem::System() {
  static SystemFileSystem system;
  return system;
}

}  // namespace trainyard::kv
