#include "node/pod_record.h"

#include <signal.h>

#include "base/text.h"

namespace trainyard::node {
namespace {

template <typename F>
void ForEachContainer(PodRecord& record, const PodSpec& spec, F&& each) {
  for (std::size_t i = 0; i < spec.init_containers.size(); ++i) {
    each(spec.init_containers[i], record.init_containers[i]);
  }
  for (std::size_t i = 0; i < spec.containers.size(); ++i) each(spec.containers[i], record.containers[i]);
}

// A point of wall time in the past, as steady time has it.
SteadyTime ToSteady(absl::Time at, PlanTime now) {
  const absl::Duration ago = std::max(now.wall - at, absl::ZeroDuration());
  return SteadyTime::FromNanos(now.steady.nanos() - absl::ToInt64Nanoseconds(ago));
}

RunEnd ToRunEnd(const Terminated& ended, PlanTime now) {
  return {.at = ended.finished_at,
          .seen = ToSteady(ended.finished_at, now),
          .code = ended.exit_code,
          .signal = ended.signal,
          .reason = ended.reason,
          .message = ended.message};
}

void TakeOverForgotten(ContainerRecord& container, const ContainerStatus& status, PlanTime now) {
  const auto* ended = std::get_if<Terminated>(&status.state);
  if (ended == nullptr && status.last) ended = &*status.last;
  const auto* running = std::get_if<Running>(&status.state);
  if (ended == nullptr && running == nullptr) return;
  container.state = RunState::kEnded;
  container.run.attempt = status.restarts;
  container.announced = status.restarts;
  container.short_runs = 1;
  if (running != nullptr) {
    container.run.started_at = running->started_at;
    container.run.end = EndUnknown(now.wall, now.steady);
    return;
  }
  container.run.started_at = ended->started_at;
  container.run.end = ToRunEnd(*ended, now);
}

}  // namespace

std::string_view PrintProbeKind(ProbeKind kind) {
  switch (kind) {
    case ProbeKind::kStartup:
      return "Startup";
    case ProbeKind::kLiveness:
      return "Liveness";
    case ProbeKind::kReadiness:
      return "Readiness";
  }
  return "?";
}

const std::optional<ProbeSpec>& ProbeOf(const ContainerSpec& container, ProbeKind kind) {
  switch (kind) {
    case ProbeKind::kStartup:
      return container.startup;
    case ProbeKind::kLiveness:
      return container.liveness;
    case ProbeKind::kReadiness:
      return container.readiness;
  }
  return container.readiness;
}

ContainerRecord* PodRecord::Find(const PodSpec& spec, std::string_view container) {
  ContainerRecord* found = nullptr;
  ForEachContainer(*this, spec, [&](const ContainerSpec& one, ContainerRecord& record) {
    if (one.name == container) found = &record;
  });
  return found;
}

void NoteStarted(ContainerRecord& container, int attempt, absl::Time at, PlanTime now) {
  if (container.run.attempt != attempt || container.state != RunState::kStarting) return;
  container.state = RunState::kRunning;
  container.run.started_at = WholeSeconds(at);
  container.run.started = ToSteady(at, now);
}

void NoteEnded(ContainerRecord& container, int attempt, RunEnd end, absl::Duration reset) {
  if (container.run.attempt != attempt || !container.active()) return;
  const bool ran = container.state == RunState::kRunning;
  if (!ran) {
    container.run.started_at = end.at;
    container.run.started = end.seen;
  }
  const bool long_run = ran && end.seen - container.run.started >= reset;
  container.short_runs = long_run ? 1 : container.short_runs + 1;
  container.run.end = std::move(end);
  container.state = RunState::kEnded;
}

void NoteProbe(ContainerRecord& container, ProbeKind kind, const ProbeSpec& spec, bool ok) {
  ProbeRecord& probe = container.probe(kind);
  if (!probe.running) return;
  probe.running = false;
  probe.in_a_row = probe.made > 0 && probe.last_ok == ok ? probe.in_a_row + 1 : 1;
  probe.last_ok = ok;
  probe.ever_ok = probe.ever_ok || ok;
  ++probe.made;
  if (probe.in_a_row < (ok ? spec.success_threshold : spec.failure_threshold)) return;
  probe.verdict = ok ? ProbeRecord::Verdict::kSuccess : ProbeRecord::Verdict::kFailure;
}

void NoteHook(ContainerRecord& container, HookKind hook, bool ok) {
  HookState& state = hook == HookKind::kPostStart ? container.post_start : container.pre_stop;
  if (state == HookState::kRunning) state = ok ? HookState::kDone : HookState::kFailed;
}

void NoteSandboxReady(PodRecord& pod) {
  if (pod.sandbox.state == SandboxState::kStarting) pod.sandbox = {.state = SandboxState::kReady};
}

void NoteSandboxFailed(PodRecord& pod, std::string error, PlanTime now) {
  if (pod.sandbox.state != SandboxState::kStarting) return;
  pod.sandbox.state = SandboxState::kFailed;
  pod.sandbox.failed = now.steady;
  pod.sandbox.error = std::move(error);
  ++pod.sandbox.failures;
}

void NoteSandboxGone(PodRecord& pod, PlanTime now, absl::Duration reset) {
  for (auto* list : {&pod.init_containers, &pod.containers}) {
    for (ContainerRecord& container : *list) {
      NoteEnded(container, container.run.attempt, EndUnknown(now.wall, now.steady), reset);
    }
  }
  const bool asked = pod.sandbox.state == SandboxState::kStopping;
  pod.sandbox = {.state = asked ? SandboxState::kStopped : SandboxState::kNone};
}

RunEnd EndOfExit(int code, absl::Time at, SteadyTime seen) {
  return {.at = WholeSeconds(at), .seen = seen, .code = code, .reason = code == 0 ? "Completed" : "Error"};
}

RunEnd EndOfSignal(int signal, bool oom, absl::Time at, SteadyTime seen) {
  return {.at = WholeSeconds(at),
          .seen = seen,
          .code = 128 + signal,
          .signal = signal,
          .reason = oom && signal == SIGKILL ? "OOMKilled" : "Error"};
}

RunEnd EndOfFailedStart(std::string error, absl::Time at, SteadyTime seen) {
  return {
      .at = WholeSeconds(at), .seen = seen, .code = 128, .reason = "StartError", .message = std::move(error)};
}

RunEnd EndUnknown(absl::Time at, SteadyTime seen) {
  return {.at = WholeSeconds(at),
          .seen = seen,
          .code = 128 + SIGKILL,
          .signal = SIGKILL,
          .reason = "ContainerStatusUnknown",
          .message = "the process ended together with the shim that ran it"};
}

std::string RunId(std::string_view container, int attempt) { return StrCat(container, ".", attempt); }

std::optional<RunName> ParseRunId(std::string_view id) {
  const std::size_t dot = id.rfind('.');
  if (dot == std::string_view::npos || dot == 0) return std::nullopt;
  const auto attempt = ParseNumber<int>(id.substr(dot + 1));
  if (!attempt || *attempt < 0) return std::nullopt;
  return RunName{.container = id.substr(0, dot), .attempt = *attempt};
}

PodRecord NewRecord(const PodSpec& spec) {
  PodRecord record;
  record.init_containers.resize(spec.init_containers.size());
  record.containers.resize(spec.containers.size());
  return record;
}

void TakeOverStatus(PodRecord& record, const PodSpec& spec, const PodStatus& status, PlanTime now) {
  if (status.start_time) {
    record.start_time = status.start_time;
    record.started = ToSteady(*status.start_time, now);
  }
  ForEachContainer(record, spec, [&](const ContainerSpec& one, ContainerRecord& container) {
    const ContainerStatus* known = status.FindContainer(one.name);
    if (known == nullptr) return;
    if (container.state == RunState::kNone) return TakeOverForgotten(container, *known, now);
    if (container.state != RunState::kRunning) return;
    container.post_start = HookState::kDone;
    using Verdict = ProbeRecord::Verdict;
    if (known->started) container.probe(ProbeKind::kStartup).verdict = Verdict::kSuccess;
    ProbeRecord& readiness = container.probe(ProbeKind::kReadiness);
    readiness.ever_ok = known->ready;
    if (known->ready) readiness.verdict = Verdict::kSuccess;
  });
}

}  // namespace trainyard::node
