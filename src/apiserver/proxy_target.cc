#include "apiserver/proxy_target.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "apiserver/errors.h"
#include "base/json.h"
#include "base/status.h"
#include "base/text.h"
#include "kube/http.h"

namespace trainyard::apiserver {
namespace {

constexpr std::string_view kRoot = "/api/v1/namespaces/";

// The parts of the URL as they stand in it.
struct RawTarget {
  std::string_view ns;
  std::string_view plural;
  std::string_view id;
  std::string_view prefix;
  std::string_view path;
  std::string_view query;
};

std::optional<RawTarget> Cut(std::string_view target) {
  if (!target.starts_with(kRoot)) return std::nullopt;
  const std::size_t mark = std::min(target.find('?'), target.size());
  const std::string_view path = target.substr(0, mark);
  RawTarget raw{.query = target.substr(mark)};
  std::size_t at = kRoot.size();
  // The next part, which must not be the last; empty if it is, or if it is empty.
  const auto next = [&]() -> std::string_view {
    const std::size_t slash = path.find('/', at);
    if (slash == std::string_view::npos) return {};
    const std::size_t begin = std::exchange(at, slash + 1);
    return path.substr(begin, slash - begin);
  };
  raw.ns = next();
  raw.plural = next();
  raw.id = next();
  const bool known = raw.plural == "services" || raw.plural == "pods";
  if (raw.ns.empty() || !known || raw.id.empty()) return std::nullopt;
  const std::string_view rest = path.substr(at);
  constexpr std::string_view kProxy = "proxy";
  if (!rest.starts_with(kProxy) || (rest.size() > kProxy.size() && rest[kProxy.size()] != '/'))
    return std::nullopt;
  raw.prefix = path.substr(0, at + kProxy.size());
  raw.path = path.substr(raw.prefix.size());
  return raw;
}

// Parts that are empty or "." are left out, and ".." takes the one before it away; whatever is escaped stays
// so, and a slash at the end.
absl::StatusOr<std::string> Cleaned(std::string_view path) {
  std::vector<std::string_view> kept;
  std::string_view last;
  for (const std::string_view part : Split(path, '/')) {
    TY_ASSIGN_OR_RETURN(const std::string decoded, kube::PercentDecoded(part, /*query=*/false));
    last = part;
    if (decoded == "..") {
      if (!kept.empty()) kept.pop_back();
    } else if (!decoded.empty() && decoded != ".") {
      kept.push_back(part);
    }
  }
  std::string clean;
  for (const std::string_view part : kept) StrAppend(clean, "/", part);
  if (!path.empty() && (last.empty() || clean.empty())) clean += '/';
  return clean;
}

absl::StatusOr<std::string> Name(std::string_view escaped) {
  TY_ASSIGN_OR_RETURN(std::string name, kube::PercentDecoded(escaped, /*query=*/false));
  if (!IsUtf8(name) || name.find('\0') != std::string::npos)
    return absl::InvalidArgumentError(StrCat("the URL holds what is no text: ", Escaped(name)));
  return name;
}

// Of "name", "name:port" and "scheme:name:port"; false if it is none of them.
bool SplitId(ProxyTarget& target) {
  const std::vector<std::string_view> parts = Split(target.id, ':');
  if (parts.size() > 3) return false;
  const std::size_t name = parts.size() == 3 ? 1 : 0;
  if (name == 1) target.scheme = parts[0];
  target.name = parts[name];
  if (parts.size() > name + 1) target.port = parts[name + 1];
  const bool known = target.scheme.empty() || target.scheme == "http" || target.scheme == "https";
  return known && !target.name.empty() && target.name.find('/') == std::string::npos &&
         target.ns.find('/') == std::string::npos;
}

}  // namespace

bool IsProxyTarget(std::string_view target) { return Cut(target).has_value(); }

absl::StatusOr<std::optional<ProxyTarget>> ParseProxyTarget(std::string_view target) {
  const std::optional<RawTarget> raw = Cut(target);
  if (!raw) return std::nullopt;
  ProxyTarget parsed{.plural = std::string(raw->plural),
                     .prefix = std::string(raw->prefix),
                     .query = std::string(raw->query)};
  TY_ASSIGN_OR_RETURN(parsed.ns, Name(raw->ns));
  TY_ASSIGN_OR_RETURN(parsed.id, Name(raw->id));
  TY_ASSIGN_OR_RETURN(parsed.path, Cleaned(raw->path));
  if (!SplitId(parsed)) {
    const std::string_view kind = parsed.plural == "pods" ? "pod" : "service";
    return kube::ToStatus(BadRequest(StrCat("invalid ", kind, " request \"", Escaped(parsed.id), "\"")));
  }
  return parsed;
}

}  // namespace trainyard::apiserver
