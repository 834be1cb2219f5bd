#include "operator/tfjob_spec.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "base/text.h"
#include "job/names.h"
#include "kube/names.h"

namespace trainyard::ops {
namespace {

struct RoleName {
  std::string_view name;
  std::string_view slug;
  std::string_view alias;
};
// In the order in which a job's status and messages show them.
constexpr std::array<RoleName, 4> kRoles = {{{"Chief", "chief", "Master"},
                                             {"Worker", "worker", ""},
                                             {"PS", "ps", ""},
                                             {"Eval", "eval", "Evaluator"}}};
constexpr std::int64_t kMostPort = 65535;
constexpr std::string_view kRoleList = "PS, Worker, Chief and Eval";

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool SameWord(std::string_view a, std::string_view b) { return std::ranges::equal(a, b, {}, Lower, Lower); }

bool IsRole(std::string_view key, const RoleName& role) {
  return SameWord(key, role.name) || (!role.alias.empty() && SameWord(key, role.alias));
}

// Of a value that is wrong, enough to know it again.
constexpr std::size_t kShown = 100;
std::string Shown(const Document& value) { return Shortened(PrintJson(value), kShown); }

// Reads one spec and keeps the first thing that is wrong.
class Reader {
 public:
  TfJobSpec Read(std::string_view name, const Document* spec) {
    out_.spec.kind = "TFJob";
    if (spec == nullptr || spec->is_null()) {
      Problem("spec", "is missing");
    } else if (!spec->is_object()) {
      Problem("spec", "must be an object");
    } else {
      ReadPolicies(*spec);
      ReadRoles(name, *spec);
      CheckName(name);
    }
    return std::move(out_);
  }

 private:
  void Problem(std::string_view path, std::string_view what) {
    if (out_.invalid.empty()) out_.invalid = StrCat(path, ": ", what);
  }

  // Nothing: it is not there, or is no whole number in the range, which is told.
  std::optional<std::int64_t> Number(const Document& in, std::string_view path, std::string_view key,
                                     std::int64_t most) {
    const Document* value = Find(in, {key});
    if (value == nullptr || value->is_null()) return std::nullopt;
    const auto number = IntAt(in, {key});
    if (number && *number >= 0 && *number <= most) return number;
    Problem(StrCat(path, ".", key),
            StrCat("must be a whole number from 0 to ", most, ", not ", Shown(*value)));
    return std::nullopt;
  }

  template <typename T, std::size_t N>
  T OneOf(const Document& in, std::string_view path, std::string_view key,
          const std::array<std::pair<std::string_view, T>, N>& names) {
    const Document* value = Find(in, {key});
    if (value == nullptr || value->is_null()) return names[0].second;
    std::string list;
    for (const auto& [name, meaning] : names) {
      if (value->is_string() && Text(*value) == name) return meaning;
      StrAppend(list, list.empty() ? "" : ", ", name.empty() ? "\"\"" : name);
    }
    Problem(StrCat(path, ".", key), StrCat("must be one of ", list, ", not ", Shown(*value)));
    return names[0].second;
  }

  // Nothing: it is not there, or is none, which is told.
  const Object* Map(const Document& in, std::string_view path, std::string_view key) {
    const Document* value = Find(in, {key});
    if (value == nullptr || value->is_null()) return nullptr;
    if (!value->is_object())
      Problem(StrCat(path, ".", key), StrCat("must be an object, not ", Shown(*value)));
    return value->if_object();
  }
  const Array* List(const Document& in, std::string_view path, std::string_view key) {
    const Document* value = Find(in, {key});
    if (value == nullptr || value->is_null()) return nullptr;
    if (!value->is_array()) Problem(StrCat(path, ".", key), StrCat("must be a list, not ", Shown(*value)));
    return value->if_array();
  }

