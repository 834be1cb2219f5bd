#include "launch/manifests.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/text.h"

namespace trainyard::launch {
namespace {

constexpr std::string_view kVolume = "trainyard-agent";
constexpr std::string_view kFolder = "/trainyard-agent";  // where containers see it
constexpr std::string_view kAgentFile = "/trainyard-agent/agent";

Object Metadata(std::string_view ns, std::string_view name, std::string_view task) {
  return {{"name", name},
          {"namespace", ns},
          {"labels", Object{{kTaskLabel, task}, {"app.kubernetes.io/managed-by", "trainyard"}}}};
}

Object ResourcesOf(const TaskSpec& spec) {
  Object requests;
  if (!spec.cpu.empty()) requests["cpu"] = spec.cpu;
  if (!spec.memory.empty()) requests["memory"] = spec.memory;
  if (!spec.gpu.empty()) requests["nvidia.com/gpu"] = spec.gpu;
  Object limits = requests;
  limits.erase("cpu");  // what is free may be used
  return {{"requests", std::move(requests)}, {"limits", std::move(limits)}};
}

std::int64_t GraceSeconds(const TaskSpec& spec) {
  return std::max<std::int64_t>(absl::ToInt64Seconds(spec.grace), 1);
}

Array CommandOf(const TaskSpec& spec, const AgentSource& agent) {
  Array command;
  if (agent.image.empty()) {
    command = {"trainyard", "agent"};
  } else {
    command = {kAgentFile};
  }
  for (const std::string& word : {StrCat("--listen=0.0.0.0:", kAgentPort), StrCat("--script=", spec.script),
                                  StrCat("--term-grace=", GraceSeconds(spec) + 1, "s")})
    command.emplace_back(word);
  return command;
}

Object InitContainer(const AgentSource& agent) {
  Object container{{"name", "agent"},
                   {"image", agent.image},
                   {"command", Array{"trainyard", "agent", "install", "--to", kAgentFile}},
                   {"volumeMounts", Array{Object{{"name", kVolume}, {"mountPath", kFolder}}}}};
  if (!agent.pull_policy.empty()) container["imagePullPolicy"] = agent.pull_policy;
  return container;
}

Object PodSpec(const TaskSpec& spec, Role role, const AgentSource& agent) {
  Object container{
      {"name", ContainerName(role)},
      {"image", spec.image.empty() ? "none" : spec.image},
      {"command", CommandOf(spec, agent)},
      {"env", Array{Object{{"name", "TRAINYARD_AGENT_TOKEN"},
                           {"valueFrom", Object{{"secretKeyRef", Object{{"name", TokenName(spec.name)},
                                                                        {"key", kTokenKey}}}}}}}},
      {"ports", Array{Object{{"name", StrCat("aitj-", kAgentPort)}, {"containerPort", kAgentPort}}}},
      {"resources", ResourcesOf(spec)}};
  if (!spec.working_dir.empty()) container["workingDir"] = spec.working_dir;
  Object pod{{"terminationGracePeriodSeconds", GraceSeconds(spec) + 2}};
  if (!agent.image.empty()) {
    container["volumeMounts"] = Array{Object{{"name", kVolume}, {"mountPath", kFolder}, {"readOnly", true}}};
    pod["initContainers"] = Array{InitContainer(agent)};
    pod["volumes"] = Array{Object{{"name", kVolume}, {"emptyDir", Object()}}};
  }
  pod["containers"] = Array{std::move(container)};
  return pod;
}

// Whatever ends a pod before its task is over, the operator replaces it, and the launcher counts. An agent
// exits 0 only when the task has succeeded.
Object GroupOf(const TaskSpec& spec, Role role, int replicas, const AgentSource& agent) {
  return {{"replicas", replicas},
          {"restartPolicy", "Always"},
          {"restartScope", "Pod"},
          {"completePolicy", Decides(spec, role) ? "All" : "None"},
          {"template", Object{{"spec", PodSpec(spec, role, agent)}}}};
}

}  // namespace

const kube::Resource& AITrainingJobs() {
  static const auto* const resource = new kube::Resource{.group = "elasticdeeplearning.ai",
                                                         .version = "v1",
                                                         .plural = "aitrainingjobs",
                                                         .kind = "AITrainingJob"};
  return *resource;
}

std::string TokenName(std::string_view task) { return StrCat(task, "-task-token"); }
std::string PodName(std::string_view task, const MemberId& member) {
  return StrCat(task, "-", Print(member));
}
std::string ContainerName(Role role) { return StrCat("aitj-", Name(role)); }

Document TaskJob(std::string_view ns, const TaskSpec& spec, const AgentSource& agent) {
  std::map<Role, int> sizes;
  for (const MemberId& member : MembersOf(spec)) ++sizes[member.role];
  Object groups;
  for (const auto& [role, size] : sizes) groups[Name(role)] = GroupOf(spec, role, size, agent);
  Object metadata = Metadata(ns, spec.name, spec.name);
  metadata["annotations"] = Object{{kSpecAnnotation, Print(spec)}};
  Object job{{"cleanPodPolicy", "None"},  // pods stay with their logs
             {"frameworkType", "trainyard-launch"},
             {"replicaSpecs", std::move(groups)}};
  // Workers of an elastic task come and go; those of any other AllReduce need each other.
  if (spec.IsElastic()) job["faultTolerant"] = true;
  if (spec.strategy == Strategy::kAllReduce && !spec.IsElastic()) job["gang"] = true;
  return Object{{"apiVersion", AITrainingJobs().ApiVersion()},
                {"kind", AITrainingJobs().kind},
                {"metadata", std::move(metadata)},
                {"spec", std::move(job)}};
}

Document TaskSecret(std::string_view ns, const TaskSpec& spec, std::string_view token) {
  return Object{{"apiVersion", "v1"},
                {"kind", "Secret"},
                {"metadata", Metadata(ns, TokenName(spec.name), spec.name)},
                {"stringData", Object{{kTokenKey, token}}}};
}

Document OwnerPatch(std::string_view job, std::string_view uid) {
  return Object{
      {"metadata", Object{{"ownerReferences", Array{Object{{"apiVersion", AITrainingJobs().ApiVersion()},
                                                           {"kind", AITrainingJobs().kind},
                                                           {"name", job},
                                                           {"uid", uid},
                                                           {"controller", true}}}}}}};
}

}  // namespace trainyard::launch
