#include "launch/manifests.h"

#include <algorithm>
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

Object Owned(const TaskOwner& owner, std::string_view name, const TaskSpec& spec) {
  Object metadata = Metadata(owner.ns, name, spec.name);
  metadata["ownerReferences"] = Array{Object{{"apiVersion", "v1"},
                                             {"kind", "ConfigMap"},
                                             {"name", ConfigName(spec.name)},
                                             {"uid", owner.uid},
                                             {"controller", true}}};
  return metadata;
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

Array CommandOf(const TaskSpec& spec, const AgentSource& agent) {
  Array command;
  if (agent.image.empty()) {
    command = {"trainyard", "agent"};
  } else {
    command = {kAgentFile};
  }
  const std::int64_t grace = std::max<std::int64_t>(absl::ToInt64Seconds(spec.grace), 1);
  for (const std::string& word : {StrCat("--listen=0.0.0.0:", kAgentPort), StrCat("--script=", spec.script),
                                  StrCat("--term-grace=", grace + 1, "s")})
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

}  // namespace

std::string ConfigName(std::string_view task) { return StrCat(task, "-task"); }
std::string TokenName(std::string_view task) { return StrCat(task, "-task-token"); }

std::string PodName(std::string_view task, const MemberId& member, int launch) {
  const std::string first = StrCat(task, "-", Print(member));
  return launch == 0 ? first : StrCat(first, "-r", launch);
}

Document TaskConfig(std::string_view ns, const TaskSpec& spec, const TaskStatus& status) {
  return Object{{"apiVersion", "v1"},
                {"kind", "ConfigMap"},
                {"metadata", Metadata(ns, ConfigName(spec.name), spec.name)},
                {"data", Object{{kSpecKey, Print(spec)}, {kStatusKey, Print(status)}}}};
}

Document TaskSecret(const TaskOwner& owner, const TaskSpec& spec, std::string_view token) {
  return Object{{"apiVersion", "v1"},
                {"kind", "Secret"},
                {"metadata", Owned(owner, TokenName(spec.name), spec)},
                {"stringData", Object{{kTokenKey, token}}}};
}

Document TaskService(const TaskOwner& owner, const TaskSpec& spec) {
  return Object{{"apiVersion", "v1"},
                {"kind", "Service"},
                {"metadata", Owned(owner, spec.name, spec)},
                {"spec", Object{{"clusterIP", "None"},
                                {"publishNotReadyAddresses", true},
                                {"selector", Object{{kTaskLabel, spec.name}}},
                                {"ports", Array{Object{{"name", "agent"}, {"port", kAgentPort}}}}}}};
}

Document MemberPod(const TaskOwner& owner, const TaskSpec& spec, const MemberId& member, int launch,
                   const AgentSource& agent) {
  Object metadata = Owned(owner, PodName(spec.name, member, launch), spec);
  Object& labels = metadata["labels"].get_object();
  labels[kMemberLabel] = Print(member);
  labels[kLaunchLabel] = std::to_string(launch);
  Object container{
      {"name", "main"},
      {"image", spec.image.empty() ? "none" : spec.image},
      {"command", CommandOf(spec, agent)},
      {"env", Array{Object{{"name", "TRAINYARD_AGENT_TOKEN"},
                           {"valueFrom", Object{{"secretKeyRef", Object{{"name", TokenName(spec.name)},
                                                                        {"key", kTokenKey}}}}}}}},
      {"ports", Array{Object{{"name", "agent"}, {"containerPort", kAgentPort}}}},
      {"resources", ResourcesOf(spec)}};
  if (!spec.working_dir.empty()) container["workingDir"] = spec.working_dir;
  Object pod{
      {"restartPolicy", "Never"},
      {"hostname", Print(member)},
      {"subdomain", spec.name},
      {"terminationGracePeriodSeconds", std::max<std::int64_t>(absl::ToInt64Seconds(spec.grace), 1) + 2}};
  if (!agent.image.empty()) {
    container["volumeMounts"] = Array{Object{{"name", kVolume}, {"mountPath", kFolder}, {"readOnly", true}}};
    pod["initContainers"] = Array{InitContainer(agent)};
    pod["volumes"] = Array{Object{{"name", kVolume}, {"emptyDir", Object()}}};
  }
  pod["containers"] = Array{std::move(container)};
  return Object{
      {"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", std::move(metadata)}, {"spec", std::move(pod)}};
}

}  // namespace trainyard::launch
