#include "agent/http_answer.h"

#include <charconv>

#include "agent/json_text.h"

namespace trainyard::agent {
namespace {

std::string_view Phrase(int code) {
  switch (code) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 411:
      return "Length Required";
    case 413:
      return "Content Too Large";
    case 424:
      return "Failed Dependency";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Error";
  }
}

std::string StatusLine(int code) {
  std::string line = "HTTP/1.1 " + std::to_string(code) + " ";
  line += Phrase(code);
  return line += "\r\n";
}

std::string_view ConnectionHeader(bool keep_alive) {
  return keep_alive ? "Connection: keep-alive\r\n" : "Connection: close\r\n";
}

}  // namespace

Answer ErrorAnswer(int code, std::string_view what) {
  return {.code = code, .body = "{\"error\": " + Quote(what) + "}\n"};
}

std::string PrintAnswer(const Answer& answer, bool keep_alive) {
  std::string out = StatusLine(answer.code);
  out.append("Content-Type: ").append(answer.type).append("\r\n");
  out.append("Content-Length: ").append(std::to_string(answer.body.size())).append("\r\n");
  if (answer.code == 401) out += "WWW-Authenticate: Bearer\r\n";
  if (!answer.allow.empty()) out.append("Allow: ").append(answer.allow).append("\r\n");
  out.append(ConnectionHeader(keep_alive)).append("\r\n").append(answer.body);
  return out;
}

std::string PrintLogHead(const LogHead& head) {
  std::string out = StatusLine(200);
  out += "Content-Type: text/plain; charset=utf-8\r\n";
  out.append("X-Log-From: ").append(std::to_string(head.from)).append("\r\n");
  if (head.size) {
    out.append("Content-Length: ").append(std::to_string(*head.size)).append("\r\n");
  } else if (head.chunks) {
    out += "Transfer-Encoding: chunked\r\n";
  }
  const bool keep_alive = head.keep_alive && (head.size || head.chunks);
  return out.append(ConnectionHeader(keep_alive)).append("\r\n");
}

std::string PrintChunk(std::string_view bytes) {
  char digits[20];
  const auto end = std::to_chars(digits, digits + sizeof digits, bytes.size(), 16).ptr;
  std::string out(digits, end);
  return out.append("\r\n").append(bytes).append("\r\n");
}

}  // namespace trainyard::agent
