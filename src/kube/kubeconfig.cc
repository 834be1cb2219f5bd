#include "kube/kubeconfig.h"

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/access.h"
#include "base/base64.h"
#include "base/document.h"
#include "base/files.h"
#include "base/status.h"
#include "base/text.h"
#include "base/yaml.h"
#include "kube/exec_credentials.h"
#include "kube/http.h"

namespace trainyard::kube {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{16} << 20;

// One entry of a kubeconfig, and the file that it stands in.
struct Entry {
  Document content;
  std::string file;

  std::string_view Text(std::string_view key) const { return StringAt(content, {key}); }
};
using Entries = std::map<std::string, Entry, std::less<>>;

// All files put together.
struct Kubeconfig {
  Entries clusters;
  Entries users;
  Entries contexts;
  std::string current_context;
  std::vector<std::string> files;  // that were read
};

absl::Status Wrong(const Entry& entry, std::string_view what) {
  return absl::InvalidArgumentError(StrCat(entry.file, ": ", what));
}

std::string Names(const Entries& entries) {
  std::string names;
  for (const auto& [name, entry] : entries) StrAppend(names, names.empty() ? "" : ", ", name);
  return names.empty() ? "none" : names;
}

// ---- reading and merging

// The entries of one list: [{name: x, cluster: {...}}].
absl::Status TakeEntries(const Document& config, const std::string& file, std::string_view list,
                         std::string_view key, Entries& entries) {
  const Document* found = Find(config, {list});
  if (found == nullptr || found->is_null()) return absl::OkStatus();
  const Array* array = found->if_array();
  if (array == nullptr) return absl::InvalidArgumentError(StrCat(file, ": ", list, " is no list"));
  for (const Document& element : *array) {
    const std::string_view name = StringAt(element, {"name"});
    const Object* content = ObjectAt(element, {key});
    if (name.empty()) return absl::InvalidArgumentError(StrCat(file, ": one of ", list, " has no name"));
    entries.try_emplace(std::string(name),
                        Entry{.content = content == nullptr ? Object() : *content, .file = file});
  }
  return absl::OkStatus();
}

absl::Status TakeFile(const std::string& path, Kubeconfig& config) {
  TY_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxFileBytes));
  absl::StatusOr<std::vector<Document>> documents = ParseJsonOrYaml(text);
  if (!documents.ok()) return Annotate(documents.status(), path);
  config.files.push_back(path);
  if (documents->empty()) return absl::OkStatus();
  const Document& document = documents->front();
  if (!document.is_object()) return absl::InvalidArgumentError(StrCat(path, ": this is no kubeconfig"));
  TY_RETURN_IF_ERROR(TakeEntries(document, path, "clusters", "cluster", config.clusters));
  TY_RETURN_IF_ERROR(TakeEntries(document, path, "users", "user", config.users));
  TY_RETURN_IF_ERROR(TakeEntries(document, path, "contexts", "context", config.contexts));
  if (config.current_context.empty()) config.current_context = StringAt(document, {"current-context"});
  return absl::OkStatus();
}

// The files to read, and whether each of them must exist.
struct Sources {
  std::vector<std::string> paths;
  bool required = false;
};

Sources FindSources(const LoadOptions& options) {
  if (!options.path.empty()) return {.paths = {options.path}, .required = true};
  Sources sources;
  if (const auto listed = options.environment("KUBECONFIG"); listed && !listed->empty()) {
    for (const std::string_view path : Split(*listed, ':')) {
      if (!path.empty()) sources.paths.emplace_back(path);
    }
  } else if (const auto home = options.environment("HOME"); home && !home->empty()) {
    sources.paths.push_back(StrCat(*home, "/.kube/config"));
  }
  return sources;
}

absl::StatusOr<Kubeconfig> ReadSources(const Sources& sources) {
  Kubeconfig config;
  for (const std::string& path : sources.paths) {
    const absl::Status taken = TakeFile(path, config);
    if (absl::IsNotFound(taken) && !sources.required) continue;
    TY_RETURN_IF_ERROR(taken);
  }
  return config;
}

// ---- what an entry means

