#include "job/end_policy.h"

#include "base/text.h"
#include "job/names.h"

namespace trainyard::job {

bool Decides(const RoleSpec& role, int index) {
  switch (role.complete) {
    case EndPolicy::kAny:
    case EndPolicy::kAll:
      return true;
    case EndPolicy::kRank0:
      return index == 0;
    case EndPolicy::kNone:
      return false;
  }
  return false;
}

std::optional<std::string> FindSuccess(const JobSpec& spec, const JobStatus& status) {
  std::string who_all;
  for (const RoleSpec& role : spec.roles) {
    const auto known = status.roles.find(role.name);
    const IndexSet completed = known == status.roles.end() ? IndexSet() : known->second.completed;
    bool done = true;
    std::string who;
    switch (role.complete) {
      case EndPolicy::kNone:
        continue;
      case EndPolicy::kAny:
        done = completed.Count() > 0;
        who = StrCat("a ", role.slug);
        break;
      case EndPolicy::kRank0:
        done = completed.Contains(0);
        who = ShortName(role.slug, 0);
        break;
      case EndPolicy::kAll:
        done = completed.Count() == role.replicas;
        who = role.replicas == 1 ? ShortName(role.slug, 0) : StrCat("all ", role.replicas, " of ", role.slug);
        break;
    }
    if (!done) return std::nullopt;
    StrAppend(who_all, who_all.empty() ? "" : " and ", who);
  }
  if (who_all.empty()) return std::nullopt;
  return who_all;
}

}  // namespace trainyard::job
