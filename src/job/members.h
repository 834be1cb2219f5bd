// Who works on a job now, for those who work on it: what a member reads to find the others.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "job/job_view.h"
#include "job/seats.h"

namespace trainyard::job {

// "<job>-members": the object that holds it.
std::string MembersName(std::string_view job);

// One line for each pod that runs, in the order of roles and indexes: role, index, the name that resolves,
// and the pod's uid, by which one that was made again is told from its predecessor.
std::string PrintMembers(const JobView& view, const Account& account);

// Short, and another for other members.
std::string Fingerprint(std::string_view members);

// As it is stored: the epoch in the first line, then the members.
std::string PrintMembersFile(std::int64_t epoch, std::string_view members);

// ---- TF_CONFIG: how the TensorFlow processes of a job find each other.

// One role of the cluster and where its processes listen, in the order of their indexes.
struct TfTaskGroup {
  std::string type;  // as TensorFlow calls it: "chief", "ps", "worker"
  std::vector<std::string> addresses;
};

// The JSON text of the member `cluster`: the same for every process of a job.
std::string PrintTfCluster(const std::vector<TfTaskGroup>& groups);
// The member `task` of one process.
std::string PrintTfTask(std::string_view task_type, int index);
// The whole text for one process.
std::string PrintTfConfig(std::string_view cluster_json, std::string_view task_type, int index);

}  // namespace trainyard::job
