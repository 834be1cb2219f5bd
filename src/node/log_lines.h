// The lines of a container log, taken apart. Pure.
#pragma once

#include <optional>
#include <string_view>

namespace trainyard::node {

// "2024-05-01T10:00:00.123456789Z stdout F text"
struct LogEntry {
  std::string_view time;
  std::string_view stream;
  bool full = true;  // the line ends here
  std::string_view text;
};

// Nothing: it is no entry of a log.
std::optional<LogEntry> ParseLogEntry(std::string_view line);

}  // namespace trainyard::node
