// The status of a pod, from what is known of its processes.
#include <algorithm>
#include <array>

#include "base/text.h"
#include "node/pod_plan.h"
#include "node/pod_rules.h"

namespace trainyard::node {
namespace {

std::string ContainerId(const PodView& view, std::string_view name, int attempt) {
  return StrCat("trainyard://", view.spec.uid, "/", RunId(name, attempt));
}

Terminated ToTerminated(const PodView& view, const ContainerSpec& spec, const Run& run) {
  return {.exit_code = run.end->code,
          .signal = run.end->signal,
          .reason = run.end->reason,
          .message = run.end->message,
          .started_at = run.started_at,
          .finished_at = run.end->at,
          .container_id = ContainerId(view, spec.name, run.attempt)};
}

Waiting DescribeWaiting(const PodView& view, const ContainerSpec& spec, const ContainerRecord& record) {
  if (const auto problem = view.problems.find(spec.name); problem != view.problems.end()) {
    return {.reason = problem->second.reason, .message = problem->second.message};
  }
  if (record.state == RunState::kEnded) {
    const absl::Duration delay = RestartDelay(view.back_off, record.short_runs);
    return {.reason = "CrashLoopBackOff",
            .message =
                StrCat("back-off ", absl::FormatDuration(delay), " restarting failed container=", spec.name,
                       " pod=", view.spec.name, "_", view.spec.ns, "(", view.spec.uid, ")")};
  }
  const bool initializing = !view.spec.init_containers.empty() && record.run.attempt < 0;
  return {.reason = initializing ? "PodInitializing" : "ContainerCreating"};
}

bool IsStarted(const ContainerSpec& spec, const ContainerRecord& record) {
  if (record.state != RunState::kRunning) return false;
  if (spec.post_start && record.post_start != HookState::kDone) return false;
  return !spec.startup || record.probe(ProbeKind::kStartup).verdict == ProbeRecord::Verdict::kSuccess;
}

bool IsReady(const ContainerSpec& spec, const ContainerRecord& record) {
  if (!IsStarted(spec, record) || record.stop) return false;
  return !spec.readiness || record.probe(ProbeKind::kReadiness).verdict == ProbeRecord::Verdict::kSuccess;
}

ContainerStatus DescribeContainer(const PodView& view, const ContainerSpec& spec,
                                  const ContainerRecord& record, bool init) {
  ContainerStatus status{.name = spec.name, .image = spec.image};
  status.restarts = std::max(record.run.attempt, 0);
  if (record.run.attempt >= 0) status.container_id = ContainerId(view, spec.name, record.run.attempt);
  if (record.previous && record.previous->end) status.last = ToTerminated(view, spec, *record.previous);
  status.started = IsStarted(spec, record);
  status.ready = !init && IsReady(spec, record);
  switch (record.state) {
    case RunState::kNone:
    case RunState::kStarting:
      status.state = DescribeWaiting(view, spec, record);
      break;
    case RunState::kRunning:
      status.state = Running{.started_at = record.run.started_at};
      break;
    case RunState::kEnded: {
      const bool waits = WillRestart(view, record, init) &&
                         (view.problems.contains(spec.name) ||
                          RestartDelay(view.back_off, record.short_runs) > absl::ZeroDuration());
      if (waits) {
        status.state = DescribeWaiting(view, spec, record);
        status.last = ToTerminated(view, spec, record.run);
      } else {
        status.state = ToTerminated(view, spec, record.run);
        if (init) status.ready = record.run.end->code == 0;
      }
      break;
    }
  }
  return status;
}

// ---- the phase

struct Tally {
  int waiting = 0;
  int running = 0;
  int stopped = 0;
  int succeeded = 0;
};

Tally CountStates(const std::vector<ContainerStatus>& containers) {
  Tally tally;
  for (const ContainerStatus& status : containers) {
    if (std::holds_alternative<Running>(status.state)) {
      ++tally.running;
    } else if (const auto* ended = std::get_if<Terminated>(&status.state)) {
      ++tally.stopped;
      if (ended->exit_code == 0) ++tally.succeeded;
    } else if (status.last) {
      ++tally.stopped;
    } else {
      ++tally.waiting;
    }
  }
  return tally;
}

// An init container that has not done its part keeps the pod pending, one that failed for good fails it.
std::optional<Phase> PhaseOfInit(const PodView& view, const std::vector<ContainerStatus>& containers) {
  for (const ContainerStatus& status : containers) {
    const auto* ended = std::get_if<Terminated>(&status.state);
    if (ended != nullptr && ended->exit_code == 0) continue;
    if (ended != nullptr && view.spec.restart_policy == RestartPolicy::kNever) return Phase::kFailed;
    return Phase::kPending;
  }
  return std::nullopt;
}

Phase PhaseOfContainers(const PodView& view, const std::vector<ContainerStatus>& containers) {
  const Tally tally = CountStates(containers);
  if (tally.waiting > 0) return Phase::kPending;
  if (tally.running > 0) return Phase::kRunning;
  if (view.spec.restart_policy == RestartPolicy::kAlways) return Phase::kRunning;
  if (tally.stopped == tally.succeeded) return Phase::kSucceeded;
  return view.spec.restart_policy == RestartPolicy::kNever ? Phase::kFailed : Phase::kRunning;
}

// A pod that was told to end, and has: by how its containers ended, whatever the restart policy.
Phase PhaseOfEnded(const PodStatus& status) {
  const Tally tally = CountStates(status.containers);
  if (tally.stopped == 0) return status.phase;
  return tally.waiting == 0 && tally.stopped == tally.succeeded ? Phase::kSucceeded : Phase::kFailed;
}

void DecidePhase(const PodView& view, PodStatus& status) {
  status.phase =
      PhaseOfInit(view, status.init_containers).value_or(PhaseOfContainers(view, status.containers));
  if (AnyActive(view.record)) {
    // Not before its last process has ended: somebody may start its successor then.
    if (status.terminal()) status.phase = Phase::kRunning;
    return;
  }
  if (!view.record.failure_reason.empty()) {
    status.phase = Phase::kFailed;
    status.reason = view.record.failure_reason;
    status.message = view.record.failure_message;
  } else if (view.spec.deleting || view.gone) {
    status.phase = PhaseOfEnded(status);
  }
}

// ---- conditions

std::string NamesOf(const std::vector<ContainerStatus>& containers) {
  std::string names;
  for (const ContainerStatus& status : containers) {
    if (!status.ready) StrAppend(names, names.empty() ? "" : " ", status.name);
  }
  return names;
}

Condition DescribeInitialized(const PodStatus& status) {
  if (status.phase == Phase::kSucceeded)
    return {.type = "Initialized", .status = true, .reason = "PodCompleted"};
  const std::string names = NamesOf(status.init_containers);
  if (names.empty()) return {.type = "Initialized", .status = true};
  return {.type = "Initialized",
          .reason = "ContainersNotInitialized",
          .message = StrCat("containers with incomplete status: [", names, "]")};
}

Condition DescribeContainersReady(const PodStatus& status) {
  if (status.phase == Phase::kSucceeded) return {.type = "ContainersReady", .reason = "PodCompleted"};
  if (status.phase == Phase::kFailed) return {.type = "ContainersReady", .reason = "PodFailed"};
  const std::string names = NamesOf(status.containers);
  if (names.empty()) return {.type = "ContainersReady", .status = true};
  return {.type = "ContainersReady",
          .reason = "ContainersNotReady",
          .message = StrCat("containers with unready status: [", names, "]")};
}

Condition DescribeReady(const PodView& view, const Condition& containers_ready) {
  Condition ready = containers_ready;
  ready.type = "Ready";
  if (!ready.status) return ready;
  for (const std::string& gate : view.spec.readiness_gates) {
    const Condition* condition = view.status.FindCondition(gate);
    if (condition != nullptr && condition->status) continue;
    ready.status = false;
    ready.reason = "ReadinessGatesNotReady";
    StrAppend(ready.message, ready.message.empty() ? "" : ", ");
    if (condition == nullptr) {
      StrAppend(ready.message, "corresponding condition of pod readiness gate \"", gate,
                "\" does not exist.");
    } else {
      StrAppend(ready.message, "the status of pod readiness gate \"", gate, "\" is not \"True\", but False");
    }
  }
  return ready;
}

void DescribeConditions(const PodView& view, PlanTime now, PodStatus& status) {
  const Condition containers_ready = DescribeContainersReady(status);
  status.conditions = {DescribeInitialized(status),
                       DescribeReady(view, containers_ready),
                       containers_ready,
                       {.type = "PodScheduled", .status = true}};
  for (Condition& condition : status.conditions) {
    const Condition* before = view.status.FindCondition(condition.type);
    const bool same = before != nullptr && before->status == condition.status;
    condition.since = same ? before->since : WholeSeconds(now.wall);
  }
}

}  // namespace

PodStatus DescribePod(const PodView& view, PlanTime now) {
  PodStatus status{
      .host_ip = view.host_ip, .pod_ip = view.pod_ip, .qos = std::string(PrintQos(FindQos(view.spec)))};
  status.start_time = view.record.start_time;
  for (std::size_t i = 0; i < view.spec.init_containers.size(); ++i) {
    status.init_containers.push_back(
        DescribeContainer(view, view.spec.init_containers[i], view.record.init_containers[i], true));
  }
  for (std::size_t i = 0; i < view.spec.containers.size(); ++i) {
    status.containers.push_back(
        DescribeContainer(view, view.spec.containers[i], view.record.containers[i], false));
  }
  DecidePhase(view, status);
  // A pod that is refused has no containers, not some that will be made.
  if (status.reason == kRefused) {
    status.init_containers.clear();
    status.containers.clear();
  }
  if (view.status.terminal()) {
    status.phase = view.status.phase;
    status.reason = view.status.reason;
    status.message = view.status.message;
  }
  DescribeConditions(view, now, status);
  return status;
}

}  // namespace trainyard::node