  void ReadPolicies(const Document& spec) {
    using job::CleanPolicy;
    out_.spec.clean = OneOf<CleanPolicy, 3>(
        spec, "spec", "cleanPodPolicy",
        {{{"Running", CleanPolicy::kRunning}, {"All", CleanPolicy::kAll}, {"None", CleanPolicy::kNone}}});
    constexpr std::int64_t kMostSeconds = std::numeric_limits<std::int32_t>::max();
    if (const auto ttl = Number(spec, "spec", "ttlSecondsAfterFinished", kMostSeconds)) {
      out_.spec.ttl = absl::Seconds(*ttl);
    }
    if (const auto deadline = Number(spec, "spec", "activeDeadlineSeconds", kMostSeconds)) {
      out_.spec.deadline = absl::Seconds(*deadline);
    }
    out_.spec.restart_limit = Number(spec, "spec", "backoffLimit", kMostSeconds);
    all_workers_ = OneOf<bool, 2>(spec, "spec", "successPolicy", {{{"", false}, {"AllWorkers", true}}});
    if (const Document* suspend = Find(spec, {"suspend"}); suspend != nullptr && !suspend->is_null()) {
      if (suspend->is_bool()) {
        out_.spec.suspend = suspend->get_bool();
      } else {
        Problem("spec.suspend", "must be true or false");
      }
    }
  }

  void ReadRoles(std::string_view name, const Document& spec) {
    const Object* replicas = ObjectAt(spec, {"tfReplicaSpecs"});
    if (replicas == nullptr || replicas->empty()) {
      return Problem("spec.tfReplicaSpecs", StrCat("is missing: it has one or more of ", kRoleList));
    }
    for (const auto& member : *replicas) {
      const std::string_view key = Key(member);
      if (std::ranges::none_of(kRoles, [&](const RoleName& role) { return IsRole(key, role); })) {
        Problem(StrCat("spec.tfReplicaSpecs.", Shortened(Escaped(key), kShown)),
                StrCat("is unknown: there are ", kRoleList));
      }
    }
    for (const RoleName& role : kRoles) {
      std::string_view found;
      for (const auto& member : *replicas) {
        if (!IsRole(Key(member), role)) continue;
        const std::string path = StrCat("spec.tfReplicaSpecs.", Key(member));
        if (!found.empty()) {
          Problem(path, StrCat("is the same as ", found, ", and there can be only one"));
          continue;
        }
        found = Key(member);
        ReadRole(name, role, path, member.value());
      }
    }
    DecideEnd();
  }

  void ReadRole(std::string_view job, const RoleName& name, const std::string& path,
                const Document& replica) {
    if (!replica.is_object()) return Problem(path, "is empty: it needs a template");
    job::RoleSpec role{.name = std::string(name.name), .slug = std::string(name.slug)};
    constexpr std::int64_t kMostReplicas = 100'000;
    role.replicas = static_cast<int>(Number(replica, path, "replicas", kMostReplicas).value_or(1));
    using job::RestartPolicy;
    role.restart = OneOf<RestartPolicy, 4>(replica, path, "restartPolicy",
                                           {{{"Always", RestartPolicy::kAlways},
                                             {"OnFailure", RestartPolicy::kOnFailure},
                                             {"Never", RestartPolicy::kNever},
                                             {"ExitCode", RestartPolicy::kExitCode}}});
    if (role.slug == "chief" && role.replicas > 1) {
      Problem(path + ".replicas", StrCat("there can be only one chief, not ", role.replicas));
    }
    CheckTemplate(path + ".template", Find(replica, {"template"}));
    const std::size_t longest = job::LongestPodName(job, role.slug, role.replicas);
    if (longest > kube::kMaxDnsLabel) {
      Problem("metadata.name", StrCat("is too long by ", longest - kube::kMaxDnsLabel, ": names of pods as ",
                                      job, "-", role.slug, "-", std::max(role.replicas - 1, 0),
                                      "-xxxxx can have ", kube::kMaxDnsLabel, " characters"));
    }
    out_.spec.roles.push_back(std::move(role));
  }

