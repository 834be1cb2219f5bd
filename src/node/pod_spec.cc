#include "node/pod_spec.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace trainyard::node {
namespace {

std::string Str(const Document& object, Path path, std::string_view otherwise = "") {
  return std::string(StringAt(object, path, otherwise));
}

absl::Duration SecondsAt(const Document& object, Path path, std::int64_t otherwise) {
  return absl::Seconds(IntAt(object, path).value_or(otherwise));
}

int SmallInt(const Document& object, Path path, int otherwise) {
  const auto number = IntAt(object, path);
  return number ? static_cast<int>(std::clamp<std::int64_t>(*number, INT32_MIN, INT32_MAX)) : otherwise;
}

// Calls `each` for every item of the list, if there is one.
template <typename F>
void ForEach(const Document& object, Path path, F&& each) {
  if (const Array* list = ArrayAt(object, path)) {
    for (const Document& item : *list) each(item);
  }
}

std::vector<std::string> Strings(const Document& object, Path path) {
  std::vector<std::string> out;
  ForEach(object, path, [&](const Document& item) { out.emplace_back(Text(item)); });
  return out;
}

std::map<std::string, std::string, std::less<>> StringMapAt(const Document& object, Path path) {
  std::map<std::string, std::string, std::less<>> out;
  if (const Object* members = ObjectAt(object, path)) {
    for (const auto& member : *members) out.emplace(Key(member), Text(member.value()));
  }
  return out;
}

// A port: "80" or "http".
std::string IntOrString(const Document& object, Path path) {
  if (const auto number = IntAt(object, path)) return StrCat(*number);
  return Str(object, path);
}

FieldRef ParseFieldRef(const Document& ref) { return {.path = Str(ref, {"fieldPath"})}; }
ResourceFieldRef ParseResourceRef(const Document& ref) {
  const Document* divisor = Find(ref, {"divisor"});
  return {.container = Str(ref, {"containerName"}),
          .resource = Str(ref, {"resource"}),
          .divisor = divisor == nullptr ? "" : IntOrString(ref, {"divisor"})};
}

template <typename T>
T ParseKeyRef(const Document& ref) {
  T key;
  key.name = Str(ref, {"name"});
  key.key = Str(ref, {"key"});
  key.optional = BoolAt(ref, {"optional"});
  return key;
}

EnvVar ParseEnvVar(const Document& item) {
  EnvVar variable{.name = Str(item, {"name"}), .value = Str(item, {"value"})};
  if (const Document* ref = Find(item, {"valueFrom", "fieldRef"})) variable.from = ParseFieldRef(*ref);
  if (const Document* ref = Find(item, {"valueFrom", "resourceFieldRef"}))
    variable.from = ParseResourceRef(*ref);
  if (const Document* ref = Find(item, {"valueFrom", "configMapKeyRef"})) {
    variable.from = ParseKeyRef<ConfigMapKeyRef>(*ref);
  }
  if (const Document* ref = Find(item, {"valueFrom", "secretKeyRef"})) {
    variable.from = ParseKeyRef<SecretKeyRef>(*ref);
  }
  return variable;
}

EnvFrom ParseEnvFrom(const Document& item) {
  const bool secret = Find(item, {"secretRef"}) != nullptr;
  const std::string_view ref = secret ? "secretRef" : "configMapRef";
  return {.secret = secret,
          .name = Str(item, {ref, "name"}),
          .prefix = Str(item, {"prefix"}),
          .optional = BoolAt(item, {ref, "optional"})};
}

std::optional<Action> ParseAction(const Document& handler) {
  if (Find(handler, {"exec"}) != nullptr) return ExecAction{.command = Strings(handler, {"exec", "command"})};
  if (const Document* get = Find(handler, {"httpGet"})) {
    HttpAction action{.path = Str(*get, {"path"}, "/"),
                      .port = IntOrString(*get, {"port"}),
                      .host = Str(*get, {"host"}),
                      .scheme = Str(*get, {"scheme"}, "HTTP")};
    if (!action.path.starts_with('/')) action.path.insert(0, "/");
    ForEach(*get, {"httpHeaders"}, [&](const Document& header) {
      action.headers.emplace_back(Str(header, {"name"}), Str(header, {"value"}));
    });
    return action;
  }
  if (const Document* tcp = Find(handler, {"tcpSocket"})) {
    return TcpAction{.port = IntOrString(*tcp, {"port"}), .host = Str(*tcp, {"host"})};
  }
  if (Find(handler, {"grpc"}) != nullptr) return UnsupportedAction{.kind = "grpc"};
  return std::nullopt;
}

std::optional<ProbeSpec> ParseProbe(const Document& container, std::string_view key) {
  const Document* probe = Find(container, {key});
  if (probe == nullptr) return std::nullopt;
  const auto action = ParseAction(*probe);
  if (!action) return std::nullopt;
  ProbeSpec spec{.action = *action};
  spec.initial_delay = SecondsAt(*probe, {"initialDelaySeconds"}, 0);
  spec.period = std::max(SecondsAt(*probe, {"periodSeconds"}, 10), absl::Seconds(1));
  spec.timeout = std::max(SecondsAt(*probe, {"timeoutSeconds"}, 1), absl::Seconds(1));
  spec.success_threshold = std::max(SmallInt(*probe, {"successThreshold"}, 1), 1);
  spec.failure_threshold = std::max(SmallInt(*probe, {"failureThreshold"}, 3), 1);
  if (const auto grace = IntAt(*probe, {"terminationGracePeriodSeconds"})) {
    spec.termination_grace = absl::Seconds(*grace);
  }
  return spec;
}

std::optional<Action> ParseHook(const Document& container, std::string_view key) {
  const Document* hook = Find(container, {"lifecycle", key});
  return hook == nullptr ? std::nullopt : ParseAction(*hook);
}

VolumeMount ParseMount(const Document& item) {
  VolumeMount mount{.volume = Str(item, {"name"}),
                    .path = Str(item, {"mountPath"}),
                    .sub_path = Str(item, {"subPath"}),
                    .read_only = BoolAt(item, {"readOnly"})};
  if (const std::string expression = Str(item, {"subPathExpr"}); !expression.empty()) {
    mount.sub_path = expression;
    mount.expand = true;
  }
  return mount;
}

Resources ParseResources(const Document& container, std::string_view kind) {
  Resources resources;
  const Object* amounts = ObjectAt(container, {"resources", kind});
  if (amounts == nullptr) return resources;
  for (const auto& amount : *amounts) {
    const std::string text =
        amount.value().is_string() ? std::string(Text(amount.value())) : PrintJson(amount.value());
    if (const auto quantity = kube::Quantity::Parse(text); quantity.ok()) {
      resources.emplace(Key(amount), *quantity);
    }
  }
  return resources;
}

SecuritySpec ParseSecurity(const Document& object, const SecuritySpec& outer) {
  SecuritySpec security = outer;
  if (const auto user = IntAt(object, {"securityContext", "runAsUser"})) security.user = user;
  if (const auto group = IntAt(object, {"securityContext", "runAsGroup"})) security.group = group;
  if (const Document* flag = Find(object, {"securityContext", "runAsNonRoot"})) {
    security.non_root = flag->is_bool() && flag->get_bool();
  }
  if (const Document* flag = Find(object, {"securityContext", "allowPrivilegeEscalation"})) {
    security.allow_escalation = flag->is_bool() && flag->get_bool();
  }
  return security;
}

ContainerSpec ParseContainer(const Document& item, const SecuritySpec& pod_security) {
  ContainerSpec spec{.name = Str(item, {"name"}),
                     .image = Str(item, {"image"}),
                     .command = Strings(item, {"command"}),
                     .args = Strings(item, {"args"}),
                     .working_dir = Str(item, {"workingDir"})};
  ForEach(item, {"env"}, [&](const Document& env) { spec.env.push_back(ParseEnvVar(env)); });
  ForEach(item, {"envFrom"}, [&](const Document& from) { spec.env_from.push_back(ParseEnvFrom(from)); });
  ForEach(item, {"ports"}, [&](const Document& port) {
    spec.ports.push_back({.name = Str(port, {"name"}), .number = SmallInt(port, {"containerPort"}, 0)});
  });
  ForEach(item, {"volumeMounts"}, [&](const Document& mount) { spec.mounts.push_back(ParseMount(mount)); });
  spec.limits = ParseResources(item, "limits");
  spec.requests = ParseResources(item, "requests");
  spec.startup = ParseProbe(item, "startupProbe");
  spec.liveness = ParseProbe(item, "livenessProbe");
  spec.readiness = ParseProbe(item, "readinessProbe");
  spec.post_start = ParseHook(item, "postStart");
  spec.pre_stop = ParseHook(item, "preStop");
  spec.termination_path = Str(item, {"terminationMessagePath"}, spec.termination_path);
  spec.termination_from_logs = StringAt(item, {"terminationMessagePolicy"}) == "FallbackToLogsOnError";
  spec.security = ParseSecurity(item, pod_security);
  return spec;
}

std::vector<VolumeItem> ParseItems(const Document& source) {
  std::vector<VolumeItem> items;
  ForEach(source, {"items"}, [&](const Document& item) {
    VolumeItem& one = items.emplace_back();
    one.key = Str(item, {"key"});
    one.path = Str(item, {"path"});
    if (const auto mode = IntAt(item, {"mode"})) one.mode = static_cast<int>(*mode & 07777);
    if (const Document* ref = Find(item, {"fieldRef"})) one.from = ParseFieldRef(*ref);
    if (const Document* ref = Find(item, {"resourceFieldRef"})) one.from = ParseResourceRef(*ref);
  });
  return items;
}

template <typename T>
T ParseKeySource(const Document& source, std::string_view name_key) {
  T parsed;
  parsed.name = Str(source, {name_key});
  parsed.optional = BoolAt(source, {"optional"});
  parsed.items = ParseItems(source);
  return parsed;
}

// One source of a volume; a projected volume has a list of them under the same names.
std::optional<VolumeSpec::Source> ParseSource(std::string_view kind, const Document& source, bool projected) {
  if (kind == "emptyDir") return EmptyDirSource{};
  if (kind == "hostPath") return HostPathSource{.path = Str(source, {"path"}), .type = Str(source, {"type"})};
  if (kind == "configMap") return ParseKeySource<ConfigMapSource>(source, "name");
  if (kind == "secret") return ParseKeySource<SecretSource>(source, projected ? "name" : "secretName");
  if (kind == "downwardAPI") return DownwardSource{.items = ParseItems(source)};
  if (kind == "serviceAccountToken") return TokenSource{.path = Str(source, {"path"})};
  return UnsupportedSource{.kind = std::string(kind)};
}

VolumeSpec ParseVolume(const Document& item) {
  VolumeSpec volume{.name = Str(item, {"name"})};
  const Object* members = item.if_object();
  if (members == nullptr) return volume;
  for (const auto& member : *members) {
    if (Key(member) == "name") continue;
    volume.default_mode = SmallInt(member.value(), {"defaultMode"}, 0644) & 07777;
    if (Key(member) != "projected") {
      volume.sources.push_back(*ParseSource(Key(member), member.value(), false));
      continue;
    }
    ForEach(member.value(), {"sources"}, [&](const Document& source) {
      if (const Object* kinds = source.if_object()) {
        for (const auto& kind : *kinds) volume.sources.push_back(*ParseSource(Key(kind), kind.value(), true));
      }
    });
  }
  if (volume.sources.empty()) volume.sources.emplace_back(EmptyDirSource{});
  return volume;
}

void ParseMeta(const Document& pod, PodSpec& spec) {
  spec.ns = Str(pod, {"metadata", "namespace"}, "default");
  spec.name = Str(pod, {"metadata", "name"});
  spec.uid = Str(pod, {"metadata", "uid"});
  spec.labels = StringMapAt(pod, {"metadata", "labels"});
  spec.annotations = StringMapAt(pod, {"metadata", "annotations"});
  if (const Array* owners = ArrayAt(pod, {"metadata", "ownerReferences"})) {
    spec.controlled =
        std::ranges::any_of(*owners, [](const Document& owner) { return BoolAt(owner, {"controller"}); });
  }
  spec.deleting = !StringAt(pod, {"metadata", "deletionTimestamp"}).empty();
  spec.deletion_grace = SecondsAt(pod, {"metadata", "deletionGracePeriodSeconds"}, 0);
}

void ParseRest(const Document& pod, PodSpec& spec) {
  spec.node = Str(pod, {"spec", "nodeName"});
  spec.service_account = Str(pod, {"spec", "serviceAccountName"});
  spec.hostname = Str(pod, {"spec", "hostname"});
  spec.subdomain = Str(pod, {"spec", "subdomain"});
  spec.hostname_is_fqdn = BoolAt(pod, {"spec", "setHostnameAsFQDN"});
  const std::string_view policy = StringAt(pod, {"spec", "restartPolicy"}, "Always");
  if (policy == "OnFailure") spec.restart_policy = RestartPolicy::kOnFailure;
  if (policy == "Never") spec.restart_policy = RestartPolicy::kNever;
  spec.grace = SecondsAt(pod, {"spec", "terminationGracePeriodSeconds"}, 30);
  if (const auto deadline = IntAt(pod, {"spec", "activeDeadlineSeconds"})) {
    spec.active_deadline = absl::Seconds(*deadline);
  }
  spec.host_network = BoolAt(pod, {"spec", "hostNetwork"});
  spec.cluster_names =
      !spec.host_network || StringAt(pod, {"spec", "dnsPolicy"}) == "ClusterFirstWithHostNet";
  spec.service_links = BoolAt(pod, {"spec", "enableServiceLinks"}, true);
  ForEach(pod, {"spec", "hostAliases"}, [&](const Document& alias) {
    spec.host_aliases.push_back({.address = Str(alias, {"ip"}), .names = Strings(alias, {"hostnames"})});
  });
  ForEach(pod, {"spec", "readinessGates"},
          [&](const Document& gate) { spec.readiness_gates.push_back(Str(gate, {"conditionType"})); });
  spec.fs_group = IntAt(pod, {"spec", "securityContext", "fsGroup"});
  ForEach(pod, {"spec", "securityContext", "supplementalGroups"}, [&](const Document& group) {
    if (group.is_int64()) spec.supplemental_groups.push_back(group.get_int64());
  });
}

// A pod that says so, or that has an account of its own: to give it to all would cost every pod that never
// asks the API server anything.
bool WantsToken(const Document& pod) {
  const std::string_view account = StringAt(pod, {"spec", "serviceAccountName"});
  return BoolAt(pod, {"spec", "automountServiceAccountToken"}, !account.empty() && account != "default");
}

// What the server of a real cluster writes into such a pod.
void AddTokenVolume(PodSpec& spec) {
  const auto item = [](std::string key, std::string path) {
    return VolumeItem{.key = std::move(key), .path = std::move(path)};
  };
  VolumeItem ns = item("", "namespace");
  ns.from = FieldRef{.path = "metadata.namespace"};
  ConfigMapSource authority;
  authority.name = "kube-root-ca.crt";
  authority.items = {item("ca.crt", "ca.crt")};
  spec.volumes.push_back(
      {.name = std::string(kTokenVolume),
       .sources = {TokenSource{.path = "token"}, authority, DownwardSource{.items = {ns}}}});
  for (auto* list : {&spec.init_containers, &spec.containers}) {
    for (ContainerSpec& container : *list) {
      if (std::ranges::find(container.mounts, kServiceAccountFolder, &VolumeMount::path) !=
          container.mounts.end())
        continue;
      container.mounts.push_back({.volume = std::string(kTokenVolume),
                                  .path = std::string(kServiceAccountFolder),
                                  .read_only = true});
    }
  }
}

}  // namespace