std::string Beside(const Entry& entry, std::string_view path) {
  const std::filesystem::path file(entry.file);
  return (file.parent_path() / std::filesystem::path(path)).lexically_normal().string();
}

// What stands in base 64 under `key`-data, or else in the file that `key` names.
absl::StatusOr<std::string> Contents(const Entry& entry, std::string_view key) {
  if (const std::string_view data = entry.Text(StrCat(key, "-data")); !data.empty()) {
    absl::StatusOr<std::string> decoded = DecodeBase64(data);
    if (!decoded.ok()) return Wrong(entry, StrCat(key, "-data is ", decoded.status().message()));
    return decoded;
  }
  const std::string_view path = entry.Text(key);
  if (path.empty()) return std::string();
  absl::StatusOr<std::string> contents = ReadFile(Beside(entry, path), kMaxFileBytes);
  if (!contents.ok()) return Wrong(entry, StrCat(key, ": ", contents.status().message()));
  return contents;
}

absl::Status FillCluster(const Entry& cluster, std::string_view name, ClusterConfig& config) {
  config.server = cluster.Text("server");
  if (config.server.empty()) return Wrong(cluster, StrCat("cluster \"", name, "\" has no server"));
  TY_ASSIGN_OR_RETURN(config.ca_pem, Contents(cluster, "certificate-authority"));
  config.insecure = BoolAt(cluster.content, {"insecure-skip-tls-verify"});
  config.tls_server_name = cluster.Text("tls-server-name");
  config.proxy_url = cluster.Text("proxy-url");
  if (config.insecure && !config.ca_pem.empty()) {
    return Wrong(cluster,
                 StrCat("cluster \"", name,
                        "\" has both a certificate-authority and insecure-skip-tls-verify; remove one"));
  }
  if (config.server.find("://") == std::string::npos) {
    const bool tls = config.insecure || !config.ca_pem.empty() || !config.tls_server_name.empty();
    config.server = StrCat(tls ? "https://" : "http://", config.server);
  }
  while (config.server.ends_with('/')) config.server.pop_back();
  if (!config.server.starts_with("https://") && !config.server.starts_with("http://")) {
    return Wrong(cluster, StrCat("cluster \"", name,
                                 "\" has a server that is neither http nor https: ", config.server));
  }
  return absl::OkStatus();
}

// Whom the user acts as. To leave it out would be to act with more rights than asked for.
void AddImpersonation(const Entry& user, Credential& credential) {
  const auto add = [&](std::string_view header, std::string_view value) {
    if (!value.empty()) credential.headers.emplace_back(header, value);
  };
  add("Impersonate-User", user.Text("as"));
  add("Impersonate-Uid", user.Text("as-uid"));
  if (const Array* groups = ArrayAt(user.content, {"as-groups"})) {
    for (const Document& group : *groups) add("Impersonate-Group", Text(group));
  }
  if (const Object* extras = ObjectAt(user.content, {"as-user-extra"})) {
    for (const auto& extra : *extras) {
      const Array* values = extra.value().if_array();
      if (values == nullptr) continue;
      for (const Document& value : *values) {
        add(StrCat("Impersonate-Extra-", PercentEncoded(Key(extra))), Text(value));
      }
    }
  }
}

// What a plugin is told of the cluster, if it asks for it.
std::string DescribeCluster(const Entry& cluster, const ClusterConfig& config) {
  Object json{{"server", config.server}};
  if (!config.tls_server_name.empty()) json["tls-server-name"] = config.tls_server_name;
  if (config.insecure) json["insecure-skip-tls-verify"] = true;
  if (!config.ca_pem.empty()) json["certificate-authority-data"] = EncodeBase64(config.ca_pem);
  if (!config.proxy_url.empty()) json["proxy-url"] = config.proxy_url;
  if (const Array* extensions = ArrayAt(cluster.content, {"extensions"})) {
    for (const Document& extension : *extensions) {
      if (StringAt(extension, {"name"}) != "client.authentication.k8s.io/exec") continue;
      if (const Document* content = Find(extension, {"extension"})) json["config"] = *content;
    }
  }
  return PrintJson(json);
}

