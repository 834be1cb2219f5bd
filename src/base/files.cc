#include "base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>

#include "base/fd.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard {

absl::StatusOr<std::string> ReadFile(const std::string& path, std::size_t most) {
  const bool standard = path == "-";
  const std::string name = standard ? "standard input" : path;
  Fd file;
  if (!standard) {
    file = Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.valid()) return ErrnoStatus(errno, StrCat("cannot read ", name));
  }
  std::string text;
  std::array<char, 1 << 16> block;
  while (true) {
    const ssize_t n = ::read(standard ? STDIN_FILENO : file.get(), block.data(), block.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, StrCat("cannot read ", name));
    if (n == 0) return text;
    text.append(block.data(), static_cast<std::size_t>(n));
    if (text.size() > most)
      return absl::InvalidArgumentError(StrCat(name, " has more than ", FormatBytes(most)));
  }
}

absl::Status WriteAll(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return ErrnoStatus(errno, StrCat("cannot write ", path));
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return absl::OkStatus();
}

std::string AbsolutePath(std::string_view path) {
  std::error_code error;
  return std::filesystem::absolute(path, error).lexically_normal().string();
}

std::string AbsolutePaths(std::string_view list) {
  std::string out;
  for (const std::string_view path : Split(list, ','))
    StrAppend(out, out.empty() ? "" : ",", path.empty() ? std::string() : AbsolutePath(path));
  return out;
}

absl::Status ReplaceFile(const std::string& path, std::string_view bytes, mode_t mode,
                         Durability durability) {
  const std::string next = path + ".new";
  const Fd file(::open(next.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode));
  if (!file.valid()) return ErrnoStatus(errno, StrCat("cannot make ", next));
  if (::fchmod(file.get(), mode) != 0) return ErrnoStatus(errno, StrCat("cannot set the mode of ", next));
  TY_RETURN_IF_ERROR(WriteAll(file.get(), bytes, next));
  if (durability == Durability::kPower && ::fsync(file.get()) != 0)
    return ErrnoStatus(errno, StrCat("cannot write ", next));
  if (::rename(next.c_str(), path.c_str()) != 0) return ErrnoStatus(errno, StrCat("cannot replace ", path));
  return absl::OkStatus();
}

}  // namespace trainyard
