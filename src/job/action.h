// What is to be done for a job: small values, made by PlanJob() and done by the operator.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace trainyard::job {

// Who starts gangs. kCoscheduling, kVolcano: a scheduler, by PodGroups of its kind. kGates: the operator, by
// scheduling gates. kNone: nobody, and pods of a gang start one by one.
enum class GangScheduler : std::uint8_t { kNone, kCoscheduling, kVolcano, kGates };

inline bool UsesPodGroups(GangScheduler gang) {
  return gang == GangScheduler::kCoscheduling || gang == GangScheduler::kVolcano;
}

struct CreatePod {
  std::string role;  // the slug
  int index = 0;
  int attempt = 0;
  std::vector<std::string> avoid;             // nodes that it is not to be on
  GangScheduler gang = GangScheduler::kNone;  // that it waits for
  std::string why;
  bool operator==(const CreatePod&) const = default;
};

struct CreateService {
  std::string role;
  int index = 0;
  std::string why;
  bool operator==(const CreateService&) const = default;
};

struct DeletePod {
  std::string name;
  std::string uid;     // the precondition
  bool force = false;  // without waiting for its node, which is lost
  std::string why;
  bool operator==(const DeletePod&) const = default;
};

// It is to end, and its object to stay.
struct StopPod {
  std::string name;
  std::string uid;
  std::string why;
  bool operator==(const StopPod&) const = default;
};

struct DeleteService {
  std::string name;
  std::string uid;
  std::string why;
  bool operator==(const DeleteService&) const = default;
};

// Of what carries our labels and belongs to nobody.
struct AdoptPod {
  std::string name;
  std::string uid;
  bool operator==(const AdoptPod&) const = default;
};

struct AdoptService {
  std::string name;
  std::string uid;
  bool operator==(const AdoptService&) const = default;
};

// Gives a pod the labels that it was made with.
struct RelabelPod {
  std::string name;
  std::string uid;
  std::string role;
  int index = 0;
  bool operator==(const RelabelPod&) const = default;
};

// Gives a service the labels, the selector and the ports that it was made with.
struct RepairService {
  std::string name;
  std::string uid;
  std::string role;
  int index = 0;
  bool operator==(const RepairService&) const = default;
};

// What members read of each other.
struct WriteMembers {
  std::int64_t epoch = 0;
  std::string text;
  std::string version;  // that is written over; empty: there is none yet
  bool operator==(const WriteMembers&) const = default;
};
// The configuration that pods mount, which is made from the job's spec.
struct WriteConfig {
  std::string version;  // as above
  bool operator==(const WriteConfig&) const = default;
};
struct DeleteConfigMap {
  std::string name;
  std::string uid;
  std::string why;
  bool operator==(const DeleteConfigMap&) const = default;
};

// The group that tells a scheduler how many pods start together.
struct WritePodGroup {
  GangScheduler gang = GangScheduler::kCoscheduling;  // that is told
  int minimum = 1;
  std::string version;  // as above
  bool operator==(const WritePodGroup&) const = default;
};
// Lets a pod be scheduled that was kept back with the rest of its gang.
struct LiftGate {
  std::string name;
  std::string uid;
  bool operator==(const LiftGate&) const = default;
};

struct DeleteJob {
  std::string why;
  bool operator==(const DeleteJob&) const = default;
};

using Action = std::variant<WriteMembers, WriteConfig, WritePodGroup, CreateService, CreatePod, LiftGate,
                            StopPod, DeletePod, DeleteService, DeleteConfigMap, AdoptPod, AdoptService,
                            RelabelPod, RepairService, DeleteJob>;

// "create pod worker-1 (attempt 2): it is missing".
std::string Print(const Action& action);

}  // namespace trainyard::job
