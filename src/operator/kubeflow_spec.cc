#include "operator/kubeflow_spec.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/letters.h"
#include "base/text.h"
#include "job/names.h"

namespace trainyard::ops {
namespace {

using job::CleanPolicy;
using job::RestartPolicy;

constexpr std::string_view kAnyUid = "xxxxx";
constexpr std::string_view kRunPolicy = "runPolicy";
// Fields of spec in v1alpha2 that v1 has in spec.runPolicy.
constexpr std::array<std::string_view, 5> kPolicies = {"cleanPodPolicy", "ttlSecondsAfterFinished",
                                                       "activeDeadlineSeconds", "backoffLimit", "suspend"};

bool SameWord(std::string_view a, std::string_view b) { return LowerCase(a) == LowerCase(b); }

bool IsType(std::string_view key, const ReplicaType& type) {
  return SameWord(key, type.name) || (!type.alias.empty() && SameWord(key, type.alias));
}

bool Has(const Document& spec, std::string_view key) {
  const Document* value = Find(spec, {key});
  return value != nullptr && !value->is_null();
}

}  // namespace

ParsedSpec KubeflowReader::Read(const Document* spec) {
  out_.kind = dialect_.kind;
  out_.version = dialect_.version;
  out_.names_with_uid = !dialect_.IsV1();
  if (spec == nullptr || spec->is_null()) {
    Problem("spec", "is missing");
  } else if (!spec->is_object()) {
    Problem("spec", "must be an object");
  } else {
    ReadPolicies(*spec);
    ReadRoles(*spec);
    CheckJobName(job_.name);
  }
  return {.spec = std::move(out_), .invalid = problem()};
}

void KubeflowReader::ReadPolicies(const Document& spec) {
  static const Document none = Object();
  const Document* policies = &spec;
  std::string path = "spec";
  // An object can carry fields of the other version, which would be ignored without a word.
  if (dialect_.IsV1()) {
    for (const std::string_view key : kPolicies) {
      if (Has(spec, key)) Problem(StrCat("spec.", key), "the job follows v1, which has it in spec.runPolicy");
    }
    policies = Map(spec, "spec", kRunPolicy) == nullptr ? &none : Find(spec, {kRunPolicy});
    path = "spec.runPolicy";
    out_.clean = OneOf<CleanPolicy, 3>(
        *policies, path, "cleanPodPolicy",
        {{{"None", CleanPolicy::kNone}, {"Running", CleanPolicy::kRunning}, {"All", CleanPolicy::kAll}}});
    ReadScheduling(*policies, path);
  } else {
    if (Has(spec, kRunPolicy)) Problem("spec.runPolicy", "the job follows v1alpha2, which has no runPolicy");
    out_.clean = OneOf<CleanPolicy, 3>(
        *policies, path, "cleanPodPolicy",
        {{{"Running", CleanPolicy::kRunning}, {"All", CleanPolicy::kAll}, {"None", CleanPolicy::kNone}}});
  }
  if (const auto ttl = Number(*policies, path, "ttlSecondsAfterFinished", kMostSeconds)) {
    out_.ttl = absl::Seconds(*ttl);
  }
  if (const auto deadline = Number(*policies, path, "activeDeadlineSeconds", kMostSeconds)) {
    out_.deadline = absl::Seconds(*deadline);
  }
  out_.restart_limit = Number(*policies, path, "backoffLimit", kMostSeconds);
  out_.suspend = Flag(*policies, path, "suspend").value_or(false);
}

void KubeflowReader::ReadScheduling(const Document& policies, const std::string& path) {
  const std::string manager = Word(policies, path, "managedBy").value_or("");
  if (!manager.empty() && manager != "kubeflow.org/training-operator") {
    Problem(path + ".managedBy", StrCat("must be kubeflow.org/training-operator, not ", Escaped(manager),
                                        ": no other controller manages this cluster's jobs"));
  }
  if (Map(policies, path, "schedulingPolicy") == nullptr) return;
  const auto least = Number(*Find(policies, {"schedulingPolicy"}), path + ".schedulingPolicy", "minAvailable",
                            kMostReplicas, 1);
  if (least) out_.gang_min_available = static_cast<int>(*least);
}

std::string KubeflowReader::ListTypes() const {
  std::string list;
  for (std::size_t i = 0; i < dialect_.types.size(); ++i) {
    StrAppend(list, i == 0 ? "" : i + 1 == dialect_.types.size() ? " and " : ", ", dialect_.types[i].name);
  }
  return list;
}

void KubeflowReader::ReadRoles(const Document& spec) {
  const std::string list = StrCat("spec.", dialect_.replicas);
  const Object* replicas = ObjectAt(spec, {dialect_.replicas});
  if (replicas == nullptr || replicas->empty()) {
    return Problem(list, StrCat("is missing: it has one or more of ", ListTypes()));
  }
  for (const auto& member : *replicas) {
    const std::string_view key = Key(member);
    if (std::ranges::none_of(dialect_.types, [&](const ReplicaType& type) { return IsType(key, type); })) {
      Problem(StrCat(list, ".", Shortened(Escaped(key), kShown)),
              StrCat("is unknown: there are ", ListTypes()));
    }
  }
  for (const ReplicaType& type : dialect_.types) {
    std::string_view found;
    for (const auto& member : *replicas) {
      if (!IsType(Key(member), type)) continue;
      const std::string path = StrCat(list, ".", Key(member));
      if (!found.empty()) {
        Problem(path, StrCat("is the same as ", found, ", and there can be only one"));
        continue;
      }
      found = Key(member);
      ReadRole(type, path, member.value());
    }
  }
  ReadRest(spec);
}

void KubeflowReader::ReadRole(const ReplicaType& type, const std::string& path, const Document& replica) {
  if (!replica.is_object()) return Problem(path, "is empty: it needs a template");
  job::RoleSpec role{.name = std::string(type.name), .slug = std::string(type.slug)};
  role.replicas = static_cast<int>(Number(replica, path, "replicas", kMostReplicas).value_or(1));
  std::array<std::pair<std::string_view, RestartPolicy>, 4> policies = {
      {{"Always", RestartPolicy::kAlways},
       {"OnFailure", RestartPolicy::kOnFailure},
       {"Never", RestartPolicy::kNever},
       {"ExitCode", RestartPolicy::kExitCode}}};
  const auto standard =
      std::ranges::find(policies, dialect_.restart, [](const auto& row) { return row.second; });
  std::rotate(policies.begin(), standard, standard + 1);  // the first one stands for nothing at all
  role.restart = job::TfRestartRules(OneOf(replica, path, "restartPolicy", policies));
  if (type.single && role.replicas > 1) {
    Problem(path + ".replicas", StrCat("there can be only one ", role.slug, ", not ", role.replicas));
  }
  CheckTemplate(path + ".template", Find(replica, {"template"}));
  AddPods(path, static_cast<std::size_t>(role.replicas), Find(replica, {"template"}));
  role.ports = {FindPort(dialect_, replica)};
  CheckNames(role, role.replicas);
  out_.roles.push_back(std::move(role));
}

void KubeflowReader::CheckTemplate(const std::string& path, const Document* pod_template) {
  const Array* containers = Containers(path, pod_template);
  if (containers == nullptr) return;
  const std::string list = path + ".spec.containers";
  int found = 0;
  for (std::size_t i = 0; i < containers->size(); ++i) {
    if (StringAt((*containers)[i], {"name"}) != dialect_.container) continue;
    const std::string place = StrCat(list, "[", i, "]");
    if (++found == 2) {
      Problem(place + ".name", StrCat("there can be only one container named ", dialect_.container));
    }
    if (const Array* ports = ArrayAt((*containers)[i], {"ports"})) CheckPorts(place + ".ports", *ports);
  }
  if (found == 0) {
    Problem(list, StrCat("there is no container named ", dialect_.container, ", which does the work"));
  }
}

void KubeflowReader::CheckPorts(const std::string& path, const Array& ports) {
  int found = 0;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (StringAt(ports[i], {"name"}) != dialect_.port_name) continue;
    const std::string place = StrCat(path, "[", i, "]");
    if (++found == 2) {
      Problem(place + ".name", StrCat("there can be only one port named ", dialect_.port_name));
    }
    CheckPort(place, ports[i]);
  }
}

