#include "apiserver/proxy_headers.h"

#include <algorithm>
#include <initializer_list>

#include "base/text.h"
#include "http/response_head.h"

namespace trainyard::apiserver {
namespace {

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; }

bool SameName(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return Lower(x) == Lower(y); });
}

bool BeginsWith(std::string_view name, std::string_view prefix) {
  return name.size() >= prefix.size() && SameName(name.substr(0, prefix.size()), prefix);
}

bool IsOneOf(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::any_of(names, [name](std::string_view one) { return SameName(name, one); });
}

std::string_view Value(const HttpHeaders& headers, std::string_view name) {
  const auto found = std::ranges::find_if(headers, [&](const auto& h) { return SameName(h.first, name); });
  return found == headers.end() ? std::string_view() : std::string_view(found->second);
}

// Headers that a message's Connection header names are between neighbours too.
std::vector<std::string_view> NamedByConnection(const HttpHeaders& headers) {
  std::vector<std::string_view> named;
  for (const auto& [name, value] : headers) {
    if (!SameName(name, "Connection")) continue;
    for (const std::string_view part : Split(std::string_view(value), ',')) named.push_back(Trimmed(part));
  }
  return named;
}

bool IsBetweenNeighbours(std::string_view name, const std::vector<std::string_view>& named) {
  return IsOneOf(name, {"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
                        "Proxy-Connection", "TE", "Trailer", "Transfer-Encoding", "Upgrade"}) ||
         std::ranges::any_of(named, [name](std::string_view one) { return SameName(name, one); });
}

// What tells an API server who is asking, or as whom to act.
bool IsIdentity(std::string_view name) {
  return IsOneOf(name, {"Authorization", "X-Remote-User", "X-Remote-Uid", "X-Remote-Group"}) ||
         BeginsWith(name, "X-Remote-Extra-") || BeginsWith(name, "Impersonate-");
}

std::string HostOf(const ProxyBackend& backend) {
  const bool v6 = backend.ip.find(':') != std::string::npos;
  return StrCat(v6 ? "[" : "", backend.ip, v6 ? "]:" : ":", backend.port);
}

// Methods that are sent a length even where there is no body: without it some servers wait for one.
bool MayBringABody(std::string_view method) {
  return method == "POST" || method == "PUT" || method == "PATCH";
}

}  // namespace

std::string PrintRequestHead(const ProxyRequest& request) {
  const ProxyTarget& target = request.target;
  const std::string path = target.path.empty() ? "/" : target.path;
  const std::string_view host = Value(request.headers, "Host");
  std::string head =
      StrCat(request.method, " ", path, target.query,
             " HTTP/1.1\r\nHost: ", host.empty() ? HostOf(request.backend) : std::string(host), "\r\n");
  const std::vector<std::string_view> named = NamedByConnection(request.headers);
  for (const auto& [name, value] : request.headers) {
    if (IsBetweenNeighbours(name, named) || IsIdentity(name) ||
        IsOneOf(name, {"Host", "Content-Length", "Expect", "X-Forwarded-Uri"})) {
      continue;
    }
    StrAppend(head, name, ": ", value, "\r\n");
  }
  StrAppend(head, "X-Forwarded-Uri: ", target.prefix, path, "\r\nConnection: close\r\n");
  if (!request.body_length) {
    head += "Transfer-Encoding: chunked\r\n";
  } else if (*request.body_length > 0 || MayBringABody(request.method)) {
    StrAppend(head, "Content-Length: ", *request.body_length, "\r\n");
  }
  head += "\r\n";
  return head;
}

kube::Response AnswerHead(const ProxyRequest& request, const http::ResponseHead& answer) {
  kube::Response head{.code = answer.code, .content_type = ""};
  const std::vector<std::string_view> named = NamedByConnection(answer.headers);
  for (const auto& [name, value] : answer.headers) {
    // The last are for pages of the backend's own origin, which the API server's is not.
    if (IsBetweenNeighbours(name, named) ||
        IsOneOf(name,
                {"Content-Length", "Date", "Access-Control-Allow-Credentials", "Access-Control-Allow-Headers",
                 "Access-Control-Allow-Methods", "Access-Control-Allow-Origin"})) {
      continue;
    }
    if (SameName(name, "Content-Type")) {
      head.content_type = value;
    } else if (SameName(name, "Location")) {
      head.headers.emplace_back(name, RewriteLocation(request, value));
    } else {
      head.headers.emplace_back(name, value);
    }
  }
  if (answer.body_length && http::MayHaveBody(answer.code))
    head.headers.emplace_back("Content-Length", StrCat(*answer.body_length));
  return head;
}

std::string RewriteLocation(const ProxyRequest& request, std::string_view location) {
  // Scheme and host, if it has them, then the rest.
  std::size_t rest_at = 0;
  std::string_view host;
  const std::size_t slashes = location.find("//");
  const bool has_host = slashes == 0 || (slashes != std::string_view::npos && slashes > 0 &&
                                         location.find_first_of(":/?#") == slashes - 1);
  if (has_host) {
    rest_at = std::min(location.find_first_of("/?#", slashes + 2), location.size());
    host = location.substr(slashes + 2, rest_at - slashes - 2);
  }
  const std::string_view rest = location.substr(rest_at);
  const std::string_view asked = Value(request.headers, "Host");
  const bool ours = !host.empty() && host == asked;
  if ((has_host && !ours && host != HostOf(request.backend)) || !rest.starts_with('/'))
    return std::string(location);
  const std::string_view before = ours ? location.substr(0, rest_at) : std::string_view();
  const std::string& prefix = request.target.prefix;
  const bool through =
      rest.starts_with(prefix) && (rest.size() == prefix.size() ||
                                   std::string_view("/?#").find(rest[prefix.size()]) != std::string::npos);
  return StrCat(before, through ? "" : prefix, rest);
}

}  // namespace trainyard::apiserver
