#include "job/action.h"

#include "base/text.h"

namespace trainyard::job {
namespace {

std::string PrintOne(const CreatePod& action) {
  const std::string attempt = action.attempt > 0 ? StrCat(" (attempt ", action.attempt, ")") : "";
  return StrCat("create pod ", action.role, "-", action.index, attempt, ": ", action.why);
}
std::string PrintOne(const CreateService& action) {
  return StrCat("create service ", action.role, "-", action.index, ": ", action.why);
}
std::string PrintOne(const DeletePod& action) {
  return StrCat(action.force ? "force-delete pod " : "delete pod ", action.name, ": ", action.why);
}
std::string PrintOne(const DeleteService& action) {
  return StrCat("delete service ", action.name, ": ", action.why);
}
std::string PrintOne(const AdoptPod& action) { return StrCat("adopt pod ", action.name); }
std::string PrintOne(const AdoptService& action) { return StrCat("adopt service ", action.name); }
std::string PrintOne(const DeleteJob& action) { return StrCat("delete the job: ", action.why); }

}  // namespace

std::string Print(const Action& action) {
  return std::visit([](const auto& one) { return PrintOne(one); }, action);
}

}  // namespace trainyard::job
