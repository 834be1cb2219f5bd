#include "job/action.h"

#include "base/text.h"

namespace trainyard::job {
namespace {

std::string PrintOne(const CreatePod& action) {
  const std::string attempt = action.attempt > 0 ? StrCat(" (attempt ", action.attempt, ")") : "";
  std::string avoid;
  for (const std::string& node : action.avoid) StrAppend(avoid, avoid.empty() ? " not on " : ", ", node);
  return StrCat("create pod ", action.role, "-", action.index, attempt, avoid, ": ", action.why);
}
std::string PrintOne(const CreateService& action) {
  return StrCat("create service ", action.role, "-", action.index, ": ", action.why);
}
std::string PrintOne(const DeletePod& action) {
  return StrCat(action.force ? "force-delete pod " : "delete pod ", action.name, ": ", action.why);
}
std::string PrintOne(const StopPod& action) { return StrCat("stop pod ", action.name, ": ", action.why); }
std::string PrintOne(const WriteMembers& action) {
  return StrCat("tell the members of each other: epoch ", action.epoch);
}
std::string PrintOne(const WriteConfig&) { return "write the configuration that pods mount"; }
std::string PrintOne(const WritePodGroup& action) {
  return StrCat("write the pod group: ", action.minimum, action.minimum == 1 ? " pod starts" : " pods start",
                " together");
}
std::string PrintOne(const LiftGate& action) {
  return StrCat("lift the gate of pod ", action.name, ": its gang starts");
}
std::string PrintOne(const DeleteConfigMap& action) {
  return StrCat("delete configmap ", action.name, ": ", action.why);
}
std::string PrintOne(const DeleteService& action) {
  return StrCat("delete service ", action.name, ": ", action.why);
}
std::string PrintOne(const AdoptPod& action) { return StrCat("adopt pod ", action.name); }
std::string PrintOne(const AdoptService& action) { return StrCat("adopt service ", action.name); }
std::string PrintOne(const RelabelPod& action) { return StrCat("relabel pod ", action.name); }
std::string PrintOne(const RepairService& action) { return StrCat("repair service ", action.name); }
std::string PrintOne(const DeleteJob& action) { return StrCat("delete the job: ", action.why); }

}  // namespace

std::string Print(const Action& action) {
  return std::visit([](const auto& one) { return PrintOne(one); }, action);
}

}  // namespace trainyard::job
