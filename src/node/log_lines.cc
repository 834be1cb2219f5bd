#include "node/log_lines.h"

namespace trainyard::node {

std::optional<LogEntry> ParseLogEntry(std::string_view line) {
  LogEntry entry;
  const auto take = [&line](std::string_view& word) {
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos) return false;
    word = line.substr(0, space);
    line.remove_prefix(space + 1);
    return true;
  };
  std::string_view tag;
  if (!take(entry.time) || !take(entry.stream) || !take(tag)) return std::nullopt;
  if (entry.time.empty() || (tag != "F" && tag != "P")) return std::nullopt;
  entry.full = tag == "F";
  entry.text = line;
  return entry;
}

}  // namespace trainyard::node
