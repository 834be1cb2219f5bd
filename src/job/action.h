// What is to be done for a job: small values, made by PlanJob() and done by the operator.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace trainyard::job {

struct CreatePod {
  std::string role;  // the slug
  int index = 0;
  int attempt = 0;
  std::vector<std::string> avoid;  // nodes that it is not to be on
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

// What members read of each other.
struct WriteMembers {
  std::int64_t epoch = 0;
  std::string text;
  std::string version;  // that is written over; empty: there is none yet
  bool operator==(const WriteMembers&) const = default;
};
struct DeleteMembers {
  std::string uid;
  std::string why;
  bool operator==(const DeleteMembers&) const = default;
};

struct DeleteJob {
  std::string why;
  bool operator==(const DeleteJob&) const = default;
};

using Action = std::variant<WriteMembers, CreateService, CreatePod, StopPod, DeletePod, DeleteService,
                            DeleteMembers, AdoptPod, AdoptService, DeleteJob>;

// "create pod worker-1 (attempt 2): it is missing".
std::string Print(const Action& action);

}  // namespace trainyard::job
