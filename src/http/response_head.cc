#include "http/response_head.h"

#include <algorithm>

#include "base/text.h"

namespace trainyard::http {
namespace {

void AppendHeader(std::string& out, std::string_view name, std::string_view value) {
  StrAppend(out, name, ": ");
  const std::size_t start = out.size();
  out += value;
  std::replace_if(
      out.begin() + static_cast<std::ptrdiff_t>(start), out.end(),
      [](char c) { return c == '\r' || c == '\n' || c == '\0'; }, ' ');
  out += "\r\n";
}

}  // namespace

bool MayHaveBody(int code) { return code >= 200 && code != 204 && code != 304; }

std::string_view ReasonPhrase(int code) {
  switch (code) {
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 206:
      return "Partial Content";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 303:
      return "See Other";
    case 304:
      return "Not Modified";
    case 307:
      return "Temporary Redirect";
    case 308:
      return "Permanent Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return code < 300 ? "OK" : code < 400 ? "Redirect" : code < 500 ? "Client Error" : "Server Error";
  }
}

std::string PrintResponseHead(const Response& response, const ResponseFraming& framing,
                              std::string_view date) {
  std::string out;
  out.reserve(256);
  StrAppend(out, framing.http11 ? "HTTP/1.1 " : "HTTP/1.0 ", response.code, " ", ReasonPhrase(response.code),
            "\r\n");
  if (!response.content_type.empty() && MayHaveBody(response.code)) {
    AppendHeader(out, "Content-Type", response.content_type);
  }
  for (const auto& [name, value] : response.headers) AppendHeader(out, name, value);
  StrAppend(out, "Date: ", date, "\r\n");
  if (framing.chunked) {
    out += "Transfer-Encoding: chunked\r\n";
  } else if (framing.length && MayHaveBody(response.code)) {
    StrAppend(out, "Content-Length: ", *framing.length, "\r\n");
  }
  if (!framing.keep_alive) {
    out += "Connection: close\r\n";
  } else if (!framing.http11) {
    out += "Connection: keep-alive\r\n";
  }
  out += "\r\n";
  return out;
}

std::string PrintHttpDate(absl::Time time) {
  return absl::FormatTime("%a, %d %b %E4Y %H:%M:%S GMT", time, absl::UTCTimeZone());
}

}  // namespace trainyard::http
