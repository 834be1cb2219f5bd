#include "job/plan_builder.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/text.h"

namespace trainyard::job {

absl::Time WholeSecond(absl::Time time) { return absl::FromUnixSeconds(absl::ToUnixSeconds(time)); }

bool EndedByItself(const PodView& pod) {
  return !pod.deletion || (pod.end && pod.end->at < pod.deletion->asked);
}

PlanBuilder::PlanBuilder(const JobView& view, absl::Time now) : view_(view), now_(now) {
  plan_.status = view.status;
}

std::string PlanBuilder::Reason(std::string_view what) const {
  return StrCat(view_.spec.reasons.empty() ? view_.spec.kind : view_.spec.reasons, what);
}

void PlanBuilder::Do(Action action) {
  const bool creates =
      std::holds_alternative<CreatePod>(action) || std::holds_alternative<CreateService>(action);
  if (!creates || !creates_held_) actions_.push_back(std::move(action));
}

bool PlanBuilder::IsLost(const PodView& pod) {
  switch (pod.node_health) {
    case NodeHealth::kUnknown:
    case NodeHealth::kReady:
      return false;
    case NodeHealth::kGone:
      return true;
    case NodeHealth::kNotReady:
      break;
  }
  const absl::Time due = pod.node_since.value_or(now_) + view_.policies.node_grace;
  if (now_ >= due) return true;
  WakeAt(due);
  return false;
}

void PlanBuilder::Delete(const PodView& pod, std::string why) {
  if (!pod.owned) return;
  if (!pod.deletion) {
    Do(DeletePod{.name = pod.name, .uid = pod.uid, .why = std::move(why)});
    return;
  }
  // Its node would confirm that it has ended; of a lost one nobody would.
  if (!IsLost(pod)) return;
  if (now_ < pod.deletion->due) return WakeAt(pod.deletion->due);
  Do(DeletePod{.name = pod.name,
               .uid = pod.uid,
               .force = true,
               .why = StrCat(pod.node, " is lost and cannot say that it has ended")});
}

bool PlanBuilder::IsOver(const PodView& pod) { return pod.IsFinished() || IsLost(pod); }

void PlanBuilder::Stop(const PodView& pod, std::string why) {
  if (pod.deletion || pod.phase == Phase::kPending) return Delete(pod, std::move(why));
  if (!pod.owned || pod.stopped || IsOver(pod)) return;
  Do(StopPod{.name = pod.name, .uid = pod.uid, .why = std::move(why)});
}

void PlanBuilder::Delete(const ServiceView& service, std::string why) {
  if (!service.owned || service.leaving) return;
  Do(DeleteService{.name = service.name, .uid = service.uid, .why = std::move(why)});
}

void PlanBuilder::Enter(State state, const std::string& message) {
  const Condition* current = status().Current();
  const bool changes = current == nullptr || current->type != state;
  // That pods were made is told by whoever makes them, and restarts with their cause.
  if (changes && state == State::kSuspended) Tell(false, Reason(Print(state)), message);
  status().Set(state, true, Reason(Print(state)), message, now_);
}

void PlanBuilder::Tell(bool warning, std::string reason, std::string message) {
  plan_.events.push_back({.warning = warning, .reason = std::move(reason), .message = std::move(message)});
}

void PlanBuilder::Wake(absl::Duration after) {
  plan_.wake_after = plan_.wake_after ? std::min(*plan_.wake_after, after) : after;
}
void PlanBuilder::WakeAt(absl::Time time) { Wake(std::max(time - now_, absl::ZeroDuration())); }

JobPlan PlanBuilder::Build() {
  if (ended_) {
    plan_.decision = End();
  } else if (raised_) {
    plan_.decision = Raise();
  } else {
    plan_.decision = Act{std::move(actions_)};
  }
  if (ended_ || raised_) Wake(absl::ZeroDuration());
  return std::move(plan_);
}

}  // namespace trainyard::job
