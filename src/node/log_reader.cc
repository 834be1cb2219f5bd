#include "node/log_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "node/log_lines.h"
#include "shim/cri_lines.h"

namespace trainyard::node {
namespace {

constexpr std::size_t kBlock = std::size_t{64} << 10;

std::string PartPath(const std::string& path, unsigned part) {
  return part == 0 ? path : StrCat(path, ".", part);
}

Fd OpenPart(const std::string& path, unsigned part) {
  return Fd(::open(PartPath(path, part).c_str(), O_RDONLY | O_CLOEXEC));
}

bool ReadAt(int file, std::int64_t offset, std::size_t size, std::string& out) {
  out.resize(size);
  std::size_t got = 0;
  while (got < size) {
    const ssize_t n = ::pread(file, out.data() + got, size - got, offset + static_cast<std::int64_t>(got));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    got += static_cast<std::size_t>(n);
  }
  out.resize(got);
  return got == size;
}

bool EndsLine(std::string_view entry) {
  const auto parsed = ParseLogEntry(entry);
  return !parsed || parsed->full;
}

// Counts lines from a log's end towards its beginning. A line is what the process printed: the entries that
// it was cut into count once.
class TailCount {
 public:
  explicit TailCount(std::int64_t lines) : left_(lines) {}

  // Where in the file to begin, if the lines wanted begin in it; else it counts on in the part before it.
  std::optional<std::int64_t> Search(int file, std::int64_t end) {
    std::string carried;  // the entry whose beginning has not been read yet
    std::int64_t at = end;
    std::string block;
    while (at > 0) {
      const auto size = static_cast<std::size_t>(std::min<std::int64_t>(at, kBlock));
      if (!ReadAt(file, at - static_cast<std::int64_t>(size), size, block)) return 0;
      at -= static_cast<std::int64_t>(size);
      block += carried;
      std::size_t stop = block.size();
      while (stop > 0) {
        const std::size_t newline = stop < 2 ? std::string::npos : block.rfind('\n', stop - 2);
        if (newline == std::string::npos && at > 0) break;
        const std::size_t begin = newline == std::string::npos ? 0 : newline + 1;
        if (Passes(std::string_view(block).substr(begin, stop - begin))) {
          return at + static_cast<std::int64_t>(stop);
        }
        stop = begin;
      }
      carried = block.substr(0, stop);
    }
    return std::nullopt;
  }

 private:
  // True: this entry ends a line too many.
  bool Passes(std::string_view entry) {
    if (entry.ends_with('\n')) entry.remove_suffix(1);
    if (!EndsLine(entry) && !first_) return false;
    first_ = false;
    return left_-- <= 0;
  }

  std::int64_t left_;
  bool first_ = true;  // the last entry of all: a line, even if it has no end
};

}  // namespace

LogReader::LogReader(std::string path, const LogView& view)
    : path_(std::move(path)),
      timestamps_(view.timestamps),
      since_(view.since && *view.since > absl::UnixEpoch()
                 ? shim::LogTime(static_cast<std::uint64_t>(absl::ToUnixNanos(*view.since)))
                 : ""),
      tail_lines_(view.tail_lines),
      room_(view.limit_bytes) {}

bool LogReader::OpenAt(unsigned part, std::int64_t offset) {
  file_ = OpenPart(path_, part);
  offset_ = offset;
  return file_.valid();
}

absl::Status LogReader::Open() {
  if (!OpenAt(0, 0)) return ErrnoStatus(errno, StrCat("cannot open ", path_));
  unsigned oldest = 0;
  TailCount tail(tail_lines_.value_or(0));
  for (unsigned part = 0;; ++part) {
    const Fd file = OpenPart(path_, part);
    struct stat info{};
    if (!file.valid() || ::fstat(file.get(), &info) != 0) break;
    oldest = part;
    if (!tail_lines_) continue;
    if (const auto begin = tail.Search(file.get(), info.st_size)) {
      OpenAt(part, *begin);
      return absl::OkStatus();
    }
  }
  // What was moved on while we looked is found again by OpenNext().
  if (oldest > 0 && !OpenAt(oldest, 0)) OpenAt(0, 0);
  return absl::OkStatus();
}

std::optional<unsigned> LogReader::NextPart() const {
  struct stat mine{};
  if (::fstat(file_.get(), &mine) != 0) return std::nullopt;
  unsigned part = 0;
  struct stat info{};
  while (::stat(PartPath(path_, part).c_str(), &info) == 0 && info.st_ino != mine.st_ino) ++part;
  // If ours has been forgotten since, the oldest that there is comes next.
  return part == 0 ? std::nullopt : std::optional(part - 1);
}

bool LogReader::OpenNext() {
  while (const auto part = NextPart()) {
    Fd next = OpenPart(path_, *part);
    if (!next.valid()) return false;
    if (NextPart() != part) continue;  // parts were moved on in between, and this may be another one
    file_ = std::move(next);
    offset_ = 0;
    return true;
  }
  return false;
}

LogReader::Progress LogReader::Read(std::size_t bytes, std::string& out) {
  const std::size_t wanted = out.size() + bytes;
  std::string block;
  while (out.size() < wanted) {
    if (room_ && *room_ <= 0) return Progress::kFull;
    ReadAt(file_.get(), offset_, kBlock, block);
    if (block.empty()) {
      if (!NextPart()) return Progress::kCaught;
      // Nobody writes to this part any more, but somebody may have until it was moved on.
      ReadAt(file_.get(), offset_, kBlock, block);
      if (block.empty()) {
        if (!OpenNext()) return Progress::kCaught;
        continue;
      }
    }
    offset_ += static_cast<std::int64_t>(block.size());
    torn_ += block;
    std::size_t begin = 0;
    for (std::size_t end; (end = torn_.find('\n', begin)) != std::string::npos; begin = end + 1) {
      Print(std::string_view(torn_).substr(begin, end - begin), out);
    }
    torn_.erase(0, begin);
  }
  return room_ && *room_ <= 0 ? Progress::kFull : Progress::kMore;
}

void LogReader::Print(std::string_view line, std::string& out) {
  const auto entry = ParseLogEntry(line);
  if (!entry || entry->time < since_ || (room_ && *room_ <= 0)) return;
  const std::size_t before = out.size();
  if (timestamps_ && at_line_start_) {
    out += entry->time;
    out += ' ';
  }
  out += entry->text;
  if (entry->full) out += '\n';
  at_line_start_ = entry->full;
  if (!room_) return;
  *room_ -= static_cast<std::int64_t>(out.size() - before);
  if (*room_ < 0) out.resize(out.size() - static_cast<std::size_t>(-*room_));
}

}  // namespace trainyard::node
