#include "kv/open.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "base/access.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/status.h"
#include "base/text.h"
#include "kv/disk/embedded_store.h"
#include "kv/memory_store.h"

namespace trainyard::kv {
namespace {

constexpr std::string_view kForms = "use embedded:PATH, etcd://HOST:PORT[,HOST:PORT] or etcds://…";

std::string FromEnvironment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Without what may be secret: options, and anything before an @.
std::string WithoutPassword(std::string_view url) {
  url = url.substr(0, url.find('?'));
  const std::size_t at = url.rfind('@');
  return at == std::string_view::npos ? Escaped(url) : StrCat("…", Escaped(url.substr(at)));
}

absl::Status Bad(std::string_view url, std::string_view why) {
  return absl::InvalidArgumentError(StrCat("bad store URL '", WithoutPassword(url), "': ", why));
}

bool IsIpv6(std::string_view text) {
  in6_addr ignored{};
  return ::inet_pton(AF_INET6, std::string(text).c_str(), &ignored) == 1;
}

// "host", "host:port", "[::1]:port" → with a port, or nothing if it is none of them.
std::optional<std::string> ParseEndpoint(std::string_view text) {
  const std::size_t colon = text.starts_with('[') ? text.find(':', text.find(']')) : text.find(':');
  const std::string_view host = text.substr(0, colon);
  const bool plain =
      std::ranges::all_of(host, [](unsigned char c) { return std::isgraph(c) && c != '/' && c != '@'; });
  if (host.empty() || !plain) return std::nullopt;
  if (host.starts_with('[') && !(host.ends_with(']') && IsIpv6(host.substr(1, host.size() - 2))))
    return std::nullopt;
  if (colon == std::string_view::npos) return StrCat(host, ":2379");
  const auto port = ParseNumber<std::uint16_t>(text.substr(colon + 1));
  if (!port || *port == 0) return std::nullopt;
  return std::string(text);
}

// Its first line.
absl::StatusOr<std::string> ReadPassword(const std::string& path) {
  TY_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, 4096));
  std::string line(text, 0, text.find('\n'));
  if (line.empty()) return absl::InvalidArgumentError(StrCat("the password file ", path, " is empty"));
  return line;
}

absl::Status SetOption(std::string_view name, std::string_view value, EtcdOptions& options) {
  if (value.empty()) return absl::InvalidArgumentError(StrCat("option '", Escaped(name), "' needs a value"));
  if (name == "ca") {
    options.ca_file = value;
  } else if (name == "cert") {
    options.cert_file = value;
  } else if (name == "key") {
    options.key_file = value;
  } else if (name == "user") {
    options.user = value;
  } else if (name == "password-file") {
    TY_ASSIGN_OR_RETURN(options.password, ReadPassword(std::string(value)));
  } else if (name == "token-file") {
    TY_ASSIGN_OR_RETURN(options.token, ReadToken(std::string(value)));
  } else if (name == "timeout") {
    if (!absl::ParseDuration(std::string(value), &options.timeout) ||
        options.timeout <= absl::ZeroDuration() || options.timeout > absl::Hours(1)) {
      return absl::InvalidArgumentError(
          StrCat("'", Escaped(value), "' is no time above 0 and up to 1h: write it as 3s or 500ms"));
    }
  } else {
    return absl::InvalidArgumentError(
        StrCat("unknown option '", Escaped(name),
               "': there are ca, cert, key, user, password-file, token-file and "
               "timeout"));
  }
  return absl::OkStatus();
}