absl::StatusOr<PodSpec> ParsePodSpec(const Document& pod) {
  PodSpec spec;
  ParseMeta(pod, spec);
  const Document* body = Find(pod, {"spec"});
  if (spec.name.empty() || spec.uid.empty() || body == nullptr) {
    return absl::InvalidArgumentError(StrCat("pod '", spec.ns, "/", spec.name, "' has no name, uid or spec"));
  }
  ParseRest(pod, spec);
  const SecuritySpec security = ParseSecurity(*body, {});
  ForEach(*body, {"initContainers"},
          [&](const Document& item) { spec.init_containers.push_back(ParseContainer(item, security)); });
  ForEach(*body, {"containers"},
          [&](const Document& item) { spec.containers.push_back(ParseContainer(item, security)); });
  ForEach(*body, {"volumes"}, [&](const Document& item) { spec.volumes.push_back(ParseVolume(item)); });
  spec.mount_token = WantsToken(pod);
  if (spec.mount_token) AddTokenVolume(spec);
  if (spec.containers.empty()) {
    return absl::InvalidArgumentError(StrCat("pod '", spec.ns, "/", spec.name, "' has no containers"));
  }
  return spec;
}

std::string PodSpec::Hostname() const {
  std::string label = hostname.empty() ? name : hostname;
  if (label.size() > 63) {
    label.resize(63);
    while (!label.empty() && (label.back() == '-' || label.back() == '.')) label.pop_back();
  }
  return label;
}

