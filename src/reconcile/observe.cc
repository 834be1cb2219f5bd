#include "reconcile/observe.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "job/members.h"
#include "job/names.h"
#include "reconcile/labels.h"

namespace trainyard::reconcile {
namespace {

using kube::ContainerState;
using kube::ContainerStatus;

bool HasEnded(const ContainerStatus& container) {
  return container.state.kind == ContainerState::Kind::kTerminated;
}

// A kubelet reports how containers ended before it reports the phase that follows from their ends.
job::Phase ObservePhase(const kube::CompactPod& pod) {
  if (pod.phase == kube::PodPhase::kRunning && !pod.IsBeingDeleted() && !pod.containers.empty() &&
      std::ranges::all_of(pod.containers, HasEnded)) {
    const bool failed = std::ranges::any_of(
        pod.containers, [](const ContainerStatus& container) { return container.state.exit_code != 0; });
    if (failed && pod.restart_policy == kube::PodRestartPolicy::kNever) return job::Phase::kFailed;
    if (!failed && pod.restart_policy != kube::PodRestartPolicy::kAlways) return job::Phase::kSucceeded;
  }
  switch (pod.phase) {
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
std::optional<job::ContainerEnd> FindFailure(const kube::CompactPod& pod, job::Phase phase,
                                             const Kind& kind) {
  std::optional<job::ContainerEnd> found;
  bool found_main = false;
  for (const auto* list : {&pod.containers, &pod.init_containers}) {
    for (const ContainerStatus& container : *list) {
      const bool is_main = list == &pod.containers && kind.IsMain(container.name);
      // Of a pod that failed, whoever ended with 0 at last is not to blame.
      if (phase == job::Phase::kFailed && HasEnded(container) && container.state.exit_code == 0) continue;
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

// Whether the container that was started again last had ended with 0.
bool FollowedSuccess(const kube::CompactPod& pod) {
  const ContainerState* last = nullptr;
  for (const ContainerStatus& container : pod.containers) {
    if (container.restart_count == 0 || !container.last_termination) continue;
    if (last == nullptr || last->finished < container.last_termination->finished)
      last = &*container.last_termination;
  }
  return last != nullptr && last->exit_code == 0;
}

// When the kubelet starts a container again that it holds back: it says for how long after the last end.
std::optional<absl::Time> ObserveBackOff(const ContainerStatus& container) {
  constexpr std::string_view kSays = "back-off ";
  std::string_view message = container.state.message;
  if (container.state.reason != std::string_view("CrashLoopBackOff") || !message.starts_with(kSays) ||
      !container.last_termination || !container.last_termination->finished) {
    return std::nullopt;
  }
  message.remove_prefix(kSays.size());
  absl::Duration wait;
  if (!absl::ParseDuration(std::string(message.substr(0, message.find(' '))), &wait)) return std::nullopt;
  return *container.last_termination->finished + wait;
}

// Nobody but us is to write it, and somebody may have.
int ObserveAttempt(const kube::CompactPod& pod) {
  const int attempt = ParseNumber<int>(pod.meta.annotations.Get(job::kAttemptAnnotation)).value_or(0);
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
                    .phase = ObservePhase(pod),
                    .reason = std::string(pod.reason.view()),
                    .disrupted = pod.disruption.status == kube::ConditionStatus::kTrue,
                    .since = LastChange(pod),
                    .deletion = ObserveDeletion(pod.meta),
                    .stopped = !pod.meta.annotations.Get(kStoppedAnnotation).empty(),
                    .fenced = !pod.meta.annotations.Get(kFencedAnnotation).empty(),
                    .node = std::string(pod.node.view())};
  view.gated = std::ranges::find(pod.scheduling_gates, kGangGate, &kube::SharedText::view) !=
               pod.scheduling_gates.end();
  for (const ContainerStatus& container : pod.containers) view.restarts += container.restart_count;
  view.restarted_after_success = view.restarts > 0 && FollowedSuccess(pod);
  if (const std::string_view avoids = pod.meta.annotations.Get(kAvoidsAnnotation); !avoids.empty()) {
    for (const std::string_view node : Split(avoids, ',')) view.avoids.emplace_back(node);
  }
  view.end = FindFailure(pod, view.phase, kind);
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
  if (!view.main_runs && !view.IsFinished()) {
    view.waits = ObserveWait(pod, main.first);
    if (main.first != nullptr) view.resumes = ObserveBackOff(*main.first);
  }
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

absl::StatusOr<ConfigMapObject> ParseConfigMap(std::string json) {
  ConfigMapObject config_map;
  TY_ASSIGN_OR_RETURN(const Document document, ParseJson(json));
  TY_ASSIGN_OR_RETURN(config_map.meta, kube::ParseObjectMeta(std::move(json)));
  const Object* data = ObjectAt(document, {"data"});
  if (data == nullptr) return config_map;
  const Document* members = data->if_contains(kMembersKey);
  config_map.text = members == nullptr ? FingerprintOf(*data) : std::string(Text(*members));
  return config_map;
}

job::ConfigMapView ObserveConfigMap(const ConfigMapObject& config_map) {
  return {.name = config_map.meta.name,
          .uid = config_map.meta.uid,
          .version = config_map.meta.resource_version,
          .text = config_map.text,
          .owned = config_map.meta.controller.has_value(),
          .leaving = config_map.meta.deletion_time.has_value()};
}

const kube::Resource& PodGroupsOf(job::GangScheduler gang) {
  static const auto* const volcano = new kube::Resource{
      .group = "scheduling.volcano.sh", .version = "v1beta1", .plural = "podgroups", .kind = "PodGroup"};
  return gang == job::GangScheduler::kVolcano ? *volcano : kube::Resource::PodGroups();
}

std::string FingerprintOf(const Object& data) {
  std::map<std::string_view, std::string_view> sorted;
  for (const auto& member : data) sorted.emplace(Key(member), Text(member.value()));
  std::string all;
  for (const auto& [key, value] : sorted) StrAppend(all, key, "=", value, "\n");
  return job::Fingerprint(all);
}

absl::StatusOr<CompactService> ParseService(std::string json, const kube::MetaOptions& kept) {
  CompactService service;
  TY_ASSIGN_OR_RETURN(const Document document, ParseJson(json));
  TY_ASSIGN_OR_RETURN(service.meta, kube::ParseObjectMeta(std::move(json), kept));
  const Object* selector = ObjectAt(document, {"spec", "selector"});
  const Document* labels = Find(document, {"metadata", "labels"});
  service.selects_by_its_labels = selector != nullptr && labels != nullptr && !selector->empty();
  if (selector != nullptr && labels != nullptr) {
    for (const auto& member : *selector)
      service.selects_by_its_labels &= StringAt(*labels, {Key(member)}) == Text(member.value());
    service.selector_size = selector->size();
  }
  if (const Array* ports = ArrayAt(document, {"spec", "ports"})) {
    for (const Document& port : *ports) {
      const std::int64_t number = IntAt(port, {"port"}).value_or(0);
      const bool same =
          IntAt(port, {"targetPort"}).value_or(number) == number && StringAt(port, {"targetPort"}).empty();
      service.ports.push_back(same ? static_cast<int>(number) : 0);
    }
  }
  return service;
}

job::ServiceView ObserveService(const CompactService& service, Place place) {
  return {.name = service.meta.name,
          .uid = service.meta.uid,
          .role = std::move(place.role),
          .index = place.index,
          .owned = service.meta.controller.has_value(),
          .leaving = service.meta.deletion_time.has_value()};
}

}  // namespace trainyard::reconcile
