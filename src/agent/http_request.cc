#include "agent/http_request.h"

#include <algorithm>
#include <charconv>

namespace trainyard::agent {
namespace {

bool IsTokenCharacter(char c) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         kMarks.find(c) != std::string_view::npos;
}

bool IsToken(std::string_view text) { return !text.empty() && std::ranges::all_of(text, IsTokenCharacter); }

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool IsControl(char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f; }

// Up to the separator, which is removed with it.
std::string_view CutFirst(std::string_view& rest, std::string_view separator) {
  const std::size_t at = rest.find(separator);
  const std::string_view first = rest.substr(0, at);
  rest.remove_prefix(at == std::string_view::npos ? rest.size() : at + separator.size());
  return first;
}

bool Decode(std::string_view text, std::string& out) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    unsigned code = 0;
    const std::string_view digits = text.substr(i + 1, 2);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    if (error != std::errc() || digits.size() != 2 || end != digits.data() + 2 || code == 0) return false;
    out += static_cast<char>(code);
    i += 2;
  }
  return true;
}

}  // namespace

const std::string* Request::Find(std::string_view name) const {
  const std::string* found = nullptr;
  for (const auto& [key, value] : query) {
    if (key == name) found = &value;
  }
  return found;
}

std::size_t RequestParser::Feed(std::string_view bytes) {
  if (stage_ == Stage::kHead) return FeedHead(bytes);
  if (stage_ != Stage::kBody) return 0;
  const std::size_t missing = static_cast<std::size_t>(length_.value_or(0)) - request_.body.size();
  const std::size_t taken = std::min(missing, bytes.size());
  request_.body.append(bytes.substr(0, taken));
  if (taken == missing) stage_ = Stage::kDone;
  return taken;
}

std::size_t RequestParser::FeedHead(std::string_view bytes) {
  const std::size_t before = head_.size();
  const std::size_t taken = std::min(kMaxHeadBytes - before, bytes.size());
  head_.append(bytes.substr(0, taken));
  // One empty line before a request is allowed.
  const std::size_t begin = head_.starts_with("\r\n") ? 2 : 0;
  const std::size_t end = head_.find("\r\n\r\n", std::max(begin, before > 3 ? before - 3 : 0));
  if (end == std::string::npos) {
    if (head_.size() == kMaxHeadBytes) {
      Refuse(431, "the head of the request has more than 16 KiB: send fewer or shorter headers");
    }
    return taken;
  }
  const std::string head = head_.substr(begin, end - begin);
  if (ParseHead(head)) stage_ = length_.value_or(0) == 0 ? Stage::kDone : Stage::kBody;
  head_.clear();
  return end + 4 - before;
}

void RequestParser::Refuse(int code, std::string what) {
  stage_ = Stage::kBad;
  bad_ = {.code = code, .what = std::move(what)};
}

bool RequestParser::ParseHead(std::string_view head) {
  if (!ParseRequestLine(CutFirst(head, "\r\n"))) return false;
  while (!head.empty()) {
    if (!ParseHeader(CutFirst(head, "\r\n"))) return false;
  }
  if (request_.chunks && !has_host_) {
    Refuse(400, "the request has no Host header: HTTP/1.1 asks for one");
    return false;
  }
  awaits_continue_ = awaits_continue_ && length_.value_or(0) > 0;
  return true;
}

bool RequestParser::ParseRequestLine(std::string_view line) {
  const std::string_view method = CutFirst(line, " ");
  const std::string_view target = CutFirst(line, " ");
  if (!IsToken(method) || target.empty()) {
    Refuse(400, "the first line is no request: send METHOD PATH HTTP/1.1");
    return false;
  }
  if (line != "HTTP/1.1" && line != "HTTP/1.0") {
    Refuse(505, "the version is none that is spoken here: send HTTP/1.1");
    return false;
  }
  request_.method = method;
  request_.chunks = request_.keep_alive = line == "HTTP/1.1";
  return ParseTarget(target);
}

bool RequestParser::ParseTarget(std::string_view target) {
  // As to a proxy: the host does not matter here.
  if (Lower(target.substr(0, 7)) == "http://") {
    target.remove_prefix(std::min(target.find_first_of("/?", 7), target.size()));
    if (target.empty()) target = "/";
  }
  target = target.substr(0, target.find('#'));
  const std::string_view path = CutFirst(target, "?");
  bool ok = path.starts_with('/') && std::ranges::none_of(target, IsControl) && Decode(path, request_.path);
  while (ok && !target.empty()) {
    std::string_view parameter = CutFirst(target, "&");
    if (parameter.empty()) continue;
    auto& [name, value] = request_.query.emplace_back();
    ok = Decode(CutFirst(parameter, "="), name) && Decode(parameter, value);
  }
  if (!ok) Refuse(400, "the path cannot be understood: it begins with / and escapes as %20");
  return ok;
}

bool RequestParser::ParseHeader(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || !IsToken(line.substr(0, colon))) {
    Refuse(400, "a header is not NAME: VALUE");
    return false;
  }
  const std::string_view value = Trim(line.substr(colon + 1));
  if (std::ranges::any_of(value, IsControl)) {
    Refuse(400, "a header holds a control character");
    return false;
  }
  return TakeHeader(Lower(line.substr(0, colon)), value);
}

bool RequestParser::TakeHeader(std::string_view name, std::string_view value) {
  if (name == "content-length") return ParseLength(value);
  if (name == "transfer-encoding") {
    Refuse(411, "a body in chunks is not taken: send Content-Length");
    return false;
  }
  if ((name == "host" && has_host_) || (name == "authorization" && has_authorization_)) {
    Refuse(400, "the header " + std::string(name) + " is there twice");
    return false;
  }
  if (name == "host") has_host_ = true;
  if (name == "authorization") {
    has_authorization_ = true;
    request_.authorization = value;
  }
  if (name == "connection") TakeConnection(value);
  if (name == "expect" && Lower(value) == "100-continue") awaits_continue_ = true;
  return true;
}

bool RequestParser::ParseLength(std::string_view value) {
  std::uint64_t length = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), length);
  const bool whole = !value.empty() && end == value.data() + value.size();
  if (!whole || error == std::errc::invalid_argument || length_) {
    Refuse(400, "Content-Length is no number, or is there twice");
    return false;
  }
  if (error != std::errc() || length > kMaxBodyBytes) {
    Refuse(413, "the body has more than 1 MiB");
    return false;
  }
  length_ = length;
  return true;
}

void RequestParser::TakeConnection(std::string_view value) {
  while (!value.empty()) {
    const std::string option = Lower(Trim(CutFirst(value, ",")));
    if (option == "close") request_.keep_alive = false;
    if (option == "keep-alive" && !request_.chunks) request_.keep_alive = true;
  }
}

Request RequestParser::Take() {
  Request request = std::move(request_);
  *this = RequestParser();
  return request;
}

}  // namespace trainyard::agent
