#include "base/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

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

}  // namespace trainyard