absl::StatusOr<ExecPlugin> ReadPlugin(const Entry& user, std::string_view name) {
  const Document& exec = *Find(user.content, {"exec"});
  ExecPlugin plugin{.user = std::string(name)};
  plugin.api_version = StringAt(exec, {"apiVersion"});
  plugin.command = StringAt(exec, {"command"});
  plugin.install_hint = StringAt(exec, {"installHint"});
  plugin.interactive_only = StringAt(exec, {"interactiveMode"}) == "Always";
  if (plugin.api_version != "client.authentication.k8s.io/v1" &&
      plugin.api_version != "client.authentication.k8s.io/v1beta1") {
    return Wrong(user, StrCat("user \"", name, "\" has an exec plugin of version \"", plugin.api_version,
                              "\"; client.authentication.k8s.io/v1 and v1beta1 are understood"));
  }
  if (plugin.command.empty())
    return Wrong(user, StrCat("user \"", name, "\" has an exec plugin without command"));
  if (plugin.command.find('/') != std::string::npos) plugin.command = Beside(user, plugin.command);
  if (const Array* args = ArrayAt(exec, {"args"})) {
    for (const Document& arg : *args) plugin.args.emplace_back(Text(arg));
  }
  if (const Array* env = ArrayAt(exec, {"env"})) {
    for (const Document& variable : *env) {
      plugin.env.emplace_back(StringAt(variable, {"name"}), StringAt(variable, {"value"}));
    }
  }
  return plugin;
}

// Values become headers, where a line break would begin another one.
absl::Status CheckHeaders(const Entry& user, std::string_view name, const Credential& credential) {
  for (const auto& [header, value] : credential.headers) {
    if (value.find_first_of("\r\n") != std::string::npos) {
      return Wrong(user,
                   StrCat("user \"", name, "\" has a line break in what becomes its ", header, " header"));
    }
  }
  return absl::OkStatus();
}

absl::Status FillUser(const Entry& user, std::string_view name, const Entry& cluster, Clock& clock,
                      ClusterConfig& config) {
  if (ObjectAt(user.content, {"auth-provider"}) != nullptr) {
    return Wrong(user,
                 StrCat("user \"", name, "\" has an auth-provider, which Kubernetes no longer has either; ",
                        "use an exec plugin"));
  }
  Credential credential;
  TY_ASSIGN_OR_RETURN(credential.certificate_pem, Contents(user, "client-certificate"));
  TY_ASSIGN_OR_RETURN(credential.key_pem, Contents(user, "client-key"));
  if (credential.certificate_pem.empty() != credential.key_pem.empty()) {
    return Wrong(
        user, StrCat("user \"", name, "\" has one of client-certificate and client-key without the other"));
  }
  AddImpersonation(user, credential);
  const std::string_view token = TrimToken(user.Text("token"));
  const std::string_view token_file = user.Text("tokenFile");
  const bool has_plugin = ObjectAt(user.content, {"exec"}) != nullptr;
  if (token_file.empty() && !token.empty()) {
    credential.headers.push_back(BearerHeader(token));
  } else if (token_file.empty() && !has_plugin && !user.Text("username").empty()) {
    credential.headers.push_back(BasicHeader(user.Text("username"), user.Text("password")));
  }
  TY_RETURN_IF_ERROR(CheckHeaders(user, name, credential));
  if (!token_file.empty()) {
    config.credentials =
        NewTokenFileCredentials(Beside(user, token_file), std::string(token), std::move(credential), clock);
  } else if (has_plugin && token.empty()) {
    TY_ASSIGN_OR_RETURN(ExecPlugin plugin, ReadPlugin(user, name));
    if (BoolAt(user.content, {"exec", "provideClusterInfo"}))
      plugin.cluster_json = DescribeCluster(cluster, config);
    config.credentials = NewExecCredentials(std::move(plugin), std::move(credential), clock);
  } else {
    config.credentials = NewFixedCredentials(std::move(credential));
  }
  return absl::OkStatus();
}

absl::StatusOr<const Entry*> FindEntry(const Entries& entries, std::string_view name, std::string_view what,
                                       const Entry& context) {
  const auto found = entries.find(name);
  if (found != entries.end()) return &found->second;
  return Wrong(context, StrCat("there is no ", what, " \"", name, "\"; there are: ", Names(entries)));
}

