#include "shim/run.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace trainyard::shim {
namespace {

// A process that prints without pause shall not keep the loop from the others.
constexpr int kReadsAtOnce = 4;
constexpr int kReadsAtEnd = 64;

// Of "oom_kill 3" among other lines; v2 has it in memory.events, v1 in memory.oom_control.
std::uint64_t ReadCounter(const std::string& path) {
  std::string text;
  if (!ReadSmallFile(AT_FDCWD, path.c_str(), text)) return 0;
  text.insert(0, "\n");
  const std::size_t at = text.find("\noom_kill ");
  return at == std::string::npos ? 0 : std::strtoull(text.c_str() + at + 10, nullptr, 10);
}

bool ReadOnce(Run& run, bool error_stream, bool& more) {
  static char room[65536];
  OwnedFd& pipe = error_stream ? run.child.err : run.child.out;
  const ssize_t got = ::read(pipe.get(), room, sizeof room);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
    more = true;
    return false;
  }
  more = got > 0;
  if (got <= 0) {
    pipe.Reset();
    return false;
  }
  const std::string_view bytes(room, static_cast<std::size_t>(got));
  if (run.is_exec) {
    run.output += bytes.substr(0, run.output_limit - std::min(run.output_limit, run.output.size()));
    return true;
  }
  std::string entries;
  (error_stream ? run.err_lines : run.out_lines).Feed(bytes, WallNanos(), entries);
  run.log.Write(entries);
  return true;
}

}  // namespace

bool Run::ReadStream(bool error_stream) {
  bool more = true;
  for (int i = 0; i < kReadsAtOnce; ++i) {
    if (!ReadOnce(*this, error_stream, more)) break;
  }
  return more;
}

void Run::DrainStreams() {
  for (const bool error_stream : {false, true}) {
    bool more = true;
    for (int i = 0; i < kReadsAtEnd && (error_stream ? child.err : child.out).valid(); ++i) {
      if (!ReadOnce(*this, error_stream, more)) break;
    }
  }
  if (is_exec) return;
  std::string entries;
  out_lines.End(WallNanos(), entries);
  err_lines.End(WallNanos(), entries);
  log.Write(entries);
}

std::uint64_t CountOomKills(const std::vector<std::string>& cgroups) {
  std::uint64_t kills = 0;
  for (const std::string& folder : cgroups) {
    kills += ReadCounter(folder + "/memory.events") + ReadCounter(folder + "/memory.oom_control");
  }
  return kills;
}

}  // namespace trainyard::shim