job::RoleSpec* KubeflowReader::FindRole(std::string_view slug) {
  const auto found = std::ranges::find(out_.roles, slug, &job::RoleSpec::slug);
  return found == out_.roles.end() || found->replicas == 0 ? nullptr : &*found;
}

std::string KubeflowReader::PathOf(std::string_view role) const {
  return StrCat("spec.", dialect_.replicas, ".", role);
}

job::NameRule KubeflowReader::Naming() const {
  return {.job = job_.name, .uid = out_.names_with_uid ? kAnyUid : std::string_view()};
}

void KubeflowReader::CheckNames(const job::RoleSpec& role, int replicas) {
  const std::string example = job::PodName(Naming(), role.slug, std::max(replicas - 1, 0));
  CheckPodNames(job_.name, job::LongestPodName(Naming(), role.slug, replicas),
                std::string_view(example).substr(job_.name.size() + 1));
}

const Document* FindReplicaSpec(const Dialect& dialect, const Document& spec, std::string_view slug) {
  const auto known = std::ranges::find(dialect.types, slug, &ReplicaType::slug);
  const Object* replicas = ObjectAt(spec, {dialect.replicas});
  if (known == dialect.types.end() || replicas == nullptr) return nullptr;
  for (const auto& member : *replicas) {
    if (IsType(Key(member), *known)) return &member.value();
  }
  return nullptr;
}

std::int32_t FindPort(const Dialect& dialect, const Document& replica_spec) {
  const Array* containers = ArrayAt(replica_spec, {"template", "spec", "containers"});
  if (containers == nullptr) return dialect.port;
  for (const Document& container : *containers) {
    if (StringAt(container, {"name"}) != dialect.container) continue;
    const Array* ports = ArrayAt(container, {"ports"});
    if (ports == nullptr) return dialect.port;
    for (const Document& port : *ports) {
      if (StringAt(port, {"name"}) != dialect.port_name) continue;
      return static_cast<std::int32_t>(IntAt(port, {"containerPort"}).value_or(dialect.port));
    }
  }
  return dialect.port;
}

}  // namespace trainyard::ops
