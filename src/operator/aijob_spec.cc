#include "operator/aijob_spec.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "base/letters.h"
#include "base/status.h"
#include "base/text.h"
#include "job/names.h"
#include "job/restart_rules.h"
#include "job/size.h"
#include "kube/names.h"
#include "kube/quantity.h"
#include "operator/spec_reader.h"

namespace trainyard::ops {
namespace {

using job::EndPolicy;
using job::RestartPolicy;
using job::SizePolicy;

// A member knows all others by name, and what it reads of them must fit into one object.
constexpr int kMostMembers = 5'000;
// The operator's own variables begin so.
constexpr std::string_view kOwnPrefix = "TRAININGJOB";

constexpr std::array<std::pair<std::string_view, EndPolicy>, 4> kFailPolicies = {
    {{"Any", EndPolicy::kAny},
     {"All", EndPolicy::kAll},
     {"Rank0", EndPolicy::kRank0},
     {"None", EndPolicy::kNone}}};
constexpr std::array<std::pair<std::string_view, EndPolicy>, 4> kCompletePolicies = {
    {{"All", EndPolicy::kAll},
     {"Any", EndPolicy::kAny},
     {"Rank0", EndPolicy::kRank0},
     {"None", EndPolicy::kNone}}};

class AiJobReader : private SpecReader {
 public:
  explicit AiJobReader(const std::vector<std::string>& accelerators) : accelerators_(accelerators) {}

  AiJobSpec Read(const Document& job) {
    job::JobSpec& out = out_.spec;
    out.kind = "AITrainingJob";
    out.reasons = "TrainingJob";
    out.telling = job::Telling::kByPhase;
    out.names_with_uid = false;
    out.sized = true;
    out.clean = job::CleanPolicy::kAll;
    ReadAsked(job);
    const Document* spec = Find(job, {"spec"});
    name_ = StringAt(job, {"metadata", "name"});
    namespace_ = StringAt(job, {"metadata", "namespace"});
    begun_ = Find(job, {"status", "startTime"}) != nullptr;
    if (const Object* roles = ObjectAt(job, {"status", "replicaStatuses"})) {
      for (const auto& member : *roles) known_.emplace(Key(member));
    }
    if (spec == nullptr || spec->is_null()) {
      Problem("spec", "is missing");
    } else if (!spec->is_object()) {
      Problem("spec", "must be an object");
    } else {
      ReadPolicies(*spec);
      ReadRoles(*spec);
      CheckJobName(name_);
    }
    out_.invalid = problem();
    return std::move(out_);
  }

 private:
  // The keys are bare ones, as the original's, in any letter case.
  void ReadAsked(const Document& job) {
    static constexpr std::pair<std::string_view, job::State> kAnnotations[] = {
        {"preempted", job::State::kPreempted},
        {"failed", job::State::kFailed},
        {"nodefail", job::State::kNodeFail},
        {"nodefailed", job::State::kNodeFail}};
    const Object* annotations = ObjectAt(job, {"metadata", "annotations"});
    if (annotations == nullptr) return;
    for (const auto& [name, state] : kAnnotations) {
      for (const auto& member : *annotations) {
        if (out_.spec.asked || LowerCase(Key(member)) != name) continue;
        out_.spec.asked = job::AskedEnd{.state = state, .message = std::string(Text(member.value()))};
      }
    }
  }

