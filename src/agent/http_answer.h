// Answers as they go over the wire.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace trainyard::agent {

struct Answer {
  int code = 200;
  std::string body;
  std::string_view type = "application/json";
  std::string_view allow;  // of a 405: what would be right

  bool operator==(const Answer&) const = default;
};

// {"error": what}.
Answer ErrorAnswer(int code, std::string_view what);

std::string PrintAnswer(const Answer& answer, bool keep_alive);

// The head of a log: raw bytes from `from` on.
struct LogHead {
  std::uint64_t from = 0;
  std::optional<std::uint64_t> size;  // none: it goes on
  bool chunks = true;                 // how it goes on; if not, its end is the connection's
  bool keep_alive = true;
};
std::string PrintLogHead(const LogHead& head);

std::string PrintChunk(std::string_view bytes);
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

}  // namespace trainyard::agent
