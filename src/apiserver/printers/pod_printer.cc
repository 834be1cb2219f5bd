// How a pod is shown: its STATUS is the most telling reason that its containers give.
#include "apiserver/printers/printers.h"
#include "base/rfc3339.h"
#include "base/text.h"

namespace trainyard::apiserver {
namespace {

const Array& StatusesAt(const Document& pod, std::string_view list) {
  static const Array none;
  const Array* found = ArrayAt(pod, {"status", list});
  return found != nullptr ? *found : none;
}

std::size_t SpecCount(const Document& pod, std::string_view list) {
  const Array* found = ArrayAt(pod, {"spec", list});
  return found != nullptr ? found->size() : 0;
}

std::string_view ConditionStatus(const Document& pod, std::string_view type) {
  for (const Document& condition : StatusesAt(pod, "conditions")) {
    if (StringAt(condition, {"type"}) == type) return StringAt(condition, {"status"});
  }
  return "";
}

// "Signal:9" or "ExitCode:1" of a container that ended without a reason.
std::string ExitOf(const Document& terminated) {
  const std::int64_t signal = IntAt(terminated, {"signal"}).value_or(0);
  if (signal != 0) return StrCat("Signal:", signal);
  return StrCat("ExitCode:", IntAt(terminated, {"exitCode"}).value_or(0));
}

std::string TerminatedReason(const Document& terminated) {
  const std::string_view reason = StringAt(terminated, {"reason"});
  return reason.empty() ? ExitOf(terminated) : std::string(reason);
}

// What the first init container that is not done says; empty if all are done.
std::string InitReason(const Document& pod) {
  const Array& statuses = StatusesAt(pod, "initContainerStatuses");
  for (std::size_t at = 0; at < statuses.size(); ++at) {
    const Document& status = statuses[at];
    const Document* terminated = Find(status, {"state", "terminated"});
    if (terminated != nullptr && IntAt(*terminated, {"exitCode"}) == 0) continue;
    if (terminated != nullptr) return StrCat("Init:", TerminatedReason(*terminated));
    const std::string_view waiting = StringAt(status, {"state", "waiting", "reason"});
    if (!waiting.empty() && waiting != "PodInitializing") return StrCat("Init:", waiting);
    return StrCat("Init:", at, "/", SpecCount(pod, "initContainers"));
  }
  return "";
}

// What the containers say, the first of them having the last word.
std::string ContainerReason(const Document& pod, std::string reason) {
  const Array& statuses = StatusesAt(pod, "containerStatuses");
  bool runs = false;
  for (std::size_t at = statuses.size(); at-- > 0;) {
    const Document& status = statuses[at];
    const std::string_view waiting = StringAt(status, {"state", "waiting", "reason"});
    if (!waiting.empty()) {
      reason = waiting;
    } else if (const Document* terminated = Find(status, {"state", "terminated"})) {
      reason = TerminatedReason(*terminated);
    } else if (BoolAt(status, {"ready"}) && Find(status, {"state", "running"}) != nullptr) {
      runs = true;
    }
  }
  // One has ended well, another runs on.
  if (reason == "Completed" && runs)
    reason = ConditionStatus(pod, "Ready") == "True" ? "Running" : "NotReady";
  return reason;
}

std::string PodStatusOf(const Document& pod) {
  std::string reason(StringAt(pod, {"status", "phase"}));
  if (const std::string_view given = StringAt(pod, {"status", "reason"}); !given.empty()) reason = given;
  for (const Document& condition : StatusesAt(pod, "conditions")) {
    if (StringAt(condition, {"type"}) == "PodScheduled" &&
        StringAt(condition, {"reason"}) == "SchedulingGated") {
      reason = "SchedulingGated";
    }
  }
  const std::string init = InitReason(pod);
  const bool initialized = init.empty() || ConditionStatus(pod, "Initialized") == "True";
  reason = initialized ? ContainerReason(pod, std::move(reason)) : init;
  if (Find(pod, {"metadata", "deletionTimestamp"}) == nullptr) return reason;
  return StringAt(pod, {"status", "reason"}) == "NodeLost" ? "Unknown" : "Terminating";
}

// "3 (5m ago)"
std::string Restarts(const Document& pod, absl::Time now) {
  std::int64_t count = 0;
  absl::Time last = absl::InfinitePast();
  for (const std::string_view list : {"initContainerStatuses", "containerStatuses"}) {
    for (const Document& status : StatusesAt(pod, list)) {
      count += IntAt(status, {"restartCount"}).value_or(0);
      const auto finished = ParseTime(StringAt(status, {"lastState", "terminated", "finishedAt"}));
      if (finished.ok()) last = std::max(last, *finished);
    }
  }
  if (count == 0 || last == absl::InfinitePast()) return std::to_string(count);
  return StrCat(count, " (", PrintAge(now - last), " ago)");
}

std::string ReadinessGates(const Document& pod) {
  const Array* gates = ArrayAt(pod, {"spec", "readinessGates"});
  if (gates == nullptr || gates->empty()) return "<none>";
  std::size_t met = 0;
  for (const Document& gate : *gates)
    met += ConditionStatus(pod, StringAt(gate, {"conditionType"})) == "True" ? 1 : 0;
  return StrCat(met, "/", gates->size());
}

Array PodCells(const Document& pod, absl::Time now) {
  std::size_t ready = 0;
  for (const Document& status : StatusesAt(pod, "containerStatuses")) {
    const bool runs = BoolAt(status, {"ready"}) && Find(status, {"state", "running"}) != nullptr;
    ready += runs ? 1 : 0;
  }
  return {StringAt(pod, {"metadata", "name"}),
          StrCat(ready, "/", SpecCount(pod, "containers")),
          PodStatusOf(pod),
          Restarts(pod, now),
          PrintAgeOf(pod, now),
          StringAt(pod, {"status", "podIP"}, "<none>"),
          StringAt(pod, {"spec", "nodeName"}, "<none>"),
          StringAt(pod, {"status", "nominatedNodeName"}, "<none>"),
          ReadinessGates(pod)};
}

}  // namespace

const Printer& PodPrinter() {
  static const Printer printer{
      .columns =
          {NameColumn(),
           {.name = "Ready", .description = "Containers that are ready, of all."},
           {.name = "Status", .description = "What the pod does, or why it does not."},
           {.name = "Restarts", .description = "How often containers were started again, and when last."},
           AgeColumn(),
           {.name = "IP", .description = "The pod's address.", .priority = 1},
           {.name = "Node", .description = "Where it runs.", .priority = 1},
           {.name = "Nominated Node", .description = "Where room is being made for it.", .priority = 1},
           {.name = "Readiness Gates",
            .description = "Conditions of others that are met, of all.",
            .priority = 1}},
      .cells = PodCells};
  return printer;
}

}  // namespace trainyard::apiserver