  void ReadPolicies(const Document& spec) {
    job::JobSpec& out = out_.spec;
    using job::CleanPolicy;
    out.clean = OneOf<CleanPolicy, 2>(spec, "spec", "cleanPodPolicy",
                                      {{{"All", CleanPolicy::kAll}, {"None", CleanPolicy::kNone}}});
    out.fail = OneOf(spec, "spec", "failPolicy", kFailPolicies);
    out.complete = OneOf(spec, "spec", "completePolicy", kCompletePolicies);
    if (const auto limit = Number(spec, "spec", "timeLimit", kMostSeconds)) {
      out.time_limit = absl::Seconds(*limit);
    }
    out.fault_tolerant = Flag(spec, "spec", "faultTolerant").value_or(false);
    gang_ = Flag(spec, "spec", "gang").value_or(false);
    const auto codes = job::ExitCodes::Parse(Word(spec, "spec", "restartingExitCode").value_or(""));
    if (codes.ok()) {
      codes_ = *codes;
    } else {
      Problem("spec.restartingExitCode", Message(codes.status()));
    }
    for (const std::string_view key : {"priority", "frameworkType"}) {  // they become labels
      const std::string value = Word(spec, "spec", key).value_or("");
      const std::string_view problem = kube::FindLabelValueProblem(value);
      if (problem.empty()) continue;
      Problem(StrCat("spec.", key),
              StrCat("becomes a label, and '", Shortened(Escaped(value), kShown), "' ", problem));
    }
    (void)Word(spec, "spec", "schedulerName");
  }

  void ReadRoles(const Document& spec) {
    const Object* replicas = Map(spec, "spec", "replicaSpecs");
    if (replicas == nullptr || replicas->empty()) {
      return Problem("spec.replicaSpecs", "is missing: it has one or more groups of pods, by name");
    }
    // A job's spec may come back in another order, and the same job is the same.
    std::map<std::string, const Document*> sorted;
    for (const auto& member : *replicas) sorted.emplace(Key(member), &member.value());
    std::map<std::string, std::string> prefixes;
    for (const auto& [key, replica] : sorted) {
      if (IsStray(key, *replica)) continue;
      const std::string path = StrCat("spec.replicaSpecs.", Shortened(Escaped(key), kShown));
      CheckRoleName(path, key, prefixes);
      ReadRole(path, key, *replica);
    }
    if (!begun_) CheckPods();
    out_.spec.config_in_file = NeedsConfigFile("spec.replicaSpecs", told_);
  }

  // kubectl scale writes a number of trainers also into a job that has no trainers.
  bool IsStray(const std::string& key, const Document& replica) const {
    return begun_ && !known_.contains(key) && replica.is_object() && Find(replica, {"template"}) == nullptr;
  }

  void CheckRoleName(const std::string& path, const std::string& key,
                     std::map<std::string, std::string>& prefixes) {
    const std::string_view problem = kube::FindDns1123LabelProblem(LowerCase(key));
    if (!problem.empty())
      return Problem(path, StrCat("names of pods contain it in lower case, and it ", problem));
    const std::string prefix = VariablePrefix(key);
    if (prefix == kOwnPrefix) {
      return Problem(path,
                     StrCat("its variables would be ", prefix, "_PORTS and the like, which have another ",
                            "meaning; choose another name"));
    }
    const auto [other, is_new] = prefixes.emplace(prefix, key);
    if (is_new) return;
    Problem(path, StrCat("and ", other->second, " are the same as variables: ", prefix,
                         "_INSTANCES and so on; choose another name"));
  }

