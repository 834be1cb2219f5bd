// What a pod's containers look like.
#include <algorithm>
#include <set>
#include <string>
#include <tuple>

#include "apiserver/schema/rules/rules.h"
#include "base/text.h"
#include "kube/names.h"
#include "kube/quantity.h"

namespace trainyard::apiserver {
namespace {

using Names = std::set<std::string, std::less<>>;

// What containers of one pod must not have twice, and what they refer to.
struct PodNames {
  Names containers;
  Names volumes;
  std::set<std::tuple<std::string, std::string, std::int64_t>> host_ports;
  bool host_network = false;
};

std::size_t CountGiven(const Document& parent, std::initializer_list<std::string_view> keys) {
  return static_cast<std::size_t>(
      std::ranges::count_if(keys, [&](std::string_view key) { return Find(parent, {key}) != nullptr; }));
}

void CheckPorts(const Document& container, const FieldPath& path, PodNames& pod, Causes& causes) {
  Names names;
  ForEachItem(container, "ports", path, [&](const Document& port, const FieldPath& at) {
    CheckName(port, "name", at, FindPortNameProblem, causes);
    const std::string name(StringAt(port, {"name"}));
    if (!name.empty() && !names.insert(name).second) causes.Duplicate(at.Child("name"), Document(name));
    CheckRange(port, "containerPort", at, 1, 65535, causes);
    const std::int64_t host_port = IntAt(port, {"hostPort"}).value_or(0);
    if (host_port == 0) return;
    CheckRange(port, "hostPort", at, 1, 65535, causes);
    if (pod.host_network && host_port != IntAt(port, {"containerPort"}))
      causes.Invalid(at.Child("containerPort"), host_port,
                     "must match `hostPort` when `hostNetwork` is true");
    const std::string protocol(StringAt(port, {"protocol"}));
    const std::string address(StringAt(port, {"hostIP"}));
    if (!pod.host_ports.emplace(protocol, address, host_port).second)
      causes.Duplicate(at.Child("hostPort"), Document(StrCat(protocol, "/", address, "/", host_port)));
  });
}

void CheckFieldRef(const Document& source, const FieldPath& path, Causes& causes) {
  const Document* ref = Find(source, {"fieldRef"});
  if (ref == nullptr) return;
  const FieldPath at = path.Child("fieldRef");
  const std::string_view field = StringAt(*ref, {"fieldPath"});
  if (field.empty()) return causes.Required(at.Child("fieldPath"));
  if (field.starts_with("metadata.labels['") || field.starts_with("metadata.annotations['")) return;
  const std::vector<std::string> known = {
      "metadata.name",           "metadata.namespace", "metadata.uid", "spec.nodeName",
      "spec.serviceAccountName", "status.hostIP",      "status.podIP", "status.podIPs"};
  if (std::ranges::find(known, field) == known.end())
    causes.NotSupported(at.Child("fieldPath"), Document(field), known);
}

void CheckEnvSource(const Document& variable, const FieldPath& path, Causes& causes) {
  const Document* source = Find(variable, {"valueFrom"});
  if (source == nullptr) return;
  const FieldPath at = path.Child("valueFrom");
  const auto kinds = {std::string_view("fieldRef"), std::string_view("resourceFieldRef"),
                      std::string_view("configMapKeyRef"), std::string_view("secretKeyRef")};
  const std::size_t given = CountGiven(*source, kinds);
  if (!StringAt(variable, {"value"}).empty() && given > 0) {
    causes.Invalid(at, Document(""), "may not be specified when `value` is not empty");
  } else if (given == 0) {
    causes.Invalid(
        at, Document(""),
        "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`");
  } else if (given > 1) {
    causes.Invalid(at, Document(""), "may not have more than one field specified at a time");
  }
  CheckFieldRef(*source, at, causes);
  for (const std::string_view kind : {"configMapKeyRef", "secretKeyRef"}) {
    if (const Document* ref = Find(*source, {kind})) {
      const FieldPath below = at.Child(kind);
      CheckGiven(*ref, "name", below, causes);
      CheckGiven(*ref, "key", below, causes);
    }
  }
}

void CheckEnv(const Document& container, const FieldPath& path, Causes& causes) {
  ForEachItem(container, "env", path, [&](const Document& variable, const FieldPath& at) {
    if (CheckGiven(variable, "name", at, causes)) CheckName(variable, "name", at, FindEnvNameProblem, causes);
    CheckEnvSource(variable, at, causes);
  });
  ForEachItem(container, "envFrom", path, [&](const Document& source, const FieldPath& at) {
    CheckName(source, "prefix", at, FindEnvNameProblem, causes);
    const std::size_t given = CountGiven(source, {"configMapRef", "secretRef"});
    if (given == 0) causes.Invalid(at, Document(""), "must specify one of: `configMapRef` or `secretRef`");
    if (given > 1) causes.Invalid(at, Document(""), "may not have more than one field specified at a time");
    for (const std::string_view kind : {"configMapRef", "secretRef"}) {
      if (const Document* ref = Find(source, {kind})) CheckGiven(*ref, "name", at.Child(kind), causes);
    }
  });
}

void CheckMounts(const Document& container, const FieldPath& path, const PodNames& pod, Causes& causes) {
  Names paths;
  const auto check = [&](const Document& mount, const FieldPath& at, std::string_view where) {
    if (CheckGiven(mount, "name", at, causes) && !pod.volumes.contains(StringAt(mount, {"name"})))
      causes.NotFound(at.Child("name"), *Find(mount, {"name"}));
    if (!CheckGiven(mount, where, at, causes)) return;
    if (!paths.emplace(StringAt(mount, {where})).second)
      causes.Invalid(at.Child(where), *Find(mount, {where}), "must be unique");
  };
  ForEachItem(container, "volumeMounts", path, [&](const Document& mount, const FieldPath& at) {
    check(mount, at, "mountPath");
    CheckInnerPath(mount, "subPath", at, causes);
    CheckInnerPath(mount, "subPathExpr", at, causes);
    if (!StringAt(mount, {"subPath"}).empty() && !StringAt(mount, {"subPathExpr"}).empty())
      causes.Invalid(at.Child("subPathExpr"), *Find(mount, {"subPathExpr"}),
                     "subPathExpr and subPath are mutually exclusive");
  });
  ForEachItem(container, "volumeDevices", path,
              [&](const Document& device, const FieldPath& at) { check(device, at, "devicePath"); });
}

bool IsStandardResource(std::string_view name) {
  return name == "cpu" || name == "memory" || name == "ephemeral-storage" || name.starts_with("hugepages-");
}
// Whether more of it may be promised than there is. Of devices and huge pages it may not.
bool CanOvercommit(std::string_view name) {
  return name.find('/') == std::string_view::npos && !name.starts_with("hugepages-");
}

absl::StatusOr<kube::Quantity> QuantityOf(const Document& value) {
  return value.is_string() ? kube::Quantity::Parse(Text(value)) : kube::Quantity::Parse(PrintJson(value));
}

void CheckAmounts(const Document& resources, std::string_view which, const FieldPath& path, Causes& causes) {
  const Object* amounts = ObjectAt(resources, {which});
  if (amounts == nullptr) return;
  const FieldPath list = path.Child(which);
  for (const auto& member : *amounts) {
    const std::string_view name = Key(member);
    const FieldPath at = list.Key(name);
    if (const auto wrong = kube::FindQualifiedNameProblem(name); !wrong.empty())
      causes.Invalid(at, Document(name), wrong);
    if (name.find('/') == std::string_view::npos && !IsStandardResource(name))
      causes.Invalid(at, Document(name), "must be a standard resource for containers");
    const auto quantity = QuantityOf(member.value());
    if (!quantity.ok()) continue;
    if (quantity->Sign() < 0) causes.Invalid(at, member.value(), "must be greater than or equal to 0");
    const auto whole = quantity->Units();
    const bool is_whole = whole.ok() && kube::Quantity::FromUnits(*whole) == *quantity;
    if (name.find('/') != std::string_view::npos && !is_whole)
      causes.Invalid(at, member.value(), "must be an integer");
  }
}

void CheckResources(const Document& container, const FieldPath& path, Causes& causes) {
  const Document* resources = Find(container, {"resources"});
  if (resources == nullptr) return;
  const FieldPath at = path.Child("resources");
  CheckAmounts(*resources, "limits", at, causes);
  CheckAmounts(*resources, "requests", at, causes);
  const Object* requests = ObjectAt(*resources, {"requests"});
  if (requests == nullptr) return;
  for (const auto& request : *requests) {
    const std::string_view name = Key(request);
    const Document* limit = Find(*resources, {"limits", name});
    if (limit == nullptr) {
      if (!CanOvercommit(name))
        causes.Required(at.Child("limits"), "Limit must be set for non overcommitable resources");
      continue;
    }
    const auto wanted = QuantityOf(request.value());
    const auto most = QuantityOf(*limit);
    if (!wanted.ok() || !most.ok()) continue;
    if (*wanted != *most && !CanOvercommit(name)) {
      causes.Invalid(at.Child("requests"), request.value(), StrCat("must be equal to ", name, " limit"));
    } else if (*wanted > *most) {
      causes.Invalid(at.Child("requests"), request.value(),
                     StrCat("must be less than or equal to ", name, " limit of ", Text(*limit)));
    }
  }
}

void CheckHandler(const Document& handler, const FieldPath& path, Causes& causes) {
  const std::size_t given = CountGiven(handler, {"exec", "httpGet", "tcpSocket", "grpc"});
  if (given == 0) causes.Required(path, "must specify a handler type");
  if (given > 1) causes.Forbidden(path, "may not specify more than 1 handler type");
  if (const Document* exec = Find(handler, {"exec"})) {
    const Array* command = ArrayAt(*exec, {"command"});
    const FieldPath at = path.Child("exec");
    if (command == nullptr || command->empty()) causes.Required(at.Child("command"));
  }
  for (const std::string_view kind : {"httpGet", "tcpSocket", "grpc"}) {
    const Document* action = Find(handler, {kind});
    if (action != nullptr) CheckPort(*action, "port", path.Child(kind), causes);
  }
}

void CheckProbe(const Document& container, std::string_view which, const FieldPath& path, Causes& causes) {
  const Document* probe = Find(container, {which});
  if (probe == nullptr) return;
  const FieldPath at = path.Child(which);
  CheckHandler(*probe, at, causes);
  for (const std::string_view key :
       {"initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"})
    CheckNotNegative(*probe, key, at, causes);
  const auto successes = IntAt(*probe, {"successThreshold"});
  if (which != "readinessProbe" && successes && *successes != 1)
    causes.Invalid(at.Child("successThreshold"), *successes, "must be 1");
  const auto grace = IntAt(*probe, {"terminationGracePeriodSeconds"});
  if (!grace) return;
  if (which == "readinessProbe") {
    causes.Invalid(at.Child("terminationGracePeriodSeconds"), *grace, "must not be set for readinessProbes");
  } else if (*grace <= 0) {
    causes.Invalid(at.Child("terminationGracePeriodSeconds"), *grace, "must be greater than 0");
  }
}

void CheckWhatItDoes(const Document& container, const FieldPath& path, Causes& causes) {
  for (const std::string_view probe : {"livenessProbe", "readinessProbe", "startupProbe"})
    CheckProbe(container, probe, path, causes);
  const Document* lifecycle = Find(container, {"lifecycle"});
  if (lifecycle == nullptr) return;
  const FieldPath at = path.Child("lifecycle");
  for (const std::string_view moment : {"postStart", "preStop"}) {
    if (const Document* handler = Find(*lifecycle, {moment}))
      CheckHandler(*handler, at.Child(moment), causes);
  }
}

void CheckContainer(const Document& container, const FieldPath& path, PodNames& pod, Causes& causes) {
  if (CheckGiven(container, "name", path, causes)) {
    CheckName(container, "name", path, kube::FindDns1123LabelProblem, causes);
    if (!pod.containers.emplace(StringAt(container, {"name"})).second)
      causes.Duplicate(path.Child("name"), *Find(container, {"name"}));
  }
  const std::string_view image = StringAt(container, {"image"});
  if (image.empty()) {
    causes.Required(path.Child("image"));
  } else if (image.front() == ' ' || image.back() == ' ') {
    causes.Invalid(path.Child("image"), Document(image), "must not have leading or trailing whitespace");
  }
  CheckPorts(container, path, pod, causes);
  CheckEnv(container, path, causes);
  CheckMounts(container, path, pod, causes);
  CheckResources(container, path, causes);
}

}  // namespace

void CheckContainers(const Document& spec, const FieldPath& path, Causes& causes) {
  PodNames pod{.host_network = BoolAt(spec, {"hostNetwork"})};
  ForEachItem(spec, "volumes", path, [&](const Document& volume, const FieldPath&) {
    pod.volumes.emplace(StringAt(volume, {"name"}));
  });
  const Array* containers = ArrayAt(spec, {"containers"});
  if (containers == nullptr || containers->empty()) causes.Required(path.Child("containers"));
  ForEachItem(spec, "containers", path, [&](const Document& container, const FieldPath& at) {
    CheckContainer(container, at, pod, causes);
    CheckWhatItDoes(container, at, causes);
  });
  ForEachItem(spec, "initContainers", path, [&](const Document& container, const FieldPath& at) {
    // They end before the others begin, so that ports of the node cannot clash.
    pod.host_ports.clear();
    CheckContainer(container, at, pod, causes);
    for (const std::string_view key : {"lifecycle", "livenessProbe", "readinessProbe", "startupProbe"}) {
      if (Find(container, {key}) != nullptr)
        causes.Forbidden(at.Child(key), "may not be set for init containers");
    }
  });
  ForEachItem(spec, "ephemeralContainers", path, [&](const Document& container, const FieldPath& at) {
    CheckContainer(container, at, pod, causes);
    for (const std::string_view key :
         {"ports", "lifecycle", "livenessProbe", "readinessProbe", "startupProbe"}) {
      if (Find(container, {key}) != nullptr)
        causes.Forbidden(at.Child(key), "cannot be set for an Ephemeral Container");
    }
  });
}

}  // namespace trainyard::apiserver