absl::StatusOr<EtcdOptions> ParseEtcd(std::string_view url, std::string_view rest,
                                      const StoreEnvironment& environment) {
  EtcdOptions options;
  options.tls = url.starts_with("etcds:");
  const std::size_t question = rest.find('?');
  for (std::string_view endpoint : Split(rest.substr(0, question), ',')) {
    if (endpoint.find('@') != std::string_view::npos)
      return Bad(url, "a user goes into ?user=NAME, not before an @");
    if (endpoint.ends_with('/')) endpoint.remove_suffix(1);
    const std::optional<std::string> parsed = ParseEndpoint(endpoint);
    if (!parsed) return Bad(url, StrCat("'", Escaped(endpoint), "' is not HOST or HOST:PORT"));
    options.endpoints.push_back(*parsed);
  }
  std::vector<std::string_view> seen;
  if (question != std::string_view::npos) {
    for (const std::string_view option : Split(rest.substr(question + 1), '&')) {
      const std::size_t equals = option.find('=');
      const std::string_view value = equals == std::string_view::npos ? "" : option.substr(equals + 1);
      const std::string_view name = option.substr(0, equals);
      if (std::ranges::find(seen, name) != seen.end()) {
        return Bad(url, StrCat("option '", Escaped(name), "' is given twice"));
      }
      seen.push_back(name);
      const absl::Status set = SetOption(name, value, options);
      if (!set.ok()) return absl::IsInvalidArgument(set) ? Bad(url, Message(set)) : set;
    }
  }
  if (!options.ca_file.empty() || !options.cert_file.empty() || !options.key_file.empty()) options.tls = true;
  if (options.cert_file.empty() != options.key_file.empty()) return Bad(url, "cert and key go together");
  if (options.user.empty() && !options.password.empty()) return Bad(url, "a password-file goes with a user");
  if (options.password.empty()) options.password = environment.etcd_password;
  if (!options.user.empty() && options.password.empty()) {
    return Bad(url,
               "it names a user but no password: set TRAINYARD_ETCD_PASSWORD or add &password-file=FILE");
  }
  if (!options.user.empty() && !options.token.empty()) return Bad(url, "give a user or a token, not both");
  if (options.user.empty() && options.token.empty() && !environment.etcd_token.empty()) {
    options.token = TrimToken(environment.etcd_token);
    if (const absl::Status token = CheckToken(options.token); !token.ok()) {
      return Bad(url, StrCat("TRAINYARD_ETCD_TOKEN: ", Message(token)));
    }
  }
  return options;
}

}  // namespace

absl::StatusOr<StoreUrl> ParseStoreUrl(std::string_view url, const StoreEnvironment& environment) {
  const auto after = [&](std::string_view scheme) {
    return url.starts_with(scheme) ? std::optional<std::string_view>(url.substr(scheme.size()))
                                   : std::nullopt;
  };
  if (url == "memory:") return MemoryUrl{};
  if (const auto path = after("embedded:")) {
    if (path->empty()) return Bad(url, "a folder must follow, as in embedded:/var/lib/trainyard");
    const bool at_home = *path == "~" || path->starts_with("~/");
    if (at_home && environment.home.empty()) return Bad(url, "HOME is not set: write the whole path");
    if (at_home) return EmbeddedUrl{StrCat(environment.home, path->substr(1))};
    return EmbeddedUrl{std::string(*path)};
  }
  for (const std::string_view scheme : {"etcd://", "etcds://"}) {
    if (const auto rest = after(scheme)) return ParseEtcd(url, *rest, environment);
  }
  return Bad(url, kForms);
}

absl::StatusOr<std::unique_ptr<Store>> OpenStore(std::string_view url, IfMissing if_missing) {
  TY_ASSIGN_OR_RETURN(const StoreUrl parsed,
                      ParseStoreUrl(url, {.home = FromEnvironment("HOME"),
                                          .etcd_password = FromEnvironment("TRAINYARD_ETCD_PASSWORD"),
                                          .etcd_token = FromEnvironment("TRAINYARD_ETCD_TOKEN")}));
  if (const auto* embedded = std::get_if<EmbeddedUrl>(&parsed)) {
    EmbeddedOptions options;
    options.journal.create = if_missing == IfMissing::kCreate;
    return OpenEmbeddedStore(embedded->folder, options);
  }
  if (const auto* etcd = std::get_if<EtcdOptions>(&parsed)) return OpenEtcdStore(*etcd);
  return NewMemoryStore(Clock::System());
}

}  // namespace trainyard::kv
