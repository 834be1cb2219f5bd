#include "job/gang.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <variant>

#include "base/text.h"
#include "job/telling.h"

namespace trainyard::job {
namespace {

constexpr absl::Duration kPatience = absl::Minutes(1);  // with a gang of which a part has nodes
constexpr absl::Duration kFirstPause = absl::Seconds(30);
constexpr int kMostDoublings = 4;

int SizeOf(const JobStatus& status, const RoleSpec& role) {
  const auto known = status.roles.find(role.name);
  return known == status.roles.end() ? role.replicas : known->second.size.value_or(role.replicas);
}

int DoneOf(const JobStatus& status, const RoleSpec& role) {
  const auto known = status.roles.find(role.name);
  return known == status.roles.end() ? 0 : known->second.completed.Count() + known->second.given_up.Count();
}

int LeastOf(const JobStatus& status, const RoleSpec& role) {
  const int size = SizeOf(status, role);
  const bool elastic = role.size == SizePolicy::kAuto || role.size == SizePolicy::kManual;
  return elastic && role.least > 0 ? std::min(role.least, size) : size;
}

// Two gangs that each hold what the other needs must not try again at the same time.
absl::Duration PauseOf(const JobView& view, int returns) {
  const double spread =
      static_cast<double>(std::hash<std::string>()(StrCat(view.uid, returns)) % 1000) / 1000;
  return kFirstPause * static_cast<double>(1 << std::min(returns - 1, kMostDoublings)) * (1 + spread);
}

const RoleSpec* RoleOf(const JobSpec& spec, std::string_view slug) {
  const auto role = std::ranges::find(spec.roles, slug, &RoleSpec::slug);
  return role == spec.roles.end() || !IsInGang(spec, *role) ? nullptr : &*role;
}

class GangPlanner {
 public:
  explicit GangPlanner(PlanBuilder& builder)
      : builder_(builder), minimum_(GangMinimum(view().spec, status())) {}

  std::string Plan() {
    switch (view().policies.gang) {
      case GangScheduler::kNone:
        break;
      case GangScheduler::kCoscheduling:
      case GangScheduler::kVolcano:
        PlanGroup();
        return "";
      case GangScheduler::kGates:
        return PlanGates();
    }
    return "";
  }

 private:
  const JobView& view() const { return builder_.view(); }
  JobStatus& status() { return builder_.status(); }

  void Mark(GangScheduler gang) {
    for (Action& action : builder_.pending()) {
      auto* create = std::get_if<CreatePod>(&action);
      if (create != nullptr && RoleOf(view().spec, create->role) != nullptr) create->gang = gang;
    }
  }
  void CreateNone() {
    std::erase_if(builder_.pending(), [this](const Action& action) {
      const auto* create = std::get_if<CreatePod>(&action);
      return create != nullptr && RoleOf(view().spec, create->role) != nullptr;
    });
  }

  // The group is there before its pods: a scheduler places pods one by one whose group it does not know.
  void PlanGroup() {
    const std::optional<PodGroupView>& group = view().pod_group;
    Mark(view().policies.gang);
    if (!group || group->leaving) CreateNone();
    if (group && (group->leaving || group->minimum == minimum_)) return;
    builder_.Do(WritePodGroup{
        .gang = view().policies.gang, .minimum = minimum_, .version = group ? group->version : ""});
  }

  std::string PlanGates() {
    const std::vector<const PodView*> members = GangMembers(view());
    if (status().gang_retry && builder_.now() < *status().gang_retry) return Rest(members);
    const auto bound = std::ranges::count_if(members, [](const PodView* pod) { return !pod->node.empty(); });
    if (bound >= minimum_) {
      status().gang_retry.reset();
      status().gang_returns = 0;
    } else if (bound > 0 && IsStuck(members)) {
      return GiveBack(static_cast<int>(bound));
    }
    const bool open = IsGangOpen(view());
    Mark(open ? GangScheduler::kNone : GangScheduler::kGates);
    if (!open && !view().gang.admitted) return "";
    for (const PodView* pod : members) {
      if (pod->gated) builder_.Do(LiftGate{.name = pod->name, .uid = pod->uid});
    }
    return "";
  }

