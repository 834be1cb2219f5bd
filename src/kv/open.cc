#include "kv/open.h"

#include <cstdlib>
#include <fstream>
#include <utility>
#include <vector>

#include "base/clock.h"
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

absl::Status Bad(std::string_view url, std::string_view why) {
  return absl::InvalidArgumentError(StrCat("bad store URL '", Escaped(url), "': ", why));
}

// "host", "host:port", "[::1]:port" → with a port, or nothing if it is none of them.
std::optional<std::string> ParseEndpoint(std::string_view text) {
  const std::size_t colon = text.starts_with('[') ? text.find(':', text.find(']')) : text.find(':');
  const std::string_view host = text.substr(0, colon);
  if (host.empty() || host.find_first_of("/@ ") != std::string_view::npos) return std::nullopt;
  if (host.starts_with('[') && !host.ends_with(']')) return std::nullopt;
  if (colon == std::string_view::npos) return StrCat(host, ":2379");
  const auto port = ParseNumber<std::uint16_t>(text.substr(colon + 1));
  if (!port || *port == 0) return std::nullopt;
  return std::string(text);
}

absl::StatusOr<std::string> ReadPassword(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return absl::NotFoundError(StrCat("cannot read the password file ", path));
  return line;
}

absl::Status SetOption(std::string_view name, std::string_view value, EtcdOptions& options) {
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
  } else if (name == "timeout") {
    if (!absl::ParseDuration(std::string(value), &options.timeout) ||
        options.timeout <= absl::ZeroDuration()) {
      return absl::InvalidArgumentError(StrCat("'", value, "' is no time: write it as 3s or 500ms"));
    }
  } else {
    return absl::InvalidArgumentError(StrCat("unknown option '", Escaped(name),
                                             "': there are ca, cert, key, user, password-file and timeout"));
  }
  return absl::OkStatus();
}

absl::StatusOr<EtcdOptions> ParseEtcd(std::string_view url, std::string_view rest,
                                      const StoreEnvironment& environment) {
  EtcdOptions options;
  options.tls = url.starts_with("etcds:");
  const std::size_t question = rest.find('?');
  for (std::string_view endpoint : Split(rest.substr(0, question), ',')) {
    if (endpoint.ends_with('/')) endpoint.remove_suffix(1);
    const std::optional<std::string> parsed = ParseEndpoint(endpoint);
    if (!parsed) return Bad(url, StrCat("'", Escaped(endpoint), "' is not HOST or HOST:PORT"));
    options.endpoints.push_back(*parsed);
  }
  if (question != std::string_view::npos) {
    for (const std::string_view option : Split(rest.substr(question + 1), '&')) {
      const std::size_t equals = option.find('=');
      const std::string_view value = equals == std::string_view::npos ? "" : option.substr(equals + 1);
      const absl::Status set = SetOption(option.substr(0, equals), value, options);
      if (!set.ok()) return absl::IsInvalidArgument(set) ? Bad(url, Message(set)) : set;
    }
  }
  if (!options.ca_file.empty() || !options.cert_file.empty() || !options.key_file.empty()) options.tls = true;
  if (options.cert_file.empty() != options.key_file.empty()) return Bad(url, "cert and key go together");
  if (options.password.empty()) options.password = environment.etcd_password;
  if (!options.user.empty() && options.password.empty()) {
    return Bad(url,
               "it names a user but no password: set TRAINYARD_ETCD_PASSWORD or add &password-file=FILE");
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
    if (*path == "~" || path->starts_with("~/"))
      return EmbeddedUrl{StrCat(environment.home, path->substr(1))};
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
                                          .etcd_password = FromEnvironment("TRAINYARD_ETCD_PASSWORD")}));
  if (const auto* embedded = std::get_if<EmbeddedUrl>(&parsed)) {
    EmbeddedOptions options;
    options.journal.create = if_missing == IfMissing::kCreate;
    return OpenEmbeddedStore(embedded->folder, options);
  }
  if (const auto* etcd = std::get_if<EtcdOptions>(&parsed)) return OpenEtcdStore(*etcd);
  return NewMemoryStore(Clock::System());
}

}  // namespace trainyard::kv
