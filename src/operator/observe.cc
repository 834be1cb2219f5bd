#include "operator/observe.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "operator/labels.h"

namespace trainyard::ops {
namespace {

using kube::ContainerState;
using kube::ContainerStatus;

job::Phase ObservePhase(kube::PodPhase phase) {
  switch (phase) {
    case kube::PodPhase::kPending:
      return job::Phase::kPending;
    case kube::PodPhase::kRunning:
      return job::Phase::kRunning;
    case kube::PodPhase::kSucceeded:
      return job::Phase::kSucceeded;
    case kube::PodPhase::kFailed:
      return job::Phase::kFailed;
    case kube::PodPhase::kUnknown:
      return job::Phase::kUnknown;
  }
  return job::Phase::kUnknown;
}

// How it failed last, if it has.
const ContainerState* LastFailure(const ContainerStatus& container) {
  if (container.state.kind == ContainerState::Kind::kTerminated && container.state.exit_code != 0) {
    return &container.state;
  }
  return container.last_termination && container.last_termination->exit_code != 0
             ? &*container.last_termination
             : nullptr;
}

std::optional<job::ContainerEnd> ObserveFailure(const ContainerStatus& container, bool main) {
  const ContainerState* end = LastFailure(container);
  if (end == nullptr) return std::nullopt;
  job::ContainerEnd out{.container = main ? "" : std::string(container.name.view()),
                        .exit_code = end->exit_code,
                        .reason = std::string(end->reason.view())};
  // What it wrote to its termination log, or why it could not be started.
  out.message = Split(std::string_view(end->message), '\n').front();
  if (end->finished) out.at = *end->finished;
  if (end->finished && end->started) out.ran = *end->finished - *end->started;
  return out;
}

// Of several that do the work, the first to fail: the others may have because of it.
std::optional<job::ContainerEnd> FindFailure(const kube::CompactPod& pod, const Kind& kind) {
  std::optional<job::ContainerEnd> found;
  bool found_main = false;
  for (const auto* list : {&pod.containers, &pod.init_containers}) {
    for (const ContainerStatus& container : *list) {
      const bool is_main = list == &pod.containers && kind.IsMain(container.name);
      // Of a pod that failed, whoever ended with 0 at last is not to blame.
      if (pod.phase == kube::PodPhase::kFailed && container.state.kind == ContainerState::Kind::kTerminated &&
          container.state.exit_code == 0) {
        continue;
      }
      if (found && !is_main) continue;
      auto failure = ObserveFailure(container, is_main);
      if (!failure || (found_main && failure->at >= found->at)) continue;
      found = std::move(failure);
      found_main = is_main;
    }
  }
  return found;
}

std::optional<job::Deletion> ObserveDeletion(const kube::ObjectMeta& meta) {
  if (!meta.deletion_time) return std::nullopt;
  const absl::Duration grace = absl::Seconds(meta.deletion_grace_seconds.value_or(0));
  return job::Deletion{.asked = *meta.deletion_time - grace, .due = *meta.deletion_time};
}

// What kubelets call it when a container cannot be made.
constexpr std::array<std::string_view, 8> kCreationErrors = {
    "CreateContainerConfigError", "CreateContainerError", "ImagePullBackOff",
    "ImageInspectError",          "ErrImagePull",         "ErrImageNeverPull",
    "RegistryUnavailable",        "InvalidImageName"};

std::string ObserveCreationError(const kube::CompactPod& pod) {
  if (pod.node.empty()) return "";
  for (const auto* list : {&pod.init_containers, &pod.containers}) {
    for (const ContainerStatus& container : *list) {
      if (container.state.kind != ContainerState::Kind::kWaiting) continue;
      const std::string_view reason = container.state.reason;
      if (std::ranges::find(kCreationErrors, reason) == kCreationErrors.end()) continue;
      return StrCat(reason, container.state.message.empty() ? "" : ": ", container.state.message);
    }
  }
  return "";
}

// Why it does not run yet.
std::string ObserveWait(const kube::CompactPod& pod, const ContainerStatus* main) {
  if (pod.node.empty()) {
    if (pod.scheduled.status == kube::ConditionStatus::kFalse && !pod.scheduled.reason.empty()) {
      return std::string(pod.unscheduled.empty() ? pod.scheduled.reason.view() : pod.unscheduled.view());
    }
    return "not scheduled yet";
  }
  for (const ContainerStatus& init : pod.init_containers) {
    if (init.state.kind == ContainerState::Kind::kTerminated && init.state.exit_code == 0) continue;
    return StrCat("init container ", init.name.view(), init.state.reason.empty() ? "" : ": ",
                  init.state.reason.view());
  }
  if (main == nullptr || main->state.kind != ContainerState::Kind::kWaiting) return "";
  return std::string(main->state.reason.view());
}

// Nobody but us is to write it, and somebody may have.
int ObserveAttempt(const kube::CompactPod& pod) {
  const int attempt = ParseNumber<int>(pod.meta.annotations.Get(kAttemptAnnotation)).value_or(0);
  return attempt < 0 || attempt > job::kMostAttempts ? 0 : attempt;
}

// How those stand that do the work.
struct MainContainers {
  const ContainerStatus* first = nullptr;
  int running = 0;
  int waiting = 0;
  int failed = 0;
};

MainContainers FindMain(const kube::CompactPod& pod, const Kind& kind) {
  MainContainers main;
  for (const ContainerStatus& container : pod.containers) {
    if (!kind.IsMain(container.name)) continue;
    if (main.first == nullptr) main.first = &container;
    switch (container.state.kind) {
      case ContainerState::Kind::kRunning:
        ++main.running;
        break;
      case ContainerState::Kind::kWaiting:
        ++main.waiting;
        break;
      case ContainerState::Kind::kTerminated:
        main.failed += container.state.exit_code != 0 ? 1 : 0;
        break;
    }
  }
  return main;
}

absl::Time LastChange(const kube::CompactPod& pod) {
  absl::Time last = pod.meta.created;
  for (const std::optional<absl::Time>& time :
       {pod.start_time, pod.ready.since, pod.scheduled.since, pod.disruption.since}) {
    if (time) last = std::max(last, *time);
  }
  return last;
}

}  // namespace

NodeSight ObserveNode(const kube::CompactNode& node) {
  return {.health = node.IsReady() ? job::NodeHealth::kReady : job::NodeHealth::kNotReady,
          .since = node.ready.since};
}

job::PodView ObservePod(const kube::CompactPod& pod, Place place, const Kind& kind,
                        const FindNode& find_node) {
  job::PodView view{.name = pod.meta.name,
                    .uid = pod.meta.uid,
                    .role = std::move(place.role),
                    .index = place.index,
                    .attempt = ObserveAttempt(pod),
                    .owned = pod.meta.controller.has_value(),
                    .phase = ObservePhase(pod.phase),
                    .reason = std::string(pod.reason.view()),
                    .disrupted = pod.disruption.status == kube::ConditionStatus::kTrue,
                    .since = LastChange(pod),
                    .deletion = ObserveDeletion(pod.meta),
                    .stopped = !pod.meta.annotations.Get(kStoppedAnnotation).empty(),
                    .node = std::string(pod.node.view())};
  for (const ContainerStatus& container : pod.containers) view.restarts += container.restart_count;
  if (const std::string_view avoids = pod.meta.annotations.Get(kAvoidsAnnotation); !avoids.empty()) {
    for (const std::string_view node : Split(avoids, ',')) view.avoids.emplace_back(node);
  }
  view.end = FindFailure(pod, kind);
  const MainContainers main = FindMain(pod, kind);
  if (main.first != nullptr) {
    view.main_runs = pod.phase == kube::PodPhase::kRunning && main.running > 0 && main.waiting == 0;
    view.main_failed = pod.restart_policy == kube::PodRestartPolicy::kNever && main.failed > 0;
    const auto succeeded = [&](const ContainerState& state) {
      if (state.kind != ContainerState::Kind::kTerminated || state.exit_code != 0) return false;
      return !view.deletion || (state.finished && *state.finished < view.deletion->asked);
    };
    view.main_succeeded = std::ranges::all_of(pod.containers, [&](const ContainerStatus& container) {
      return !kind.IsMain(container.name) || succeeded(container.state) ||
             (container.last_termination && succeeded(*container.last_termination));
    });
  }
  if (!view.main_runs && !view.IsFinished()) view.waits = ObserveWait(pod, main.first);
  if (!view.IsFinished()) view.creation_error = ObserveCreationError(pod);
  if (!pod.node.empty()) {
    NodeSight node = find_node(pod);
    view.node_health = node.health;
    view.node_since = node.since;
    view.accelerator_trouble = std::move(node.accelerator_trouble);
    view.accelerator_since = node.trouble_since;
  }
  return view;
}

absl::StatusOr<MembersObject> ParseMembers(std::string json) {
  MembersObject members;
  TY_ASSIGN_OR_RETURN(const Document document, ParseJson(json));
  TY_ASSIGN_OR_RETURN(members.meta, kube::ParseObjectMeta(std::move(json)));
  members.text = StringAt(document, {"data", "members"});
  return members;
}

job::MembersView ObserveMembers(const MembersObject& members) {
  return {.uid = members.meta.uid,
          .version = members.meta.resource_version,
          .text = members.text,
          .owned = members.meta.controller.has_value(),
          .leaving = members.meta.deletion_time.has_value()};
}

job::ServiceView ObserveService(const ServiceMeta& service, Place place) {
  return {.name = service.meta.name,
          .uid = service.meta.uid,
          .role = std::move(place.role),
          .index = place.index,
          .owned = service.meta.controller.has_value(),
          .leaving = service.meta.deletion_time.has_value()};
}

}  // namespace trainyard::ops
