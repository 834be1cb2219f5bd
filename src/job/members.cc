#include "job/members.h"

#include "base/json.h"
#include "base/text.h"
#include "job/names.h"

namespace trainyard::job {

std::string MembersName(std::string_view job) { return StrCat(job, "-members"); }

std::string PrintMembers(const JobView& view, const Account& account) {
  std::string out;
  for (std::size_t i = 0; i < view.spec.roles.size(); ++i) {
    const std::string& role = view.spec.roles[i].slug;
    for (std::size_t index = 0; index < account.fates[i].size(); ++index) {
      if (account.fates[i][index] != Fate::kRuns) continue;
      const PodView& pod = *account.seats.roles[i][index].pod;
      StrAppend(out, role, " ", pod.index, " ", PodName(view.Naming(), role, pod.index), ".", view.ns, " ",
                pod.uid, "\n");
    }
  }
  return out;
}

std::string Fingerprint(std::string_view members) {
  // FNV-1a: it must be the same for every process, for ever.
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : members) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return StrCat(Hex32(static_cast<std::uint32_t>(hash >> 32)), Hex32(static_cast<std::uint32_t>(hash)));
}

std::string PrintMembersFile(std::int64_t epoch, std::string_view members) {
  return StrCat("epoch ", epoch, "\n", members);
}

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