absl::StatusOr<ClusterConfig> FromKubeconfig(const Kubeconfig& files, const LoadOptions& options) {
  const std::string& name = options.context.empty() ? files.current_context : options.context;
  const auto found = files.contexts.find(name);
  if (found == files.contexts.end()) {
    std::string read;
    for (const std::string& file : files.files) StrAppend(read, read.empty() ? "" : ", ", file);
    return absl::NotFoundError(
        StrCat(name.empty() ? "no current context is set" : StrCat("there is no context \"", name, "\""),
               " in ", read.empty() ? "any kubeconfig" : read, "; there are: ", Names(files.contexts)));
  }
  const Entry& context = found->second;
  ClusterConfig config{.context = name};
  if (const std::string_view ns = context.Text("namespace"); !ns.empty()) config.ns = ns;
  const std::string_view cluster_name = context.Text("cluster");
  TY_ASSIGN_OR_RETURN(const Entry* cluster, FindEntry(files.clusters, cluster_name, "cluster", context));
  TY_RETURN_IF_ERROR(FillCluster(*cluster, cluster_name, config));
  const std::string_view user_name = context.Text("user");
  if (user_name.empty()) {
    config.credentials = NewFixedCredentials({});
    return config;
  }
  TY_ASSIGN_OR_RETURN(const Entry* user, FindEntry(files.users, user_name, "user", context));
  TY_RETURN_IF_ERROR(FillUser(*user, user_name, *cluster, *options.clock, config));
  return config;
}

// ---- in a pod

absl::StatusOr<ClusterConfig> FromPod(const LoadOptions& options, std::string host, std::string_view port) {
  std::string folder = options.service_account_folder;
  if (folder.empty()) {
    folder = options.environment("TRAINYARD_SERVICE_ACCOUNT")
                 .value_or("/var/run/secrets/kubernetes.io/serviceaccount");
  }
  ClusterConfig config;
  if (host.find(':') != std::string::npos) host = StrCat("[", host, "]");
  config.server = StrCat("https://", host, ":", port);
  absl::StatusOr<std::string> ca = ReadFile(StrCat(folder, "/ca.crt"), kMaxFileBytes);
  if (!ca.ok()) {
    return Annotate(ca.status(),
                    "this looks like a pod, but it has no service account to reach its cluster with");
  }
  config.ca_pem = *std::move(ca);
  const absl::StatusOr<std::string> ns = ReadFile(StrCat(folder, "/namespace"), kMaxFileBytes);
  if (ns.ok()) {
    config.ns = ns->substr(0, ns->find_last_not_of(" \t\r\n") + 1);
    if (config.ns.empty()) config.ns = "default";
  }
  config.credentials = NewTokenFileCredentials(StrCat(folder, "/token"), "", {}, *options.clock);
  TY_RETURN_IF_ERROR(config.credentials->Get());
  return config;
}

}  // namespace

std::optional<std::string> ProcessEnvironment(const char* name) {
  const char* value = ::getenv(name);
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

absl::StatusOr<ClusterConfig> LoadConfig(const LoadOptions& options) {
  const Sources sources = FindSources(options);
  TY_ASSIGN_OR_RETURN(const Kubeconfig files, ReadSources(sources));
  const bool nothing = files.contexts.empty() && files.clusters.empty() && files.current_context.empty();
  if (!nothing || sources.required || !options.context.empty()) return FromKubeconfig(files, options);
  const auto host = options.environment("KUBERNETES_SERVICE_HOST");
  const auto port = options.environment("KUBERNETES_SERVICE_PORT");
  if (host && !host->empty() && port && !port->empty()) return FromPod(options, *host, *port);
  std::string looked;
  for (const std::string& path : sources.paths) StrAppend(looked, looked.empty() ? "" : ", ", path);
  return absl::NotFoundError(
      StrCat("no cluster is configured: nothing in ", looked.empty() ? "KUBECONFIG or HOME" : looked,
             ", and this is no pod; name a kubeconfig, or start the embedded cluster with `trainyard up`"));
}

}  // namespace trainyard::kube
