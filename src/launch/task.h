// A task of the launcher: a training script that runs in several members under a framework's own runtime, and
// where it stands. Pure values, stored as JSON: the spec in an annotation of the task's AITrainingJob, and
// where it stands as its .status.progress.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/document.h"
#include "job/progress.h"
#include "kube/resource.h"

namespace trainyard::launch {

enum class Strategy : std::uint8_t { kAllReduce, kParameterServer };
std::string_view Name(Strategy strategy);  // "AllReduce", "ParameterServer"
std::optional<Strategy> ParseStrategy(std::string_view text);

using job::MemberId;
using job::ParseMember;
using job::Progress;
using Role = job::MemberRole;
using Phase = job::WorkPhase;

// What a user asks for.
struct TaskSpec {
  std::string name;
  Strategy strategy = Strategy::kAllReduce;
  int workers = 1;
  int ps = 0;
  bool chief = false;      // a member that coordinates, beside the workers
  bool evaluator = false;  // likewise one that evaluates
  int min_workers = 0;     // AllReduce: it may run with so few; 0: as many as `workers`
  int max_workers = 0;     // and with so many; 0: as many as `workers`
  std::string image;
  std::string script = "exec.py";
  std::vector<std::string> command;  // instead of the script
  std::string working_dir;           // "": the image's
  std::map<std::string, std::string> env;
  std::string cpu;
  std::string memory;
  std::string gpu;
  int max_restarts = 3;
  absl::Duration grace = absl::Seconds(10);          // between SIGTERM and SIGKILL
  absl::Duration agent_timeout = absl::Seconds(60);  // an agent that does not answer for so long is lost

  bool IsElastic() const { return LeastWorkers() < MostWorkers(); }
  int LeastWorkers() const { return min_workers > 0 ? min_workers : workers; }
  int MostWorkers() const { return max_workers > 0 ? max_workers : workers; }
  bool operator==(const TaskSpec&) const = default;
};

// What can be known to be wrong by looking at the spec: one sentence, and what to do.
absl::Status Validate(const TaskSpec& spec);
// Whether the task has succeeded only when the scripts of that role have.
bool Decides(const TaskSpec& spec, Role role);
// All members that a valid task may have, in their order; workers up to MostWorkers().
std::vector<MemberId> MembersOf(const TaskSpec& spec);

// Of a task that was just created.
Progress NewProgress(const TaskSpec& spec, absl::Time created);

std::string Print(const TaskSpec& spec);
// InvalidArgument: which field is wrong.
absl::StatusOr<TaskSpec> ParseTaskSpec(std::string_view json);

// ---- The objects that a task is made of: an AITrainingJob, whose pods have the agent as their entry point,
// and a Secret with their token, which the job owns. Pure: values in, documents out.

const kube::Resource& AITrainingJobs();

inline constexpr std::string_view kTaskLabel = "trainyard.dev/launch-task";  // of the job and its pods
// Annotations of the job: the task's spec; that a user wants it to end; that it has failed, as the operator
// reads it.
inline constexpr std::string_view kSpecAnnotation = "trainyard.dev/launch-spec";
inline constexpr std::string_view kCancelAnnotation = "trainyard.dev/launch-cancel";
inline constexpr std::string_view kFailedAnnotation = "Failed";
inline constexpr std::string_view kTokenKey = "token";  // of the Secret
inline constexpr int kAgentPort = 7896;

// How the agent comes into a member's pod.
struct AgentSource {
  // The image that has it: an init container puts it into a volume. "": pods find `trainyard` on their PATH,
  // as on the embedded cluster.
  std::string image;
  std::string pull_policy;
};

// "mnist-task-token", "mnist-worker-0", "aitj-worker".
std::string TokenName(std::string_view task);
std::string PodName(std::string_view task, const MemberId& member);
std::string ContainerName(Role role);

Document TaskJob(std::string_view ns, const TaskSpec& spec, const AgentSource& agent);
Document TaskSecret(std::string_view ns, const TaskSpec& spec, std::string_view token);
// A merge patch with which the Secret goes when the job does.
Document OwnerPatch(std::string_view job, std::string_view uid);

// ---- What a member's script finds in its environment: TF_CONFIG by TensorFlow's rules, and what PyTorch
// scripts read. Pure.

inline constexpr int kTensorFlowPort = 2222;
inline constexpr int kTorchPort = 29500;

// Who is in an attempt, and where: hosts by name or address.
struct Lineup {
  std::vector<MemberId> present;  // in their order
  std::map<MemberId, std::string> hosts;
  int attempt = 1;
};

// TF_CONFIG of one member. The cluster is the same for all; a member's index is its place among those of its
// role that are present, so that indexes have no gaps when some are missing. The evaluator is in nobody's
// cluster but its own.
std::string TfConfig(const Lineup& lineup, const MemberId& member);

// All variables of one member. Those of the task go before: a user's own value of one of ours is kept.
std::map<std::string, std::string> EnvironmentOf(const TaskSpec& spec, const Lineup& lineup,
                                                 const MemberId& member);

}  // namespace trainyard::launch
