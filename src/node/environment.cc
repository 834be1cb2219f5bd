#include "node/environment.h"

#include <algorithm>
#include <cctype>

#include "base/status.h"
#include "base/text.h"

namespace trainyard::node {
namespace {

std::string VariableName(std::string_view service) {
  std::string name(service);
  for (char& c : name) c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

std::string LowerCase(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

void AddServiceVariables(std::string_view service, const ServiceObject& object, StringMap& out) {
  if (!object.has_ip() || object.ports.empty()) return;
  const std::string prefix = VariableName(service);
  const bool v6 = object.cluster_ip.find(':') != std::string::npos;
  const std::string host = v6 ? StrCat("[", object.cluster_ip, "]") : object.cluster_ip;
  out[prefix + "_SERVICE_HOST"] = object.cluster_ip;
  out[prefix + "_SERVICE_PORT"] = StrCat(object.ports[0].port);
  for (const ServicePort& port : object.ports) {
    if (!port.name.empty())
      out[StrCat(prefix, "_SERVICE_PORT_", VariableName(port.name))] = StrCat(port.port);
    const std::string protocol = LowerCase(port.protocol);
    const std::string url = StrCat(protocol, "://", host, ":", port.port);
    if (&port == &object.ports[0]) out[prefix + "_PORT"] = url;
    const std::string one = StrCat(prefix, "_PORT_", port.port, "_", VariableName(port.protocol));
    out[one] = url;
    out[one + "_PROTO"] = protocol;
    out[one + "_PORT"] = StrCat(port.port);
    out[one + "_ADDR"] = object.cluster_ip;
  }
}

std::string PrintMap(const StringMap& map) {
  std::string out;
  for (const auto& [key, value] : map) {
    StrAppend(out, out.empty() ? "" : "\n", key, "=\"", Escaped(value), "\"");
  }
  return out;
}

// Of "metadata.labels['app']": the map's name and the key in it.
std::optional<std::pair<std::string_view, std::string_view>> SplitSubscript(std::string_view path) {
  const std::size_t open = path.find("['");
  if (!path.ends_with("']") || open == std::string_view::npos || open == 0) return std::nullopt;
  return std::pair(path.substr(0, open), path.substr(open + 2, path.size() - open - 4));
}

std::string ValueIn(const StringMap& map, std::string_view key) {
  const auto found = map.find(key);
  return found == map.end() ? "" : found->second;
}

// Builds one container's variables step by step.
class Builder {
 public:
  Builder(const PodSpec& pod, const ContainerSpec& container, const ClusterObjects& objects,
          const PodFacts& facts)
      : pod_(pod),
        container_(container),
        objects_(objects),
        facts_(facts),
        services_(ServiceVariables(objects, pod.ns, pod.service_links)) {}

  absl::StatusOr<StringMap> Build() {
    for (const EnvFrom& from : container_.env_from) TY_RETURN_IF_ERROR(TakeAll(from));
    for (const EnvVar& variable : container_.env) TY_RETURN_IF_ERROR(TakeOne(variable));
    variables_.merge(services_);  // what is declared wins
    return std::move(variables_);
  }

 private:
  // Null: it is not there and need not be.
  absl::StatusOr<const DataObject*> FindData(bool secret, const std::string& name, bool optional) const {
    const auto& all = secret ? objects_.secrets : objects_.config_maps;
    const auto found = all.find({pod_.ns, name});
    if (found != all.end()) return &found->second;
    if (optional) return nullptr;
    return absl::NotFoundError(StrCat(secret ? "secret" : "configmap", " \"", name, "\" not found"));
  }

  absl::Status TakeAll(const EnvFrom& from) {
    TY_ASSIGN_OR_RETURN(const DataObject* source, FindData(from.secret, from.name, from.optional));
    if (source == nullptr) return absl::OkStatus();
    for (const auto& [key, value] : source->data) {
      const std::string name = from.prefix + key;
      if (IsVariableName(name)) variables_[name] = value;
    }
    return absl::OkStatus();
  }

  absl::Status TakeKey(const EnvVar& variable, const KeyRef& ref, bool secret) {
    TY_ASSIGN_OR_RETURN(const DataObject* source, FindData(secret, ref.name, ref.optional));
    if (source == nullptr) return absl::OkStatus();
    const auto found = source->data.find(ref.key);
    if (found != source->data.end()) {
      variables_[variable.name] = found->second;
    } else if (!ref.optional) {
      return absl::NotFoundError(StrCat("couldn't find key ", ref.key, " in ",
                                        secret ? "Secret " : "ConfigMap ", pod_.ns, "/", ref.name));
    }
    return absl::OkStatus();
  }

  absl::Status TakeOne(const EnvVar& variable) {
    if (variable.value.empty()) {
      if (const auto* ref = std::get_if<ConfigMapKeyRef>(&variable.from))
        return TakeKey(variable, *ref, false);
      if (const auto* ref = std::get_if<SecretKeyRef>(&variable.from)) return TakeKey(variable, *ref, true);
      if (const auto* ref = std::get_if<FieldRef>(&variable.from)) {
        TY_ASSIGN_OR_RETURN(variables_[variable.name], FieldValue(pod_, facts_, ref->path));
        return absl::OkStatus();
      }
      if (const auto* ref = std::get_if<ResourceFieldRef>(&variable.from)) {
        TY_ASSIGN_OR_RETURN(variables_[variable.name], ResourceValue(pod_, facts_, container_, *ref));
        return absl::OkStatus();
      }
    }
    std::string value = ExpandVariables(variable.value, [this](std::string_view name) { return Find(name); });
    if (value.size() > kMaxVariableBytes) {
      return absl::InvalidArgumentError(
          StrCat("the variable ", variable.name, " is longer than ", kMaxVariableBytes, " bytes"));
    }
    variables_[variable.name] = std::move(value);
    return absl::OkStatus();
  }

  const std::string* Find(std::string_view name) const {
    for (const StringMap* map : {&variables_, &services_}) {
      if (const auto found = map->find(name); found != map->end()) return &found->second;
    }
    return nullptr;
  }

  const PodSpec& pod_;
  const ContainerSpec& container_;
  const ClusterObjects& objects_;
  const PodFacts& facts_;
  StringMap services_;
  StringMap variables_;
};

}  // namespace

std::string ExpandVariables(std::string_view text, const VariableLookup& lookup) {
  std::string out;
  while (out.size() <= kMaxVariableBytes) {
    const std::size_t dollar = text.find('$');
    if (dollar == std::string_view::npos || dollar + 1 == text.size()) return out += text;
    out += text.substr(0, dollar);
    text.remove_prefix(dollar);
    const std::size_t close = text[1] == '(' ? text.find(')') : std::string_view::npos;
    if (close != std::string_view::npos) {
      const std::string* value = lookup(text.substr(2, close - 2));
      out += value != nullptr ? std::string_view(*value) : text.substr(0, close + 1);
      text.remove_prefix(close + 1);
    } else {
      out += text[1] == '$' ? "$" : text.substr(0, 2);
      text.remove_prefix(2);
    }
  }
  return out;
}

std::vector<std::string> ExpandVariables(const std::vector<std::string>& texts, const StringMap& variables) {
  std::vector<std::string> out;
  out.reserve(texts.size());
  for (const std::string& text : texts) {
    out.push_back(ExpandVariables(text, [&variables](std::string_view name) {
      const auto found = variables.find(name);
      return found == variables.end() ? nullptr : &found->second;
    }));
  }
  return out;
}

StringMap ServiceVariables(const ClusterObjects& objects, std::string_view ns, bool links) {
  StringMap out;
  if (const auto api = objects.services.find({"default", "kubernetes"}); api != objects.services.end()) {
    AddServiceVariables("kubernetes", api->second, out);
  }
  if (!links) return out;
  for (auto at = objects.services.lower_bound({std::string(ns), ""}); at != objects.services.end(); ++at) {
    if (at->first.ns != ns) break;
    AddServiceVariables(at->first.name, at->second, out);
  }
  return out;
}

absl::StatusOr<std::string> FieldValue(const PodSpec& pod, const PodFacts& facts, std::string_view path) {
  if (const auto subscript = SplitSubscript(path)) {
    if (subscript->first == "metadata.labels") return ValueIn(pod.labels, subscript->second);
    if (subscript->first == "metadata.annotations") return ValueIn(pod.annotations, subscript->second);
    return absl::InvalidArgumentError(StrCat("fieldPath \"", path, "\" does not support subscript"));
  }
  if (path == "metadata.name") return pod.name;
  if (path == "metadata.namespace") return pod.ns;
  if (path == "metadata.uid") return pod.uid;
  if (path == "metadata.labels") return PrintMap(pod.labels);
  if (path == "metadata.annotations") return PrintMap(pod.annotations);
  if (path == "spec.nodeName") return pod.node;
  if (path == "spec.serviceAccountName") return pod.service_account;
  if (path == "status.hostIP" || path == "status.hostIPs") return facts.host_ip;
  if (path == "status.podIP" || path == "status.podIPs") return facts.pod_ip;
  return absl::InvalidArgumentError(StrCat("unsupported fieldPath: ", path));
}

absl::StatusOr<std::string> ResourceValue(const PodSpec& pod, const PodFacts& facts,
                                          const ContainerSpec& asking, const ResourceFieldRef& ref) {
  const ContainerSpec* container = ref.container.empty() ? &asking : pod.FindContainer(ref.container);
  if (container == nullptr)
    return absl::InvalidArgumentError(StrCat("container ", ref.container, " not found"));
  const std::size_t dot = ref.resource.find('.');
  const std::string kind = ref.resource.substr(0, dot);
  const std::string name = dot == std::string::npos ? "" : ref.resource.substr(dot + 1);
  const bool known =
      (kind == "limits" || kind == "requests") &&
      (name == "cpu" || name == "memory" || name == "ephemeral-storage" || name.starts_with("hugepages-"));
  if (!known) return absl::InvalidArgumentError(StrCat("unsupported container resource : ", ref.resource));
  const Resources& own = kind == "limits" ? container->limits : container->requests;
  kube::Quantity amount;
  if (const auto found = own.find(name); found != own.end()) {
    amount = found->second;
  } else if (const auto all = facts.allocatable.find(name);
             kind == "limits" && all != facts.allocatable.end()) {
    amount = all->second;
  }
  TY_ASSIGN_OR_RETURN(kube::Quantity divisor, kube::Quantity::Parse(ref.divisor.empty() ? "1" : ref.divisor));
  if (divisor.Sign() == 0) divisor = kube::Quantity::FromUnits(1);
  // Processor time in thousandths, so that a divisor of 1m is exact; all else in whole units.
  const bool milli = name == "cpu";
  TY_ASSIGN_OR_RETURN(const std::int64_t total, milli ? amount.Milli() : amount.Units());
  TY_ASSIGN_OR_RETURN(const std::int64_t part, milli ? divisor.Milli() : divisor.Units());
  if (part <= 0) return absl::InvalidArgumentError(StrCat("divisor ", ref.divisor, " of ", ref.resource));
  return StrCat(total / part + (total % part > 0 ? 1 : 0));
}

absl::StatusOr<StringMap> BuildEnvironment(const PodSpec& pod, const ContainerSpec& container,
                                           const ClusterObjects& objects, const PodFacts& facts) {
  return Builder(pod, container, objects, facts).Build();
}

bool IsVariableName(std::string_view name) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-' || c == '.';
  };
  if (name.empty() || !letter(name[0]) || name == "." || name.starts_with("..")) return false;
  return std::ranges::all_of(name, [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

}  // namespace trainyard::node
