// The objects that a task is made of: a ConfigMap with what it is and where it stands, which owns the rest; a
// Secret with its token; a headless Service, by which members have names; a pod for each member. Pure: values
// in, documents out.
#pragma once

#include <string>
#include <string_view>

#include "base/document.h"
#include "launch/task.h"

namespace trainyard::launch {

inline constexpr std::string_view kTaskLabel = "trainyard.dev/launch-task";
inline constexpr std::string_view kMemberLabel = "trainyard.dev/launch-member";
inline constexpr std::string_view kLaunchLabel = "trainyard.dev/launch-number";
inline constexpr std::string_view kSpecKey = "spec";      // of the ConfigMap
inline constexpr std::string_view kStatusKey = "status";  // likewise
inline constexpr std::string_view kTokenKey = "token";    // of the Secret
inline constexpr int kAgentPort = 7896;

// How the agent comes into a member's pod.
struct AgentSource {
  // The image that has it: an init container puts it into a volume. "": pods find `trainyard` on their PATH,
  // as on the embedded cluster.
  std::string image;
  std::string pull_policy;
};

// Whose the task's other objects are.
struct TaskOwner {
  std::string ns;
  std::string uid;  // of the ConfigMap
};

// "mnist-task", "mnist-task-token"; the Service has the task's own name, which is part of members' names.
std::string ConfigName(std::string_view task);
std::string TokenName(std::string_view task);
// "mnist-worker-0", "mnist-worker-0-r1".
std::string PodName(std::string_view task, const MemberId& member, int launch);

Document TaskConfig(std::string_view ns, const TaskSpec& spec, const TaskStatus& status);
Document TaskSecret(const TaskOwner& owner, const TaskSpec& spec, std::string_view token);
Document TaskService(const TaskOwner& owner, const TaskSpec& spec);
Document MemberPod(const TaskOwner& owner, const TaskSpec& spec, const MemberId& member, int launch,
                   const AgentSource& agent);

}  // namespace trainyard::launch