  void ReadRole(const std::string& path, const std::string& key, const Document& replica) {
    if (!replica.is_object()) return Problem(path, "is empty: it needs a template");
    job::RoleSpec role{.name = key, .slug = LowerCase(key), .main_alone = true};
    role.replicas = static_cast<int>(Number(replica, path, "replicas", kMostReplicas).value_or(1));
    role.restart_limit = Number(replica, path, "restartLimit", kMostSeconds);
    role.restart = job::AiRestartRules(
        OneOf<RestartPolicy, 6>(replica, path, "restartPolicy",
                                {{{"Never", RestartPolicy::kNever},
                                  {"Always", RestartPolicy::kAlways},
                                  {"OnFailure", RestartPolicy::kOnFailure},
                                  {"OnNodeFail", RestartPolicy::kOnNodeFail},
                                  {"ExitCode", RestartPolicy::kExitCode},
                                  {"OnNodeFailWithExitCode", RestartPolicy::kOnNodeFailWithExitCode}}}),
        codes_);
    role.gang = Flag(replica, path, "gang").value_or(gang_);
    if (const auto delay = Number(replica, path, "restartDelaySeconds", kMostSeconds))
      role.restart.first_wait = absl::Seconds(*delay);
    using job::RestartScope;
    role.scope = OneOf<RestartScope, 3>(
        replica, path, "restartScope",
        {{{"All", RestartScope::kJob}, {"Replica", RestartScope::kRole}, {"Pod", RestartScope::kPod}}});
    role.fail = OneOf(replica, path, "failPolicy", kFailPolicies);
    role.complete = OneOf(replica, path, "completePolicy", kCompletePolicies);
    const int longest = ReadSize(path, replica, role);
    most_pods_ += longest;
    AddPods(path, static_cast<std::size_t>(longest), Find(replica, {"template"}));
    role.ports = FindAllAiPorts(replica);
    MeasureLists(role, longest);
    CheckPodNames(name_, job::LongestPodName({.job = name_, .uid = ""}, role.slug, longest),
                  StrCat(role.slug, "-", std::max(longest - 1, 0)));
    CheckTemplate(path + ".template", Find(replica, {"template"}), role);
    out_.spec.roles.push_back(std::move(role));
  }

  // The most pods that it may come to have, as far as that is said.
  int ReadSize(const std::string& path, const Document& replica, job::RoleSpec& role) {
    const auto least = Number(replica, path, "minReplicas", kMostReplicas);
    const auto most = Number(replica, path, "maxReplicas", kMostReplicas);
    if (least && most && *least > *most) {
      Problem(path + ".minReplicas", StrCat("is more than maxReplicas: ", *least, " and ", *most));
    }
    role.size = OneOf<SizePolicy, 4>(replica, path, "edlPolicy",
                                     {{{"", SizePolicy::kPlain},
                                       {"Auto", SizePolicy::kAuto},
                                       {"Manual", SizePolicy::kManual},
                                       {"Never", SizePolicy::kFixed}}});
    if (role.size == SizePolicy::kAuto && !most) {
      Problem(path + ".maxReplicas", "is missing: edlPolicy Auto needs it");
    }
    if (role.size != SizePolicy::kAuto && role.size != SizePolicy::kManual) return role.replicas;
    role.least = static_cast<int>(least.value_or(role.size == SizePolicy::kAuto ? 1 : 0));
    role.most = static_cast<int>(most.value_or(kMostReplicas));
    if (role.least > role.most) Problem(path + ".maxReplicas", "must be at least 1 under edlPolicy Auto");
    return std::max(most ? role.most : role.replicas, role.least);
  }

  void CheckTemplate(const std::string& path, const Document* pod_template, job::RoleSpec& role) {
    const Array* containers = Containers(path, pod_template);
    if (containers == nullptr) return;
    const std::string list = path + ".spec.containers";
    bool found = false;
    for (std::size_t i = 0; i < containers->size(); ++i) {
      const Document& container = (*containers)[i];
      role.accelerated |= AsksForAccelerator(container);
      if (!StringAt(container, {"name"}).starts_with(kAiPrefix)) continue;
      found = true;
      const Array* ports = ArrayAt(container, {"ports"});
      for (std::size_t k = 0; ports != nullptr && k < ports->size(); ++k) {
        if (!StringAt((*ports)[k], {"name"}).starts_with(kAiPrefix)) continue;
        CheckPort(StrCat(list, "[", i, "].ports[", k, "]"), (*ports)[k]);
      }
    }
    if (!found) {
      Problem(list, StrCat("there is no container whose name begins with ", kAiPrefix,
                           ": those do the work, and the job ends as they do"));
    }
  }

