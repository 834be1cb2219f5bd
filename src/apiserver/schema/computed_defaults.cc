#include "apiserver/schema/computed_defaults.h"

#include <algorithm>
#include <string>

#include "base/base64.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "kube/quantity.h"

namespace trainyard::apiserver {
namespace {

void PutIfMissing(Object& object, std::string_view key, Document value) {
  if (!object.contains(key)) object.emplace(key, std::move(value));
}

template <typename Visit>
void ForEachObject(Document& document, Path path, const Visit& visit) {
  Array* array = ArrayAt(document, path);
  if (array == nullptr) return;
  for (Document& item : *array) {
    if (Object* object = item.if_object()) visit(*object);
  }
}

// An image without a tag and without a digest means the tag latest.
bool HasTagLatest(std::string_view image) {
  if (image.find('@') != std::string_view::npos) return image.substr(0, image.find('@')).ends_with(":latest");
  const std::string_view last = image.substr(image.rfind('/') + 1);
  const std::size_t colon = last.find(':');
  return !last.empty() && (colon == std::string_view::npos || last.substr(colon) == ":latest");
}

void DefaultContainer(Object& container, bool host_network) {
  const Document* image = container.if_contains("image");
  PutIfMissing(container, "imagePullPolicy",
               image != nullptr && HasTagLatest(Text(*image)) ? "Always" : "IfNotPresent");
  if (!host_network) return;
  Document* ports = container.if_contains("ports");
  if (ports == nullptr || !ports->is_array()) return;
  for (Document& port : ports->get_array()) {
    const auto number = IntAt(port, {"containerPort"});
    if (number && IntAt(port, {"hostPort"}).value_or(0) == 0) port.get_object()["hostPort"] = *number;
  }
}

void RequestWhatIsLimited(Object& container) {
  Document* limits = Find(container, {"resources", "limits"});
  if (limits == nullptr || !limits->is_object()) return;
  Document& requests = (*Find(container, {"resources"})).get_object()["requests"];
  if (!requests.is_object()) requests.emplace_object();
  limits = Find(container, {"resources", "limits"});  // which the new member may have moved
  for (const auto& member : limits->get_object())
    PutIfMissing(requests.get_object(), Key(member), member.value());
}

void TolerateAWhile(Document& pod, std::string_view taint) {
  const auto tolerates = [&](const Document& toleration) {
    const std::string_view key = StringAt(toleration, {"key"});
    const std::string_view effect = StringAt(toleration, {"effect"});
    return (key == taint || key.empty()) && (effect == "NoExecute" || effect.empty());
  };
  const Array* present = ArrayAt(pod, {"spec", "tolerations"});
  if (present != nullptr && std::ranges::any_of(*present, tolerates)) return;
  Document& list = MakeObjectAt(pod, {"spec"})["tolerations"];
  if (!list.is_array()) list.emplace_array();
  list.get_array().push_back(
      Object{{"key", taint}, {"operator", "Exists"}, {"effect", "NoExecute"}, {"tolerationSeconds", 300}});
}

void DefaultPod(Document& pod) {
  Object& spec = MakeObjectAt(pod, {"spec"});
  const bool host_network = BoolAt(pod, {"spec", "hostNetwork"});
  for (const std::string_view list : {"initContainers", "containers", "ephemeralContainers"}) {
    const bool ephemeral = list == "ephemeralContainers";
    ForEachObject(pod, {"spec", list}, [&](Object& container) {
      DefaultContainer(container, host_network && !ephemeral);
      if (!ephemeral) RequestWhatIsLimited(container);
    });
  }
  ForEachObject(pod, {"spec", "volumes"}, [](Object& volume) {
    if (volume.size() == (volume.contains("name") ? 1U : 0U)) volume["emptyDir"].emplace_object();
  });
  const std::string account(
      StringAt(pod, {"spec", "serviceAccountName"}, StringAt(pod, {"spec", "serviceAccount"})));
  if (!account.empty()) {
    spec["serviceAccountName"] = account;
    spec["serviceAccount"] = account;
  }
  TolerateAWhile(pod, "node.kubernetes.io/not-ready");
  TolerateAWhile(pod, "node.kubernetes.io/unreachable");
}

void DefaultService(Document& service) {
  Object& spec = MakeObjectAt(service, {"spec"});
  ForEachObject(service, {"spec", "ports"}, [](Object& port) {
    const Document* target = port.if_contains("targetPort");
    const Document* number = port.if_contains("port");
    const bool missing = target == nullptr || *target == Document(0) || *target == Document("");
    if (missing && number != nullptr) port["targetPort"] = Document(*number);
  });
  const std::string type(StringAt(service, {"spec", "type"}));
  const bool outside = type == "NodePort" || type == "LoadBalancer";
  if (outside) PutIfMissing(spec, "externalTrafficPolicy", "Cluster");
  if (outside || type == "ClusterIP") PutIfMissing(spec, "internalTrafficPolicy", "Cluster");
  if (type == "LoadBalancer") PutIfMissing(spec, "allocateLoadBalancerNodePorts", true);
  if (StringAt(service, {"spec", "sessionAffinity"}) == "ClientIP") {
    if (!IntAt(service, {"spec", "sessionAffinityConfig", "clientIP", "timeoutSeconds"}))
      MakeObjectAt(service, {"spec", "sessionAffinityConfig", "clientIP"})["timeoutSeconds"] = 10800;
  } else {
    Remove(spec, "sessionAffinityConfig");
  }
  if (type == "ExternalName") return;
  const std::string address(StringAt(service, {"spec", "clusterIP"}));
  if (!address.empty()) PutIfMissing(spec, "clusterIPs", Array{Document(address)});
  // A headless service without a selector may be given addresses of either family by whoever writes them.
  if (address == "None" && Find(service, {"spec", "selector"}) == nullptr) {
    PutIfMissing(spec, "ipFamilyPolicy", "RequireDualStack");
    PutIfMissing(spec, "ipFamilies", Array{"IPv4", "IPv6"});
    return;
  }
  PutIfMissing(spec, "ipFamilyPolicy", "SingleStack");
  PutIfMissing(spec, "ipFamilies", Array{address.find(':') == std::string::npos ? "IPv4" : "IPv6"});
}

void DefaultSecret(Document& secret) {
  Object* texts = ObjectAt(secret, {"stringData"});
  if (texts == nullptr) return;
  Object& data = MakeObjectAt(secret, {"data"});
  texts = ObjectAt(secret, {"stringData"});  // which the new member may have moved
  for (const auto& member : *texts) data[member.key()] = EncodeBase64(Text(member.value()));
  Remove(secret.get_object(), "stringData");
}

void DefaultNamespace(Document& space) {
  const std::string name(StringAt(space, {"metadata", "name"}));
  if (!name.empty()) MakeObjectAt(space, {"metadata", "labels"})["kubernetes.io/metadata.name"] = name;
  PutIfMissing(MakeObjectAt(space, {"status"}), "phase", "Active");
}

void DefaultNode(Document& node) {
  const Document* capacity = Find(node, {"status", "capacity"});
  if (capacity == nullptr) return;
  PutIfMissing(MakeObjectAt(node, {"status"}), "allocatable", Document(*capacity));
}

void DefaultDefinition(Document& definition) {
  const std::string kind(StringAt(definition, {"spec", "names", "kind"}));
  if (kind.empty()) return;
  Object& names = MakeObjectAt(definition, {"spec", "names"});
  std::string singular = kind;
  std::ranges::transform(singular, singular.begin(),
                         [](char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c); });
  PutIfMissing(names, "singular", Document(singular));
  PutIfMissing(names, "listKind", Document(kind + "List"));
}

void BeginDefinition(Document& definition) {
  Object& status = definition.get_object()["status"].emplace_object();
  status["conditions"] = Array();
  status["acceptedNames"] = Object{{"plural", ""}, {"kind", ""}};
  Array& stored = status["storedVersions"].emplace_array();
  const Array* versions = ArrayAt(definition, {"spec", "versions"});
  if (versions == nullptr) return;
  for (const Document& version : *versions) {
    if (BoolAt(version, {"storage"})) stored.push_back(Document(StringAt(version, {"name"})));
  }
}

void KeepIfMissing(const Document& from, Document& to, std::string_view key) {
  const Document* value = Find(from, {"spec", key});
  const Document* present = Find(to, {"spec", key});
  const bool missing = present == nullptr || *present == Document("");
  if (value != nullptr && missing) MakeObjectAt(to, {"spec"})[key] = *value;
}

void CarryOverService(const Document& before, Document& after) {
  const auto is = [](const Document& service, std::string_view type) {
    return StringAt(service, {"spec", "type"}) == type;
  };
  if (is(before, "ExternalName") || is(after, "ExternalName")) return;
  if (StringAt(after, {"spec", "clusterIP"}).empty()) {
    for (const std::string_view key : {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"})
      KeepIfMissing(before, after, key);
  }
  const Array* ports = ArrayAt(before, {"spec", "ports"});
  if (ports == nullptr || is(after, "ClusterIP")) return;
  ForEachObject(after, {"spec", "ports"}, [&](Object& port) {
    if (const Document* given = port.if_contains("nodePort"); given != nullptr && *given != Document(0))
      return;
    for (const Document& old_port : *ports) {
      const auto node_port = IntAt(old_port, {"nodePort"});
      const Document* number = port.if_contains("port");
      const Document* protocol = port.if_contains("protocol");
      if (node_port && number != nullptr && IntAt(old_port, {"port"}) == IntAt(*number, {}) &&
          StringAt(old_port, {"protocol"}) == (protocol == nullptr ? "TCP" : Text(*protocol)))
        port["nodePort"] = *node_port;
    }
  });
}

bool IsCore(const KindInfo& kind, std::string_view name) { return kind.group.empty() && kind.kind == name; }
bool IsDefinition(const KindInfo& kind) {
  return kind.group == "apiextensions.k8s.io" && kind.kind == "CustomResourceDefinition";
}

absl::StatusOr<kube::Quantity> ToQuantity(const Document& value) {
  return value.is_string() ? kube::Quantity::Parse(Text(value)) : kube::Quantity::Parse(PrintJson(value));
}

// Zero if there is none.
kube::Quantity QuantityAt(const Document& document, Path path) {
  const Document* value = Find(document, path);
  return value == nullptr ? kube::Quantity() : ToQuantity(*value).value_or(kube::Quantity());
}

void CanonicalizeText(const Schema& schema, Document& value) {
  if (schema.format == "quantity") {
    const auto quantity = ToQuantity(value);
    if (quantity.ok()) value = quantity->Print();
  } else if (schema.format == "date-time" && !schema.name.empty() && value.is_string()) {
    const auto time = ParseTime(Text(value));
    if (!time.ok()) return;
    value = schema.name.ends_with("MicroTime") ? PrintMicroTime(*time) : PrintTime(*time);
  }
}

}  // namespace

void ApplyComputedDefaults(const KindInfo& kind, Document& object) {
  if (!object.is_object()) return;
  if (kind.schema) Canonicalize(*kind.schema, object);
  if (IsCore(kind, "Pod")) DefaultPod(object);
  if (IsCore(kind, "Service")) DefaultService(object);
  if (IsCore(kind, "Secret")) DefaultSecret(object);
  if (IsCore(kind, "Namespace")) DefaultNamespace(object);
  if (IsCore(kind, "Node")) DefaultNode(object);
  if (IsDefinition(kind)) DefaultDefinition(object);
}

void PrepareForCreate(const KindInfo& kind, Document& object) {
  if (!object.is_object()) return;
  if (Object* metadata = ObjectAt(object, {"metadata"}); metadata != nullptr && !kind.namespaced)
    Remove(*metadata, "namespace");
  if (IsCore(kind, "Pod")) {
    object.get_object()["status"] = Object{{"phase", "Pending"}, {"qosClass", QosClassOf(object)}};
    Object& spec = MakeObjectAt(object, {"spec"});
    PutIfMissing(spec, "priority", 0);
    PutIfMissing(spec, "preemptionPolicy", "PreemptLowerPriority");
  }
  if (IsCore(kind, "Service")) object.get_object()["status"] = Object{{"loadBalancer", Object()}};
  if (IsCore(kind, "Namespace")) {
    object.get_object()["status"] = Object{{"phase", "Active"}};
    Document& finalizers = MakeObjectAt(object, {"spec"})["finalizers"];
    if (!finalizers.is_array()) finalizers.emplace_array();
    if (std::ranges::find(finalizers.get_array(), Document("kubernetes")) == finalizers.get_array().end())
      finalizers.get_array().push_back("kubernetes");
  }
  if (IsDefinition(kind)) BeginDefinition(object);
}

void PrepareForUpdate(const KindInfo& kind, const Document& old_object, Document& new_object) {
  if (!new_object.is_object()) return;
  if (IsCore(kind, "Pod")) {
    KeepIfMissing(old_object, new_object, "priority");
    KeepIfMissing(old_object, new_object, "preemptionPolicy");
  }
  if (IsCore(kind, "Service")) CarryOverService(old_object, new_object);
}

std::string_view QosClassOf(const Document& pod) {
  bool any = false;
  bool guaranteed = true;
  for (const std::string_view list : {"initContainers", "containers"}) {
    const Array* containers = ArrayAt(pod, {"spec", list});
    if (containers == nullptr) continue;
    for (const Document& container : *containers) {
      for (const std::string_view resource : {"cpu", "memory"}) {
        const kube::Quantity limit = QuantityAt(container, {"resources", "limits", resource});
        const kube::Quantity request = QuantityAt(container, {"resources", "requests", resource});
        any = any || limit.Sign() > 0 || request.Sign() > 0;
        guaranteed = guaranteed && limit.Sign() > 0 && request == limit;
      }
    }
  }
  return !any ? "BestEffort" : guaranteed ? "Guaranteed" : "Burstable";
}

void Canonicalize(const Schema& schema, Document& value) {
  if (Object* object = value.if_object()) {
    for (auto& member : *object) {
      const auto property = schema.properties.find(Key(member));
      const Schema* below =
          property != schema.properties.end() ? property->second.get() : schema.additional.get();
      if (below != nullptr) Canonicalize(*below, member.value());
    }
  } else if (Array* array = value.if_array()) {
    if (!schema.items) return;
    for (Document& item : *array) Canonicalize(*schema.items, item);
  } else if (!schema.format.empty()) {
    CanonicalizeText(schema, value);
  }
}

}  // namespace trainyard::apiserver
