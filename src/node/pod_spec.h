// A pod as far as the node that runs it needs it: read once from the object, then only looked at.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/document.h"
#include "kube/quantity.h"

namespace trainyard::node {

// A key of a config map or of a secret.
struct KeyRef {
  std::string name;
  std::string key;
  bool optional = false;
};
struct FieldRef {
  std::string path;
};
struct ResourceFieldRef {
  std::string container;  // empty: the one that asks
  std::string resource;   // "limits.cpu"
  std::string divisor;    // empty: 1
};
struct ConfigMapKeyRef : KeyRef {};
struct SecretKeyRef : KeyRef {};

struct EnvVar {
  std::string name;
  std::string value;
  std::variant<std::monostate, FieldRef, ResourceFieldRef, ConfigMapKeyRef, SecretKeyRef> from;
};

struct EnvFrom {
  bool secret = false;  // else a config map
  std::string name;
  std::string prefix;
  bool optional = false;
};

struct ContainerPort {
  std::string name;
  int number = 0;
};

// What a probe or a hook does. A port is a number or a name of the container's.
struct ExecAction {
  std::vector<std::string> command;
};
struct HttpAction {
  std::string path = "/";
  std::string port;
  std::string host;  // empty: the pod's address
  std::string scheme = "HTTP";
  std::vector<std::pair<std::string, std::string>> headers;
};
struct TcpAction {
  std::string port;
  std::string host;
};
struct UnsupportedAction {
  std::string kind;  // "grpc"
};
using Action = std::variant<ExecAction, HttpAction, TcpAction, UnsupportedAction>;

struct ProbeSpec {
  Action action;
  absl::Duration initial_delay = absl::ZeroDuration();
  absl::Duration period = absl::Seconds(10);
  absl::Duration timeout = absl::Seconds(1);
  int success_threshold = 1;
  int failure_threshold = 3;
  std::optional<absl::Duration> termination_grace;
};

struct VolumeMount {
  std::string volume;
  std::string path;
  std::string sub_path;  // may hold $(VAR) if `expand`
  bool expand = false;   // it was given as subPathExpr
  bool read_only = false;
};

// By resource name; amounts that cannot be read are left out.
using Resources = std::map<std::string, kube::Quantity, std::less<>>;

struct SecuritySpec {
  std::optional<std::int64_t> user;
  std::optional<std::int64_t> group;
  std::optional<bool> non_root;
  std::optional<bool> allow_escalation;
};

struct ContainerSpec {
  std::string name;
  std::string image;
  std::vector<std::string> command;
  std::vector<std::string> args;
  std::string working_dir;
  std::vector<EnvVar> env;
  std::vector<EnvFrom> env_from;
  std::vector<ContainerPort> ports;
  std::vector<VolumeMount> mounts;
  Resources limits;
  Resources requests;
  std::optional<ProbeSpec> startup;
  std::optional<ProbeSpec> liveness;
  std::optional<ProbeSpec> readiness;
  std::optional<Action> post_start;
  std::optional<Action> pre_stop;
  std::string termination_path = "/dev/termination-log";
  bool termination_from_logs = false;  // FallbackToLogsOnError
  SecuritySpec security;               // with the pod's where the container has none
};

// One file of a volume: a key of its source, or a field of the pod.
struct VolumeItem {
  std::string key;
  std::string path;
  std::optional<int> mode;
  std::variant<std::monostate, FieldRef, ResourceFieldRef> from;  // of a downward API volume
};

struct EmptyDirSource {};
struct HostPathSource {
  std::string path;
  std::string type;
};
struct ConfigMapSource {
  std::string name;
  bool optional = false;
  std::vector<VolumeItem> items;  // none: all keys
};
struct SecretSource : ConfigMapSource {};
struct DownwardSource {
  std::vector<VolumeItem> items;
};
struct TokenSource {
  std::string path;
};
struct UnsupportedSource {
  std::string kind;
};
struct VolumeSpec {
  std::string name;
  int default_mode = 0644;
  // Several for a projected volume.
  using Source = std::variant<EmptyDirSource, HostPathSource, ConfigMapSource, SecretSource, DownwardSource,
                              TokenSource, UnsupportedSource>;
  std::vector<Source> sources;
};

enum class RestartPolicy : std::uint8_t { kAlways, kOnFailure, kNever };

struct HostAlias {
  std::string address;
  std::vector<std::string> names;
};

struct PodSpec {
  std::string ns;
  std::string name;
  std::string uid;
  std::map<std::string, std::string, std::less<>> labels;
  std::map<std::string, std::string, std::less<>> annotations;
  std::string node;
  std::string service_account;
  // Whether its containers get the service account's token, where a real cluster would put it.
  bool mount_token = false;
  std::string hostname;  // as given, or empty
  std::string subdomain;
  bool hostname_is_fqdn = false;
  RestartPolicy restart_policy = RestartPolicy::kAlways;
  absl::Duration grace = absl::Seconds(30);
  std::optional<absl::Duration> active_deadline;
  bool host_network = false;
  bool cluster_names = true;  // names of services resolve in it
  bool service_links = true;
  std::vector<HostAlias> host_aliases;
  std::vector<std::string> readiness_gates;
  std::optional<std::int64_t> fs_group;
  std::vector<std::int64_t> supplemental_groups;
  std::vector<ContainerSpec> init_containers;
  std::vector<ContainerSpec> containers;
  std::vector<VolumeSpec> volumes;
  bool controlled = false;  // somebody makes another in its place when it fails
  // Somebody asked for its end.
  bool deleting = false;
  absl::Duration deletion_grace = absl::ZeroDuration();

  std::string Hostname() const;  // as its processes see it: a label of at most 63 characters
  // "name.subdomain.ns.svc.cluster.local"; empty unless it has a subdomain.
  std::string Fqdn() const;
  const ContainerSpec* FindContainer(std::string_view container) const;
};

// Where containers look for the token, the authority and the namespace.
inline constexpr std::string_view kTokenVolume = "kube-api-access";
inline constexpr std::string_view kServiceAccountFolder = "/var/run/secrets/kubernetes.io/serviceaccount";

inline constexpr std::string_view kClusterDomain = "cluster.local";

// Lenient: the API server has validated it. InvalidArgument: it has no name, uid or containers.
absl::StatusOr<PodSpec> ParsePodSpec(const Document& pod);

enum class QosClass : std::uint8_t { kGuaranteed, kBurstable, kBestEffort };
std::string_view PrintQos(QosClass qos);
QosClass FindQos(const PodSpec& spec);

}  // namespace trainyard::node
