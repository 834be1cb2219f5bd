#include "node/pod_status.h"

#include <algorithm>

#include "base/json.h"
#include "base/rfc3339.h"

namespace trainyard::node {
namespace {

std::string TextAt(const Document& object, Path path) { return std::string(StringAt(object, path)); }

absl::Time TimeAt(const Document& object, Path path) {
  const auto time = ParseTime(StringAt(object, path));
  return time.ok() ? *time : absl::UnixEpoch();
}

Terminated ParseTerminated(const Document& state) {
  return {.exit_code = static_cast<int>(IntAt(state, {"exitCode"}).value_or(0)),
          .signal = static_cast<int>(IntAt(state, {"signal"}).value_or(0)),
          .reason = TextAt(state, {"reason"}),
          .message = TextAt(state, {"message"}),
          .started_at = TimeAt(state, {"startedAt"}),
          .finished_at = TimeAt(state, {"finishedAt"}),
          .container_id = TextAt(state, {"containerID"})};
}

ContainerState ParseState(const Document& status) {
  if (const Document* running = Find(status, {"state", "running"})) {
    return Running{.started_at = TimeAt(*running, {"startedAt"})};
  }
  if (const Document* ended = Find(status, {"state", "terminated"})) return ParseTerminated(*ended);
  return Waiting{.reason = TextAt(status, {"state", "waiting", "reason"}),
                 .message = TextAt(status, {"state", "waiting", "message"})};
}

std::vector<ContainerStatus> ParseContainers(const Document& pod, std::string_view key) {
  std::vector<ContainerStatus> out;
  const Array* list = ArrayAt(pod, {"status", key});
  if (list == nullptr) return out;
  for (const Document& item : *list) {
    ContainerStatus& status = out.emplace_back();
    status.name = TextAt(item, {"name"});
    status.image = TextAt(item, {"image"});
    status.container_id = TextAt(item, {"containerID"});
    status.state = ParseState(item);
    if (const Document* last = Find(item, {"lastState", "terminated"})) status.last = ParseTerminated(*last);
    status.ready = BoolAt(item, {"ready"});
    status.started = BoolAt(item, {"started"});
    status.restarts = static_cast<int>(IntAt(item, {"restartCount"}).value_or(0));
  }
  return out;
}

Phase ParsePhase(std::string_view text) {
  for (const Phase phase : {Phase::kRunning, Phase::kSucceeded, Phase::kFailed}) {
    if (text == PrintPhase(phase)) return phase;
  }
  return Phase::kPending;
}

// A text, or null where it is empty.
// What a process wrote may be anything; what an object holds is text.
Document TextOrNull(std::string_view text) {
  return text.empty() ? Document(nullptr) : Document(ToUtf8(text));
}

void PutText(Object& object, std::string_view key, std::string_view text) {
  if (!text.empty()) object[key] = ToUtf8(text);
}

Document ToDocument(const Terminated& ended) {
  Object object{{"exitCode", ended.exit_code}};
  if (ended.signal != 0) object["signal"] = ended.signal;
  PutText(object, "reason", ended.reason);
  PutText(object, "message", ended.message);
  object["startedAt"] = PrintTime(ended.started_at);
  object["finishedAt"] = PrintTime(ended.finished_at);
  PutText(object, "containerID", ended.container_id);
  return object;
}

Document StateToDocument(const ContainerState& state) {
  if (const auto* running = std::get_if<Running>(&state)) {
    return Object{{"running", Object{{"startedAt", PrintTime(running->started_at)}}}};
  }
  if (const auto* ended = std::get_if<Terminated>(&state)) return Object{{"terminated", ToDocument(*ended)}};
  Object waiting;
  PutText(waiting, "reason", std::get<Waiting>(state).reason);
  PutText(waiting, "message", std::get<Waiting>(state).message);
  return Object{{"waiting", std::move(waiting)}};
}

Document ToDocument(const std::vector<ContainerStatus>& containers) {
  Array list;
  for (const ContainerStatus& status : containers) {
    Object object{{"name", status.name}, {"state", StateToDocument(status.state)}};
    object["lastState"] = status.last ? Document(Object{{"terminated", ToDocument(*status.last)}}) : Object();
    object["ready"] = status.ready;
    object["restartCount"] = status.restarts;
    object["image"] = status.image;
    object["imageID"] = "";
    PutText(object, "containerID", status.container_id);
    object["started"] = status.started;
    list.emplace_back(std::move(object));
  }
  return list;
}

Document ToDocument(const std::vector<Condition>& conditions) {
  Array list;
  for (const Condition& condition : conditions) {
    Object object{{"type", condition.type}, {"status", condition.status ? "True" : "False"}};
    object["lastProbeTime"] = nullptr;
    object["lastTransitionTime"] = PrintTime(condition.since);
    object["reason"] = TextOrNull(condition.reason);
    object["message"] = TextOrNull(condition.message);
    list.emplace_back(std::move(object));
  }
  return list;
}

}  // namespace

std::string_view PrintPhase(Phase phase) {
  switch (phase) {
    case Phase::kPending:
      return "Pending";
    case Phase::kRunning:
      return "Running";
    case Phase::kSucceeded:
      return "Succeeded";
    case Phase::kFailed:
      return "Failed";
  }
  return "Pending";
}

const ContainerStatus* PodStatus::FindContainer(std::string_view name) const {
  for (const auto* list : {&containers, &init_containers}) {
    for (const ContainerStatus& status : *list) {
      if (status.name == name) return &status;
    }
  }
  return nullptr;
}

const Condition* PodStatus::FindCondition(std::string_view type) const {
  const auto found = std::ranges::find(conditions, type, &Condition::type);
  return found == conditions.end() ? nullptr : &*found;
}

PodStatus ParsePodStatus(const Document& pod) {
  PodStatus status{.phase = ParsePhase(StringAt(pod, {"status", "phase"})),
                   .reason = TextAt(pod, {"status", "reason"}),
                   .message = TextAt(pod, {"status", "message"}),
                   .host_ip = TextAt(pod, {"status", "hostIP"}),
                   .pod_ip = TextAt(pod, {"status", "podIP"}),
                   .qos = TextAt(pod, {"status", "qosClass"})};
  if (!StringAt(pod, {"status", "startTime"}).empty())
    status.start_time = TimeAt(pod, {"status", "startTime"});
  status.init_containers = ParseContainers(pod, "initContainerStatuses");
  status.containers = ParseContainers(pod, "containerStatuses");
  if (const Array* conditions = ArrayAt(pod, {"status", "conditions"})) {
    for (const Document& item : *conditions) {
      status.conditions.push_back({.type = TextAt(item, {"type"}),
                                   .status = StringAt(item, {"status"}) == "True",
                                   .reason = TextAt(item, {"reason"}),
                                   .message = TextAt(item, {"message"}),
                                   .since = TimeAt(item, {"lastTransitionTime"})});
    }
  }
  return status;
}

Document ToDocument(const PodStatus& status) {
  Object object{{"phase", PrintPhase(status.phase)}, {"conditions", ToDocument(status.conditions)}};
  object["reason"] = TextOrNull(status.reason);
  object["message"] = TextOrNull(status.message);
  PutText(object, "hostIP", status.host_ip);
  PutText(object, "podIP", status.pod_ip);
  if (!status.pod_ip.empty()) object["podIPs"] = Array{Object{{"ip", status.pod_ip}}};
  if (status.start_time) object["startTime"] = PrintTime(*status.start_time);
  if (!status.init_containers.empty()) object["initContainerStatuses"] = ToDocument(status.init_containers);
  object["containerStatuses"] = ToDocument(status.containers);
  PutText(object, "qosClass", status.qos);
  return object;
}

}  // namespace trainyard::node
