#include "agent/attempt_log.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>

namespace trainyard::agent {
namespace {

constexpr std::uint64_t kMemoryBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kLogs = 2;
constexpr std::uint64_t kFilesOfALog = 2;

OwnedFd OpenInFolder(const std::string& folder) {
  ::mkdir(folder.c_str(), 0700);
  std::string path = folder + "/trainyard-agent.XXXXXX";
  OwnedFd file(::mkostemp(path.data(), O_CLOEXEC));
  if (file.valid()) ::unlink(path.c_str());
  return file;
}

bool WriteAt(int fd, std::string_view bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
  return true;
}

}  // namespace

LogSpace::LogSpace(std::string folder, std::uint64_t bytes)
    : LogSpace([folder = std::move(folder)] { return OpenInFolder(folder); },
               [] { return OwnedFd(::memfd_create("trainyard-agent-log", MFD_CLOEXEC)); }, bytes) {}

LogSpace::LogSpace(Opener disk, Opener memory, std::uint64_t bytes)
    : disk_(std::move(disk)), memory_(std::move(memory)), bytes_(bytes) {}

void LogSpace::LeaveDisk(const Failure& why) {
  if (!on_disk_) return;
  on_disk_ = false;
  (void)WriteAll(STDERR_FILENO, "trainyard-agent: " + why.Text() +
                                    "; from now on the last output is kept in memory, 1 MiB at most\n");
}

OwnedFd LogSpace::Open() {
  if (on_disk_) {
    OwnedFd file = disk_();
    if (file.valid()) return file;
    LeaveDisk(Failure::Here("cannot make a file for the output, see --state-dir"));
  }
  return memory_();
}

std::uint64_t LogSpace::FileBytes() const {
  const std::uint64_t all = on_disk_ ? bytes_ : std::min(bytes_, kMemoryBytes);
  return std::max<std::uint64_t>(all / kLogs / kFilesOfALog, 1);
}

std::uint64_t AttemptLog::begin() const { return files_.empty() ? end_ : files_.front().begin; }

bool AttemptLog::AddFile() {
  if (files_.size() == kFilesOfALog) files_.erase(files_.begin());
  OwnedFd fd = space_.Open();
  if (!fd.valid()) return false;
  files_.push_back({.fd = std::move(fd), .begin = end_, .limit = space_.FileBytes()});
  return true;
}

void AttemptLog::Append(std::string_view bytes) {
  while (!bytes.empty()) {
    if (files_.empty() || files_.back().size >= files_.back().limit) {
      if (!AddFile()) break;
    }
    File& file = files_.back();
    const std::size_t take =
        static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), file.limit - file.size));
    if (!WriteAt(file.fd.get(), bytes.substr(0, take), file.size)) {
      if (!space_.on_disk() && file.size == 0) break;
      // The disk is full: what it took stays readable, and the rest goes to memory.
      space_.LeaveDisk(Failure::Here("cannot write the output"));
      file.limit = file.size;
      continue;
    }
    file.size += take;
    end_ += take;
    bytes.remove_prefix(take);
  }
  if (bytes.empty()) return;
  files_.clear();
  end_ += bytes.size();
}

std::string AttemptLog::Read(std::uint64_t offset, std::size_t most) const {
  std::string out;
  for (const File& file : files_) {
    if (offset < file.begin || offset >= file.begin + file.size) continue;
    out.resize(static_cast<std::size_t>(std::min<std::uint64_t>(most, file.begin + file.size - offset)));
    const ssize_t got =
        ::pread(file.fd.get(), out.data(), out.size(), static_cast<off_t>(offset - file.begin));
    out.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    break;
  }
  return out;
}

std::uint64_t AttemptLog::FindTail(std::uint64_t lines) const {
  constexpr std::uint64_t kStep = 4096;
  std::uint64_t at = end_;
  // The newline at the very end ends the last line; it begins none.
  std::uint64_t missing = lines;
  std::uint64_t last = end_;
  while (at > begin() && lines > 0) {
    const std::uint64_t from = at - begin() > kStep ? at - kStep : begin();
    std::string piece;
    while (from + piece.size() < at) {
      const std::string more = Read(from + piece.size(), static_cast<std::size_t>(at - from) - piece.size());
      if (more.empty()) return last;
      piece += more;
    }
    for (std::size_t i = piece.size(); i-- > 0;) {
      if (piece[i] != '\n' || from + i + 1 == end_) continue;
      last = from + i + 1;
      if (--missing == 0) return last;
    }
    at = from;
  }
  return lines == 0 ? end_ : begin();
}

}  // namespace trainyard::agent
