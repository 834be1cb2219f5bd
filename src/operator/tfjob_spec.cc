#include "operator/tfjob_spec.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "job/names.h"
#include "operator/spec_reader.h"

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
constexpr std::string_view kRoleList = "PS, Worker, Chief and Eval";

bool SameWord(std::string_view a, std::string_view b) { return std::ranges::equal(a, b, {}, Lower, Lower); }

bool IsRole(std::string_view key, const RoleName& role) {
  return SameWord(key, role.name) || (!role.alias.empty() && SameWord(key, role.alias));
}

class TfJobReader : private SpecReader {
 public:
  TfJobSpec Read(const kube::ObjectKey& job, const Document* spec) {
    out_.spec.kind = "TFJob";
    if (spec == nullptr || spec->is_null()) {
      Problem("spec", "is missing");
    } else if (!spec->is_object()) {
      Problem("spec", "must be an object");
    } else {
      ReadPolicies(*spec);
      ReadRoles(job.name, *spec);
      CheckJobName(job.name);
      MeasureTfConfig(job);
    }
    out_.invalid = problem();
    return std::move(out_);
  }

 private:
  void ReadPolicies(const Document& spec) {
    using job::CleanPolicy;
    out_.spec.clean = OneOf<CleanPolicy, 3>(
        spec, "spec", "cleanPodPolicy",
        {{{"Running", CleanPolicy::kRunning}, {"All", CleanPolicy::kAll}, {"None", CleanPolicy::kNone}}});
    if (const auto ttl = Number(spec, "spec", "ttlSecondsAfterFinished", kMostSeconds)) {
      out_.spec.ttl = absl::Seconds(*ttl);
    }
    if (const auto deadline = Number(spec, "spec", "activeDeadlineSeconds", kMostSeconds)) {
      out_.spec.deadline = absl::Seconds(*deadline);
    }
    out_.spec.restart_limit = Number(spec, "spec", "backoffLimit", kMostSeconds);
    all_workers_ = OneOf<bool, 2>(spec, "spec", "successPolicy", {{{"", false}, {"AllWorkers", true}}});
    out_.spec.suspend = Flag(spec, "spec", "suspend").value_or(false);
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
    role.replicas = static_cast<int>(Number(replica, path, "replicas", kMostReplicas).value_or(1));
    using job::RestartPolicy;
    role.restart = job::TfRestartRules(OneOf<RestartPolicy, 4>(replica, path, "restartPolicy",
                                                               {{{"Always", RestartPolicy::kAlways},
                                                                 {"OnFailure", RestartPolicy::kOnFailure},
                                                                 {"Never", RestartPolicy::kNever},
                                                                 {"ExitCode", RestartPolicy::kExitCode}}}));
    if (role.slug == "chief" && role.replicas > 1) {
      Problem(path + ".replicas", StrCat("there can be only one chief, not ", role.replicas));
    }
    CheckTemplate(path + ".template", Find(replica, {"template"}));
    AddPods(path, static_cast<std::size_t>(role.replicas), Find(replica, {"template"}));
    role.ports = {FindTfPort(replica)};
    constexpr std::string_view kAnyUid = "xxxxx";
    const job::NameRule naming{.job = job, .uid = kAnyUid};
    CheckPodNames(job, job::LongestPodName(naming, role.slug, role.replicas),
                  StrCat(role.slug, "-", std::max(role.replicas - 1, 0), "-", kAnyUid));
    out_.spec.roles.push_back(std::move(role));
  }

  void CheckTemplate(const std::string& path, const Document* pod_template) {
    const Array* containers = Containers(path, pod_template);
    if (containers == nullptr) return;
    const std::string list = path + ".spec.containers";
    int found = 0;
    for (std::size_t i = 0; i < containers->size(); ++i) {
      if (StringAt((*containers)[i], {"name"}) != kTensorflow) continue;
      const std::string place = StrCat(list, "[", i, "]");
      if (++found == 2)
        Problem(place + ".name", StrCat("there can be only one container named ", kTensorflow));
      if (const Array* ports = ArrayAt((*containers)[i], {"ports"})) CheckPorts(place + ".ports", *ports);
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
      CheckPort(place, ports[i]);
    }
  }

  // Each pod gets the addresses of all others in TF_CONFIG.
  void MeasureTfConfig(const kube::ObjectKey& job) {
    constexpr std::string_view kAround = R"("..svc:65535",)";
    Told told;
    for (const job::RoleSpec& role : out_.spec.roles) {
      if (role.slug == "eval") continue;
      const std::size_t name =
          job::LongestPodName({.job = job.name, .uid = "xxxxx"}, role.slug, role.replicas);
      told.bytes += static_cast<std::size_t>(role.replicas) * (name + job.ns.size() + kAround.size());
      told.pods += role.replicas;
    }
    told.longest = told.bytes;
    out_.spec.config_in_file = NeedsConfigFile("spec.tfReplicaSpecs", told);
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
              "the job needs a Chief or a Worker with at least 1 replica, which decides when it has ended");
    }
  }

  TfJobSpec out_;
  bool all_workers_ = false;
};

}  // namespace

TfJobSpec ParseTfJobSpec(const kube::ObjectKey& job, const Document* spec) {
  return TfJobReader().Read(job, spec);
}

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
