// What the objects of a job are called.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace trainyard::job {

// By which users of the original select the pods of an AITrainingJob.
inline constexpr std::string_view kJobNameLabel = "TrainingJobName";
inline constexpr std::string_view kRoleLabel = "TrainingJobReplicaName";
inline constexpr std::string_view kIndexLabel = "TrainingJobReplicaIndex";
// How often the pod of this index was recreated before; of the pods of every kind.
inline constexpr std::string_view kAttemptAnnotation = "trainyard.dev/attempt";

// Of the objects of a job.
struct NameRule {
  std::string_view job;
  // Empty: the names are "<job>-<role>-<index>", and a job that is deleted and made again under its name
  // waits for its predecessor's objects to go. Otherwise they end with a part of it, and stay valid for as
  // long as the job lives.
  std::string_view uid;
};

// "<job>-<role>-<index>", or "<job>-<role>-<index>-<suffix>": of the pod and of its service.
std::string PodName(const NameRule& rule, std::string_view role, int index);
// Whose name it is; nothing: no pod of the job is called so.
struct SeatName {
  std::string role;
  int index = 0;
};
std::optional<SeatName> ParsePodName(const NameRule& rule, std::string_view name);
// The longest of the names that a role of so many replicas has.
std::size_t LongestPodName(const NameRule& rule, std::string_view role, int replicas);

// "worker-1": what messages call it.
std::string ShortName(std::string_view role, int index);

}  // namespace trainyard::job