  bool AsksForAccelerator(const Document& container) const {
    for (const std::string_view kind : {"limits", "requests"}) {
      const Object* amounts = ObjectAt(container, {"resources", kind});
      if (amounts == nullptr) continue;
      for (const std::string& name : accelerators_) {
        const Document* amount = amounts->if_contains(name);
        if (amount == nullptr) continue;
        const auto quantity =
            kube::Quantity::Parse(amount->is_string() ? std::string(Text(*amount)) : PrintJson(*amount));
        if (quantity.ok() && quantity->Sign() > 0) return true;
      }
    }
    return false;
  }

  // Of a job that has begun, a size that cannot be is not taken; it does not end for it.
  void CheckPods() {
    int pods = 0;
    for (const job::RoleSpec& role : out_.spec.roles) pods += job::FirstSize(role, std::nullopt);
    if (pods == 0) Problem("spec.replicaSpecs", "there is no pod to run: all have 0 replicas");
    if (out_.spec.fault_tolerant && most_pods_ > kMostMembers) {
      Problem("spec.faultTolerant",
              StrCat("members of up to ", kMostMembers, " pods can be told of, not ", most_pods_));
    }
  }

  // Each pod gets the addresses of all pods of each role: instances, and hosts with each of their ports.
  void MeasureLists(const job::RoleSpec& role, int most) {
    const std::size_t instance =
        job::LongestPodName({.job = name_, .uid = ""}, role.slug, most) + 1 + namespace_.size();
    std::size_t hosts = 0;
    for (const int port : role.ports) hosts += instance + 2 + StrCat(port).size();
    const auto pods = static_cast<std::size_t>(most);
    told_.longest = std::max(told_.longest, std::max(instance + 1, hosts) * pods);
    told_.bytes += (instance + 1 + hosts) * pods;
    told_.pods += most;
  }

  const std::vector<std::string>& accelerators_;
  std::string name_;
  std::string namespace_;
  bool begun_ = false;
  bool gang_ = false;            // groups that do not say otherwise start together
  std::set<std::string> known_;  // roles that the job has had
  std::int64_t most_pods_ = 0;
  Told told_;
  job::ExitCodes codes_;
  AiJobSpec out_;
};

void AddPorts(const Document& container, std::vector<int>& ports) {
  const Array* list = ArrayAt(container, {"ports"});
  if (list == nullptr) return;
  for (const Document& port : *list) {
    if (!StringAt(port, {"name"}).starts_with(kAiPrefix)) continue;
    const int number = static_cast<int>(IntAt(port, {"containerPort"}).value_or(0));
    if (std::ranges::find(ports, number) == ports.end()) ports.push_back(number);
  }
}

}  // namespace

AiJobSpec ParseAiJobSpec(const Document& job, const std::vector<std::string>& accelerators) {
  return AiJobReader(accelerators).Read(job);
}

const Document* FindAiReplicaSpec(const Document& spec, std::string_view name) {
  const Object* replicas = ObjectAt(spec, {"replicaSpecs"});
  return replicas == nullptr ? nullptr : replicas->if_contains(name);
}

std::string VariablePrefix(std::string_view role) {
  std::string prefix;
  for (const char c : role) {
    const bool lower = c >= 'a' && c <= 'z';
    const bool legal = lower || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    prefix += lower ? static_cast<char>(c - 'a' + 'A') : legal ? c : '_';
  }
  return !prefix.empty() && prefix[0] >= '0' && prefix[0] <= '9' ? "_" + prefix : prefix;
}

std::vector<int> FindAiPorts(const Document& container) {
  std::vector<int> ports;
  if (StringAt(container, {"name"}).starts_with(kAiPrefix)) AddPorts(container, ports);
  return ports;
}

std::vector<int> FindAllAiPorts(const Document& replica_spec) {
  std::vector<int> ports;
  const Array* containers = ArrayAt(replica_spec, {"template", "spec", "containers"});
  if (containers == nullptr) return ports;
  for (const Document& container : *containers) {
    if (StringAt(container, {"name"}).starts_with(kAiPrefix)) AddPorts(container, ports);
  }
  return ports;
}

}  // namespace trainyard::ops
