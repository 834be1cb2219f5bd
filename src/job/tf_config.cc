#include "job/tf_config.h"

#include "base/json.h"
#include "base/text.h"

namespace trainyard::job {

std::string PrintTfCluster(const std::vector<TfTaskGroup>& groups) {
  JsonObject cluster;
  for (const TfTaskGroup& group : groups) {
    std::string list = "[";
    for (const std::string& address : group.addresses) {
      if (list.size() > 1) list += ",";
      AppendJsonString(list, address);
    }
    cluster.AddRaw(group.type, list + "]");
  }
  return cluster.Str();
}

std::string PrintTfTask(std::string_view task_type, int index) {
  return JsonObject().Add("type", task_type).Add("index", index).Str();
}

std::string PrintTfConfig(std::string_view cluster_json, std::string_view task_type, int index) {
  return JsonObject().AddRaw("cluster", cluster_json).AddRaw("task", PrintTfTask(task_type, index)).Str();
}

}  // namespace trainyard::job