std::string PodSpec::Fqdn() const {
  return subdomain.empty() ? "" : StrCat(Hostname(), ".", subdomain, ".", ns, ".svc.", kClusterDomain);
}

const ContainerSpec* PodSpec::FindContainer(std::string_view container) const {
  for (const auto* list : {&containers, &init_containers}) {
    for (const ContainerSpec& spec : *list) {
      if (spec.name == container) return &spec;
    }
  }
  return nullptr;
}

std::string_view PrintQos(QosClass qos) {
  switch (qos) {
    case QosClass::kGuaranteed:
      return "Guaranteed";
    case QosClass::kBurstable:
      return "Burstable";
    case QosClass::kBestEffort:
      return "BestEffort";
  }
  return "BestEffort";
}

QosClass FindQos(const PodSpec& spec) {
  bool any = false;
  bool guaranteed = true;
  for (const auto* list : {&spec.init_containers, &spec.containers}) {
    for (const ContainerSpec& container : *list) {
      for (const std::string_view resource : std::array<std::string_view, 2>{"cpu", "memory"}) {
        const auto limit = container.limits.find(resource);
        const auto request = container.requests.find(resource);
        const bool limited = limit != container.limits.end() && limit->second.Sign() > 0;
        const bool requested = request != container.requests.end() && request->second.Sign() > 0;
        any = any || limited || requested;
        // A request that is not given is the limit.
        if (!limited || (requested && request->second != limit->second)) guaranteed = false;
      }
    }
  }
  if (!any) return QosClass::kBestEffort;
  return guaranteed ? QosClass::kGuaranteed : QosClass::kBurstable;
}

}  // namespace trainyard::node