  // Whether it has held a part of its nodes for too long. One that has once had all of them goes on with
  // those that it has left.
  bool IsStuck(const std::vector<const PodView*>& members) {
    const Condition* running = status().Find(State::kRunning);
    absl::Time last = absl::InfinitePast();
    for (const PodView* pod : members) {
      last = std::max(last, pod->since);
      const bool survivor =
          !pod->node.empty() && running != nullptr && (running->is_true || pod->since < running->changed);
      if (survivor) return false;
    }
    if (builder_.now() >= last + kPatience) return true;
    builder_.WakeAt(last + kPatience);
    return false;
  }

  std::string GiveBack(int bound) {
    ++status().gang_returns;
    status().gang_retry = WholeSecond(builder_.now() + PauseOf(view(), status().gang_returns));
    builder_.MarkRaised();
    builder_.Tell(true, "GangGaveBack",
                  StrCat("the gang had ", bound, " of ", minimum_, " nodes and got no more for ",
                         absl::FormatDuration(kPatience), "; it gives them back and tries again at ",
                         PrintClock(*status().gang_retry)));
    return PrintRest();
  }

  std::string Rest(const std::vector<const PodView*>& members) {
    CreateNone();
    for (const PodView* pod : members) {
      const bool deleted = std::ranges::any_of(builder_.pending(), [&](const Action& action) {
        const auto* remove = std::get_if<DeletePod>(&action);
        return remove != nullptr && remove->uid == pod->uid;
      });
      if (!deleted) builder_.Delete(*pod, "its gang did not get all of its nodes and gives them back");
    }
    builder_.WakeAt(*status().gang_retry);
    return PrintRest();
  }
  std::string PrintRest() {
    return StrCat("the gang of ", minimum_,
                  " got only a part of its nodes and gave them back; it tries again at ",
                  PrintClock(*status().gang_retry));
  }

  PlanBuilder& builder_;
  const int minimum_;
};

}  // namespace

bool IsInGang(const JobSpec& spec, const RoleSpec& role) {
  return role.gang || spec.gang_min_available.has_value();
}

bool HasGang(const JobSpec& spec) {
  return std::ranges::any_of(spec.roles, [&](const RoleSpec& role) { return IsInGang(spec, role); });
}

int GangMinimum(const JobSpec& spec, const JobStatus& status) {
  int pods = 0;
  int least = 0;
  int done = 0;
  for (const RoleSpec& role : spec.roles) {
    if (!IsInGang(spec, role)) continue;
    pods += SizeOf(status, role);
    least += LeastOf(status, role);
    done += DoneOf(status, role);
  }
  if (spec.gang_min_available) least = std::min(*spec.gang_min_available, pods);
  return std::max(least - done, 1);
}

std::vector<const PodView*> GangMembers(const JobView& view) {
  std::vector<const PodView*> members;
  for (const PodView& pod : view.pods) {
    const RoleSpec* role = RoleOf(view.spec, pod.role);
    if (role == nullptr || !pod.owned || pod.deletion || pod.IsFinished()) continue;
    const auto known = view.status.roles.find(role->name);
    if (known != view.status.roles.end() &&
        (pod.attempt < known->second.AttemptOf(pod.index) || known->second.completed.Contains(pod.index) ||
         known->second.given_up.Contains(pod.index)))
      continue;
    members.push_back(&pod);
  }
  return members;
}

bool IsGangOpen(const JobView& view) {
  return std::ranges::any_of(GangMembers(view), [](const PodView* pod) { return !pod->gated; });
}

std::string PlanGang(PlanBuilder& builder) {
  const JobView& view = builder.view();
  const bool has_gang = HasGang(view.spec);
  if (!has_gang || view.policies.gang != GangScheduler::kGates) {  // a gate from before it was so
    for (const PodView& pod : view.pods) {
      if (pod.gated && pod.owned && !pod.deletion) builder.Do(LiftGate{.name = pod.name, .uid = pod.uid});
    }
  }
  if (has_gang) return GangPlanner(builder).Plan();
  if (view.pod_group && !view.pod_group->leaving && view.pod_group->minimum > 1) {  // nor a group
    builder.Do(WritePodGroup{.gang = view.policies.gang, .version = view.pod_group->version});
  }
  return "";
}

}  // namespace trainyard::job
