#include "launch/task.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/document.h"
#include "base/record.h"
#include "base/status.h"
#include "base/text.h"
#include "kube/names.h"
#include "kube/quantity.h"

namespace trainyard::launch {
namespace {

constexpr int kMostMembers = 1000;
constexpr std::size_t kMostName = 40;                      // pods and names of hosts are longer
constexpr std::size_t kMostSpec = std::size_t{192} << 10;  // an object's annotations may take 256 KiB

template <typename... Parts>
absl::Status Bad(const Parts&... parts) {
  return absl::InvalidArgumentError(StrCat(parts...));
}

// Visits every field, for both directions.
template <typename Spec, typename Visitor>
void ForEachField(Spec& s, Visitor visit) {
  visit("name", s.name);
  visit("strategy", s.strategy);
  visit("workers", s.workers);
  visit("ps", s.ps);
  visit("chief", s.chief);
  visit("evaluator", s.evaluator);
  visit("minWorkers", s.min_workers);
  visit("maxWorkers", s.max_workers);
  visit("image", s.image);
  visit("script", s.script);
  visit("command", s.command);
  visit("workingDir", s.working_dir);
  visit("env", s.env);
  visit("cpu", s.cpu);
  visit("memory", s.memory);
  visit("gpu", s.gpu);
  visit("maxRestarts", s.max_restarts);
  visit("grace", s.grace);
  visit("agentTimeout", s.agent_timeout);
}

using trainyard::FromDocument;
using trainyard::ToDocument;
Document ToDocument(Strategy strategy) { return Document(Name(strategy)); }
std::string_view FromDocument(const Document& document, Strategy& strategy) {
  const auto parsed = ParseStrategy(Text(document));
  strategy = parsed.value_or(strategy);
  return parsed ? "" : "AllReduce or ParameterServer";
}

absl::Status ValidateWorkers(const TaskSpec& spec) {
  if (spec.workers < 1) return Bad("--worker-num must be at least 1, and is ", spec.workers);
  const bool elastic = spec.min_workers != 0 || spec.max_workers != 0;
  if (elastic && spec.strategy != Strategy::kAllReduce)
    return Bad(
        "--min-workers and --max-workers are for AllReduce: with ParameterServer a worker that is lost comes "
        "back alone");
  if (spec.min_workers < 0 || spec.LeastWorkers() > spec.workers || spec.MostWorkers() < spec.workers)
    return Bad("--worker-num (", spec.workers, ") must be between --min-workers (", spec.LeastWorkers(),
               ") and --max-workers (", spec.MostWorkers(), ")");
  if (spec.ps > kMostMembers || spec.MostWorkers() > kMostMembers)
    return Bad("a task may have ", kMostMembers, " members of a kind");
  return absl::OkStatus();
}

absl::Status ValidateStrategy(const TaskSpec& spec) {
  switch (spec.strategy) {
    case Strategy::kAllReduce:
      if (spec.ps != 0)
        return Bad(
            "AllReduce has no parameter servers: leave --ps-num out, or choose --strategy ParameterServer");
      break;
    case Strategy::kParameterServer:
      if (spec.ps < 1) return Bad("ParameterServer needs at least one: give --ps-num");
      break;
  }
  return absl::OkStatus();
}

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

// "[::1]:2222"
std::string AddressOf(const Lineup& lineup, const MemberId& member, int port) {
  const std::string& host = lineup.hosts.at(member);
  const bool six = host.find(':') != std::string::npos;
  return StrCat(six ? "[" : "", host, six ? "]" : "", ":", port);
}

std::vector<MemberId> Of(const Lineup& lineup, Role role) {
  std::vector<MemberId> members;
  for (const MemberId& member : lineup.present) {
    if (member.role == role) members.push_back(member);
  }
  return members;
}

int PlaceOf(const std::vector<MemberId>& members, const MemberId& member) {
  return static_cast<int>(std::ranges::find(members, member) - members.begin());
}

// Those that compute together, by rank.
std::vector<MemberId> Ranks(const Lineup& lineup) {
  std::vector<MemberId> ranks = Of(lineup, Role::kChief);
  for (const MemberId& worker : Of(lineup, Role::kWorker)) ranks.push_back(worker);
  return ranks;
}

}  // namespace

std::string_view Name(Strategy strategy) {
  return strategy == Strategy::kAllReduce ? "AllReduce" : "ParameterServer";
}

std::optional<Strategy> ParseStrategy(std::string_view text) {
  for (const Strategy one : {Strategy::kAllReduce, Strategy::kParameterServer}) {
    if (Name(one) == text) return one;
  }
  return std::nullopt;
}

absl::Status Validate(const TaskSpec& spec) {
  if (const std::string_view problem = kube::FindDns1123LabelProblem(spec.name);
      !problem.empty() || spec.name.size() > kMostName)
    return Bad("'", Shortened(Escaped(spec.name), 64), "' cannot be a task's name: use up to ", kMostName,
               " small letters, digits and '-'");
  TY_RETURN_IF_ERROR(ValidateStrategy(spec));
  TY_RETURN_IF_ERROR(ValidateWorkers(spec));
  if (spec.script.empty() && spec.command.empty()) return Bad("there is nothing to run: give --script");
  if (spec.max_restarts < 0) return Bad("--max-restarts must not be below 0, and is ", spec.max_restarts);
  if (spec.grace < absl::ZeroDuration() || spec.grace > absl::Hours(1))
    return Bad("--grace must be from 0 to 1h");
  if (spec.agent_timeout < absl::Seconds(1)) return Bad("--agent-timeout must be at least 1s");
  for (const auto& [flag, amount] :
       {std::pair("--cpu", &spec.cpu), std::pair("--memory", &spec.memory), std::pair("--gpu", &spec.gpu)}) {
    if (!amount->empty() && !kube::Quantity::Parse(*amount).ok())
      return Bad(flag, ": '", Shortened(Escaped(*amount), 64), "' is no amount: write 2, 500m or 512Mi");
  }
  if (const std::size_t size = Print(spec).size(); size > kMostSpec)
    return Bad("the task's environment and command take ", size, " bytes, and may take ", kMostSpec);
  for (const auto& [name, value] : spec.env) {
    if (name.empty() || name.find('=') != std::string::npos || name.find('\0') != std::string::npos)
      return Bad("--env: '", Shortened(Escaped(name), 64), "' cannot be a variable's name");
  }
  return absl::OkStatus();
}

bool Decides(const TaskSpec& spec, Role role) {
  if (role == Role::kPs || role == Role::kEvaluator) return false;
  const bool coordinated = spec.strategy == Strategy::kParameterServer && spec.chief;
  return !coordinated || role == Role::kChief;
}

std::vector<MemberId> MembersOf(const TaskSpec& spec) {
  std::vector<MemberId> members;
  members.reserve(static_cast<std::size_t>(spec.ps) + static_cast<std::size_t>(spec.MostWorkers()) + 2);
  for (int i = 0; i < spec.ps; ++i) members.push_back({Role::kPs, i});
  if (spec.chief) members.push_back({Role::kChief, 0});
  for (int i = 0; i < spec.MostWorkers(); ++i) members.push_back({Role::kWorker, i});
  if (spec.evaluator) members.push_back({Role::kEvaluator, 0});
  return members;
}

std::string Print(const TaskSpec& spec) {
  Object object;
  ForEachField(spec, [&](const char* name, const auto& field) { object[name] = ToDocument(field); });
  return PrintJson(object);
}

absl::StatusOr<TaskSpec> ParseTaskSpec(std::string_view json) {
  TY_ASSIGN_OR_RETURN(const Document document, ParseJson(json));
  TaskSpec spec;
  RecordReader reader(document, "a task");
  ForEachField(spec, [&](const char* name, auto& field) {
    reader.Take(name, [&](const Document& value) { return FromDocument(value, field); });
  });
  TY_RETURN_IF_ERROR(reader.End());
  return spec;
}

Progress NewProgress(const TaskSpec& spec, absl::Time created) {
  Progress progress{
      .reporter = job::Reporter::kLauncher, .reason = "the operator creates its pods", .since = created};
  for (const MemberId& member : MembersOf(spec)) progress.members[member].state = "has no pod";
  return progress;
}

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
std::string ContainerName(Role role) { return StrCat("aitj-", Print(role)); }

Document TaskJob(std::string_view ns, const TaskSpec& spec, const AgentSource& agent) {
  std::map<Role, int> sizes;
  for (const MemberId& member : MembersOf(spec)) ++sizes[member.role];
  Object groups;
  for (const auto& [role, size] : sizes) groups[Print(role)] = GroupOf(spec, role, size, agent);
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

std::string TfConfig(const Lineup& lineup, const MemberId& member) {
  Object cluster;
  for (const Role role : {Role::kChief, Role::kWorker, Role::kPs, Role::kEvaluator}) {
    if (role == Role::kEvaluator && member.role != Role::kEvaluator) continue;
    Array addresses;
    for (const MemberId& one : Of(lineup, role))
      addresses.emplace_back(AddressOf(lineup, one, kTensorFlowPort));
    if (!addresses.empty()) cluster[Print(role)] = std::move(addresses);
  }
  return PrintJson(Object{
      {"cluster", std::move(cluster)},
      {"task", Object{{"type", Print(member.role)}, {"index", PlaceOf(Of(lineup, member.role), member)}}}});
}

std::map<std::string, std::string> EnvironmentOf(const TaskSpec& spec, const Lineup& lineup,
                                                 const MemberId& member) {
  const std::vector<MemberId> ranks = Ranks(lineup);
  std::map<std::string, std::string> env = spec.env;
  env.emplace("TF_CONFIG", TfConfig(lineup, member));
  env.emplace("NUM_WORKERS", std::to_string(ranks.size()));
  env.emplace("TRAINYARD_TASK", spec.name);
  env.emplace("TRAINYARD_MEMBER", Print(member));
  env.emplace("TRAINYARD_ATTEMPT", std::to_string(lineup.attempt));
  if (!ranks.empty()) {
    env.emplace("MASTER_ADDR", lineup.hosts.at(ranks.front()));
    env.emplace("MASTER_PORT", std::to_string(kTorchPort));
    env.emplace("WORLD_SIZE", std::to_string(ranks.size()));
  }
  if (member.role == Role::kChief || member.role == Role::kWorker) {
    env.emplace("RANK", std::to_string(PlaceOf(ranks, member)));
    env.emplace("LOCAL_RANK", "0");
    env.emplace("LOCAL_WORLD_SIZE", "1");
  }
  // Without it TensorFlow's coordinator does not hear of lost workers.
  if (spec.strategy == Strategy::kParameterServer) env.emplace("GRPC_FAIL_FAST", "use_caller");
  return env;
}

}  // namespace trainyard::launch