  // What the operator itself looks at or adds to; the rest is for the API server to judge.
  void CheckTemplate(const std::string& path, const Document* pod_template) {
    if (pod_template == nullptr || !pod_template->is_object()) return Problem(path, "is missing");
    if (Map(*pod_template, path, "metadata") != nullptr) {
      for (const std::string_view key : {"labels", "annotations"}) {
        const Object* texts = Map(*Find(*pod_template, {"metadata"}), path + ".metadata", key);
        if (texts == nullptr) continue;
        for (const auto& text : *texts) {
          if (text.value().is_string()) continue;
          Problem(StrCat(path, ".metadata.", key, ".", Shortened(Key(text), kShown)),
                  StrCat("must be a text, not ", Shown(text.value())));
        }
      }
    }
    const Array* containers = ArrayAt(*pod_template, {"spec", "containers"});
    const std::string list = path + ".spec.containers";
    if (containers == nullptr || containers->empty()) return Problem(list, "there is no container");
    int found = 0;
    for (std::size_t i = 0; i < containers->size(); ++i) {
      const std::string place = StrCat(list, "[", i, "]");
      const Document& container = (*containers)[i];
      if (StringAt(container, {"image"}).empty()) Problem(place + ".image", "is missing");
      (void)List(container, place, "env");
      const Array* ports = List(container, place, "ports");
      if (StringAt(container, {"name"}) != kTensorflow) continue;
      if (++found == 2)
        Problem(place + ".name", StrCat("there can be only one container named ", kTensorflow));
      if (ports != nullptr) CheckPorts(place + ".ports", *ports);
    }
    if (found == 0) {
      Problem(list, StrCat("there is no container named ", kTensorflow, ", which does the work"));
    }
  }

  void CheckPorts(const std::string& path, const Array& ports) {
    int found = 0;
    for (std::size_t i = 0; i < ports.size(); ++i) {
      if (StringAt(ports[i], {"name"}) != kTfPortName) continue;
      const std::string place = StrCat(path, "[", i, "]");
      if (++found == 2) Problem(place + ".name", StrCat("there can be only one port named ", kTfPortName));
      const auto port = IntAt(ports[i], {"containerPort"});
      if (port && *port >= 1 && *port <= kMostPort) continue;
      Problem(place + ".containerPort", StrCat("must be a whole number from 1 to ", kMostPort));
    }
  }

  void CheckName(std::string_view name) {
    // A service's name begins with it.
    const std::string_view problem = kube::FindDns1035LabelProblem(name);
    if (!problem.empty()) Problem("metadata.name", StrCat("'", Escaped(name), "' ", problem));
  }

  // The chief decides, or worker 0 where there is none.
  void DecideEnd() {
    using job::EndPolicy;
    bool chief = false;
    bool decided = false;
    for (job::RoleSpec& role : out_.spec.roles) {  // the chief comes before the workers
      if (role.replicas == 0) continue;
      if (role.slug == "chief") {
        role.complete = EndPolicy::kAll;
        chief = decided = true;
      } else if (role.slug == "worker" && (all_workers_ || !chief)) {
        role.complete = all_workers_ ? EndPolicy::kAll : EndPolicy::kRank0;
        decided = true;
      }
    }
    if (!decided) {
      Problem("spec.tfReplicaSpecs",
              "nobody can end the job: it needs a Chief or a Worker with at least 1 replica");
    }
  }

  TfJobSpec out_;
  bool all_workers_ = false;
};

}  // namespace

TfJobSpec ParseTfJobSpec(std::string_view name, const Document* spec) { return Reader().Read(name, spec); }

const Document* FindReplicaSpec(const Document& spec, std::string_view role) {
  const auto known = std::ranges::find(kRoles, role, &RoleName::slug);
  const Object* replicas = ObjectAt(spec, {"tfReplicaSpecs"});
  if (known == kRoles.end() || replicas == nullptr) return nullptr;
  for (const auto& member : *replicas) {
    if (IsRole(Key(member), *known)) return &member.value();
  }
  return nullptr;
}

std::int32_t FindTfPort(const Document& replica_spec) {
  const Array* containers = ArrayAt(replica_spec, {"template", "spec", "containers"});
  if (containers == nullptr) return kTfPort;
  for (const Document& container : *containers) {
    if (StringAt(container, {"name"}) != kTensorflow) continue;
    const Array* ports = ArrayAt(container, {"ports"});
    if (ports == nullptr) return kTfPort;
    for (const Document& port : *ports) {
      if (StringAt(port, {"name"}) != kTfPortName) continue;
      return static_cast<std::int32_t>(IntAt(port, {"containerPort"}).value_or(kTfPort));
    }
  }
  return kTfPort;
}

}  // namespace trainyard::ops
