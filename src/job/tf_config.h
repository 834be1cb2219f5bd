// TF_CONFIG: how the TensorFlow processes of a job find each other.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trainyard::job {

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
