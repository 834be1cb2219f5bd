// The objects that a task is made of: an AITrainingJob, whose pods have the agent as their entry point, and a
// Secret with their token, which the job owns. Pure: values in, documents out.
#pragma once

#include <string>
#include <string_view>

#include "base/document.h"
#include "kube/resource.h"
#include "launch/task.h"

namespace trainyard::launch {

const kube::Resource& AITrainingJobs();

inline constexpr std::string_view kTaskLabel = "trainyard.dev/launch-task";  // of the job and its pods
inline constexpr std::string_view kRoleLabel = "TrainingJobReplicaName";     // of pods
inline constexpr std::string_view kIndexLabel = "TrainingJobReplicaIndex";   // likewise
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

}  // namespace trainyard::launch
