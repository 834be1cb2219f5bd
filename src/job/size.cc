#include "job/size.h"

#include <algorithm>

#include "base/text.h"

namespace trainyard::job {
namespace {

SizeDecision Bounded(const RoleSpec& role, int wanted) {
  const int size = std::clamp(wanted, role.least, std::max(role.most, role.least));
  if (size == wanted) return {.size = size};
  return {.size = size,
          .ignored = StrCat(role.slug, " has ", size, " pods, not ", wanted, ": ",
                            wanted < role.least ? StrCat("minReplicas is ", role.least)
                                                : StrCat("maxReplicas is ", role.most))};
}

int StoredSize(const JobView& view, const RoleSpec& role) {
  const auto known = view.status.roles.find(role.name);
  return FirstSize(role, known == view.status.roles.end() ? std::nullopt : known->second.size);
}

}  // namespace

int FirstSize(const RoleSpec& role, std::optional<int> stored) {
  return stored.value_or(DecideSize(role, std::nullopt, std::nullopt).size);
}

SizeDecision DecideSize(const RoleSpec& role, std::optional<int> now, std::optional<int> target) {
  switch (role.size) {
    case SizePolicy::kPlain:
      return {.size = role.replicas};
    case SizePolicy::kManual:
      return Bounded(role, role.replicas);
    case SizePolicy::kAuto:
      // A group that has no pods yet begins with as many as the spec says.
      return {.size = Bounded(role, target.value_or(now.value_or(0) > 0 ? *now : role.replicas)).size};
    case SizePolicy::kFixed:
      if (!now || *now == role.replicas) return {.size = role.replicas};
      return {
          .size = *now,
          .ignored = StrCat(role.slug, " has ", *now, " pods, not ", role.replicas, ": edlPolicy is Never")};
  }
  return {.size = role.replicas};
}

bool HasStoredSizes(const JobView& view) {
  return std::ranges::all_of(view.spec.roles,
                             [&](const RoleSpec& role) { return StoredSize(view, role) == role.replicas; });
}

JobView WithStoredSizes(const JobView& view) {
  JobView sized = view;
  for (RoleSpec& role : sized.spec.roles) role.replicas = StoredSize(view, role);
  return sized;
}

}  // namespace trainyard::job
