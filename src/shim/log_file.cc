#include "shim/log_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

namespace trainyard::shim {
namespace {

int OpenForAppend(const std::string& path) {
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
}

}  // namespace

Failure LogFile::Open(std::string path, Limits limits) {
  path_ = std::move(path);
  limits_ = limits;
  file_ = OwnedFd(OpenForAppend(path_));
  if (!file_.valid()) return Failure::Here("cannot open the log " + path_);
  struct stat info{};
  if (::fstat(file_.get(), &info) == 0) size_ = static_cast<std::uint64_t>(info.st_size);
  return Failure::None();
}

void LogFile::Write(std::string_view entries) {
  while (!entries.empty()) {
    // A file ends with a whole entry, so that each can be read for itself.
    std::size_t take = entries.size();
    if (size_ + take > limits_.bytes) {
      const std::size_t room = limits_.bytes > size_ ? static_cast<std::size_t>(limits_.bytes - size_) : 0;
      const std::size_t end = entries.substr(0, room).rfind('\n');
      if (end != std::string_view::npos) {
        take = end + 1;
      } else if (size_ > 0) {
        Rotate();
        continue;
      } else {
        take = entries.find('\n') + 1;
      }
    }
    (void)WriteAll(file_.get(), entries.substr(0, take));
    size_ += take;
    entries.remove_prefix(take);
  }
}

void LogFile::Rotate() {
  for (unsigned number = limits_.files; number-- > 1;) {
    const std::string older = path_ + "." + std::to_string(number);
    const std::string newer = number == 1 ? path_ : path_ + "." + std::to_string(number - 1);
    ::rename(newer.c_str(), older.c_str());
  }
  if (limits_.files <= 1) ::unlink(path_.c_str());
  // If there is no new file to be had the old one goes on: too long is better than nothing.
  OwnedFd next(OpenForAppend(path_));
  if (next.valid()) file_ = std::move(next);
  size_ = 0;
}

}  // namespace trainyard::shim
