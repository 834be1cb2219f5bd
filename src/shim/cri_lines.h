// What a process prints, cut into the lines of a container log:
//
//   2024-05-01T10:00:00.123456789Z stdout F the line, without its end
//
// F is a full line; P one that goes on in the next entry, because it is longer than 16 KiB or because the
// output ended without a newline. So the bytes can be put together again exactly.
#pragma once

#include <time.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace trainyard::shim {

inline constexpr std::size_t kMaxLineBytes = std::size_t{16} << 10;

inline std::string LogTime(std::uint64_t wall_nanos) {
  const auto seconds = static_cast<time_t>(wall_nanos / 1'000'000'000);
  tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[64];
  const int size =
      std::snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d.%09lluZ", parts.tm_year + 1900,
                    parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                    static_cast<unsigned long long>(wall_nanos % 1'000'000'000));
  return {text, static_cast<std::size_t>(size)};
}

// One stream of one process.
class CriLines {
 public:
  explicit CriLines(std::string_view stream) : stream_(stream) {}

  // Appends to `out` the entries that these bytes complete; the rest waits for its end.
  void Feed(std::string_view bytes, std::uint64_t wall_nanos, std::string& out) {
    const std::string time = LogTime(wall_nanos);
    while (!bytes.empty()) {
      const std::size_t room = kMaxLineBytes - pending_.size();
      const std::size_t newline = bytes.substr(0, room + 1).find('\n');
      if (newline != std::string_view::npos) {
        Entry(time, "F", bytes.substr(0, newline), out);
        bytes.remove_prefix(newline + 1);
      } else if (bytes.size() >= room + 1) {
        Entry(time, "P", bytes.substr(0, room), out);
        bytes.remove_prefix(room);
      } else {
        pending_ += bytes;
        return;
      }
    }
  }
  // The output is over.
  void End(std::uint64_t wall_nanos, std::string& out) {
    if (!pending_.empty()) Entry(LogTime(wall_nanos), "P", "", out);
  }

 private:
  void Entry(std::string_view time, std::string_view tag, std::string_view last, std::string& out) {
    out += time;
    out += ' ';
    out += stream_;
    out += ' ';
    out += tag;
    out += ' ';
    out += pending_;
    out += last;
    out += '\n';
    pending_.clear();
  }

  std::string_view stream_;
  std::string pending_;  // at most kMaxLineBytes
};

}  // namespace trainyard::shim
