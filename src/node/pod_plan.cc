#include "node/pod_plan.h"

#include <signal.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "node/pod_rules.h"

namespace trainyard::node {
namespace {

// However short the grace, a process whose hook took all of it has this long between SIGTERM and SIGKILL.
constexpr absl::Duration kLeastGraceAfterHook = absl::Seconds(2);
// A container that never was ready is asked more often than its period says: nobody waits ten seconds for a
// server that took one to start.
constexpr absl::Duration kEagerProbe = absl::Milliseconds(100);
constexpr BackOffPolicy kSandboxBackOff{.first = absl::Milliseconds(200), .most = absl::Seconds(30)};

class Planner {
 public:
  Planner(PodView view, PlanTime now) : view_(std::move(view)), now_(now) {}

  PodPlan Plan() {
    NotePodStart();
    AnnounceAll();
    NoteEndings();
    if (EndIsWanted(view_)) {
      StopAll();
    } else {
      Advance();
    }
    Settle();
    plan_.status = DescribePod(view_, now_);
    plan_.record = std::move(view_.record);
    return std::move(plan_);
  }

 private:
  PodRecord& record() { return view_.record; }
  const PodSpec& spec() const { return view_.spec; }

  void Wake(SteadyTime at) { plan_.wake = std::min(plan_.wake, at); }
  void Tell(bool warning, std::string_view reason, std::string message, std::string_view container = "") {
    plan_.events.push_back({.warning = warning,
                            .reason = std::string(reason),
                            .message = std::move(message),
                            .container = std::string(container)});
  }
  // The same only once, until something else is told.
  void TellOnce(std::string& told, EventNote note) {
    if (told == note.message) return;
    told = note.message;
    plan_.events.push_back(std::move(note));
  }

  void NotePodStart() {
    if (record().start_time) return;
    record().start_time = WholeSeconds(now_.wall);
    record().started = now_.steady;
  }

  void AnnounceAll() {
    for (std::size_t i = 0; i < spec().init_containers.size(); ++i) {
      Announce(spec().init_containers[i], record().init_containers[i]);
    }
    for (std::size_t i = 0; i < spec().containers.size(); ++i) {
      Announce(spec().containers[i], record().containers[i]);
    }
  }

  // What ends the pod as a whole.
  void NoteEndings() {
    if ((spec().deleting || view_.gone) && !record().deletion_seen) record().deletion_seen = now_.steady;
    if (EndIsWanted(view_)) return;
    if (!view_.refusal.empty()) {
      Fail(kRefused, view_.refusal);
    } else if (spec().active_deadline && !IsOver(view_)) {
      const SteadyTime deadline = record().started + *spec().active_deadline;
      if (now_.steady < deadline) return Wake(deadline);
      Fail("DeadlineExceeded", "Pod was active on the node longer than the specified deadline");
    }
  }

  void Fail(std::string_view reason, std::string message) {
    record().failure_reason = reason;
    record().failure_message = message;
    Tell(true, reason, std::move(message));
  }

  // ---- going on

  void Advance() {
    if (IsOver(view_) || !SandboxIsReady()) return;
    for (std::size_t i = 0; i < spec().init_containers.size(); ++i) {
      ContainerRecord& container = record().init_containers[i];
      Drive(spec().init_containers[i], container, true);
      if (container.state != RunState::kEnded || container.run.end->code != 0) return;
    }
    for (std::size_t i = 0; i < spec().containers.size(); ++i) {
      Drive(spec().containers[i], record().containers[i], false);
    }
  }

  bool SandboxIsReady() {
    SandboxRecord& sandbox = record().sandbox;
    if (sandbox.state == SandboxState::kReady) return true;
    if (sandbox.state == SandboxState::kFailed) {
      TellOnce(record().told,
               {.warning = true, .reason = "FailedCreatePodSandBox", .message = sandbox.error});
      const SteadyTime again = sandbox.failed + RestartDelay(kSandboxBackOff, sandbox.failures + 1);
      if (now_.steady < again) {
        Wake(again);
        return false;
      }
    } else if (sandbox.state == SandboxState::kStarting || sandbox.state == SandboxState::kStopping) {
      return false;
    }
    if (!view_.volume_problem.empty()) {
      TellOnce(record().told, {.warning = true, .reason = "FailedMount", .message = view_.volume_problem});
      return false;
    }
    sandbox.state = SandboxState::kStarting;
    plan_.actions.emplace_back(StartSandbox{});
    return false;
  }

  void Drive(const ContainerSpec& container, ContainerRecord& record, bool init) {
    switch (record.state) {
      case RunState::kNone:
        return StartUnlessProblem(container, record);
      case RunState::kStarting:
        return;
      case RunState::kRunning:
        return init ? ContinueStopIfAny(container, record) : Attend(container, record);
      case RunState::kEnded:
        if (WillRestart(view_, record, init)) Restart(container, record);
        return;
    }
  }

  void Announce(const ContainerSpec& container, ContainerRecord& record) {
    if (record.run.attempt <= record.announced || record.state == RunState::kStarting) return;
    record.announced = record.run.attempt;
    const bool failed = record.run.end && record.run.end->reason == "StartError";
    if (failed) {
      Tell(true, "Failed", StrCat("Error: ", record.run.end->message), container.name);
    } else {
      Tell(false, "Started", StrCat("Started container ", container.name), container.name);
    }
  }

  void StartUnlessProblem(const ContainerSpec& container, ContainerRecord& record) {
    if (const auto problem = view_.problems.find(container.name); problem != view_.problems.end()) {
      return TellOnce(record.told, {.warning = true,
                                    .reason = "Failed",
                                    .message = StrCat("Error: ", problem->second.message),
                                    .container = container.name});
    }
    const int attempt = record.run.attempt + 1;
    ContainerRecord next;
    if (record.run.attempt >= 0) next.previous = std::move(record.run);
    next.state = RunState::kStarting;
    next.run.attempt = attempt;
    next.short_runs = record.short_runs;
    next.announced = record.announced;
    record = std::move(next);
    plan_.actions.emplace_back(StartContainer{.container = container.name, .attempt = attempt});
  }

  void Restart(const ContainerSpec& container, ContainerRecord& record) {
    const absl::Duration delay = RestartDelay(view_.back_off, record.short_runs);
    const SteadyTime due = record.run.end->seen + delay;
    if (now_.steady >= due) return StartUnlessProblem(container, record);
    TellOnce(record.told, {.warning = true,
                           .reason = "BackOff",
                           .message = StrCat("Back-off restarting failed container ", container.name,
                                             " in pod ", spec().name, "_", spec().ns, "(", spec().uid, ")"),
                           .container = container.name});
    Wake(due);
  }

  // ---- a container that runs

  void Attend(const ContainerSpec& container, ContainerRecord& record) {
    if (record.stop) return ContinueStop(container, record, record.stop->grace);
    if (container.post_start) {
      if (record.post_start == HookState::kNone) {
        record.post_start = HookState::kRunning;
        plan_.actions.emplace_back(RunHook{.container = container.name,
                                           .attempt = record.run.attempt,
                                           .kind = HookKind::kPostStart,
                                           .timeout = absl::InfiniteDuration()});
      }
      if (record.post_start == HookState::kRunning) return;
      if (record.post_start == HookState::kFailed) {
        return BeginStop(container, record, spec().grace, "failed its postStart hook");
      }
    }
    if (!Probe(container, record, ProbeKind::kStartup)) return;
    if (container.startup && record.probe(ProbeKind::kStartup).verdict != ProbeRecord::Verdict::kSuccess)
      return;
    if (!Probe(container, record, ProbeKind::kLiveness)) return;
    (void)Probe(container, record, ProbeKind::kReadiness);
  }

  // False: the container has been found dead and is being stopped.
  bool Probe(const ContainerSpec& container, ContainerRecord& record, ProbeKind kind) {
    const std::optional<ProbeSpec>& spec = ProbeOf(container, kind);
    if (!spec) return true;
    ProbeRecord& probe = record.probe(kind);
    if (kind != ProbeKind::kReadiness && probe.verdict == ProbeRecord::Verdict::kFailure) {
      const std::string_view why =
          kind == ProbeKind::kLiveness ? "failed liveness probe" : "failed startup probe";
      BeginStop(container, record, spec->termination_grace.value_or(this->spec().grace), why);
      return false;
    }
    if (kind == ProbeKind::kStartup && probe.verdict == ProbeRecord::Verdict::kSuccess) return true;
    if (probe.running) return true;
    const SteadyTime due = NextProbe(record, probe, *spec, kind);
    if (now_.steady < due) {
      Wake(due);
      return true;
    }
    probe.running = true;
    probe.last = now_.steady;
    plan_.actions.emplace_back(
        RunProbe{.container = container.name, .attempt = record.run.attempt, .kind = kind});
    return true;
  }

  static SteadyTime NextProbe(const ContainerRecord& record, const ProbeRecord& probe, const ProbeSpec& spec,
                              ProbeKind kind) {
    if (!probe.last) return record.run.started + spec.initial_delay;
    absl::Duration wait = spec.period;
    if (kind == ProbeKind::kReadiness && !probe.ever_ok) {
      wait = std::min(wait, kEagerProbe * static_cast<double>(1 << std::min(probe.made, 20)));
    }
    return *probe.last + wait;
  }

  // ---- stopping

  void BeginStop(const ContainerSpec& container, ContainerRecord& record, absl::Duration grace,
                 std::string_view why) {
    record.stop = Stop{.since = now_.steady, .grace = grace};
    std::string message = StrCat("Stopping container ", container.name);
    if (!why.empty()) {
      const bool again = spec().restart_policy != RestartPolicy::kNever;
      message = StrCat("Container ", container.name, " ", why, again ? ", will be restarted" : "");
    }
    Tell(false, "Killing", std::move(message), container.name);
    ContinueStop(container, record, grace);
  }

  void ContinueStopIfAny(const ContainerSpec& container, ContainerRecord& record) {
    if (record.stop) ContinueStop(container, record, record.stop->grace);
  }

  void ContinueStop(const ContainerSpec& container, ContainerRecord& record, absl::Duration grace) {
    Stop& stop = *record.stop;
    stop.grace = std::min(stop.grace, grace);
    const SteadyTime deadline = stop.since + stop.grace;
    if (stop.grace > absl::ZeroDuration() && !HookIsOver(container, record, deadline)) return;
    if (!stop.asked && stop.grace > absl::ZeroDuration()) {
      stop.asked = now_.steady;
      plan_.actions.emplace_back(
          SignalContainer{.container = container.name, .attempt = record.run.attempt, .signal = SIGTERM});
    }
    if (stop.killed) return;
    SteadyTime kill_at = deadline;
    if (container.pre_stop && stop.asked) kill_at = std::max(kill_at, *stop.asked + kLeastGraceAfterHook);
    if (now_.steady < kill_at) return Wake(kill_at);
    stop.killed = true;
    plan_.actions.emplace_back(
        SignalContainer{.container = container.name, .attempt = record.run.attempt, .signal = SIGKILL});
  }

  bool HookIsOver(const ContainerSpec& container, ContainerRecord& record, SteadyTime deadline) {
    if (!container.pre_stop || record.stop->asked) return true;
    if (record.pre_stop == HookState::kNone) {
      record.pre_stop = HookState::kRunning;
      plan_.actions.emplace_back(RunHook{.container = container.name,
                                         .attempt = record.run.attempt,
                                         .kind = HookKind::kPreStop,
                                         .timeout = deadline - now_.steady});
    }
    if (record.pre_stop != HookState::kRunning || now_.steady >= deadline) return true;
    Wake(deadline);
    return false;
  }

  absl::Duration EndGrace() const {
    if (spec().deleting) return spec().deletion_grace;
    return spec().grace;
  }

  void StopAll() {
    const auto stop = [this](const ContainerSpec& container, ContainerRecord& record) {
      if (record.state != RunState::kRunning) return;
      if (!record.stop) return BeginStop(container, record, EndGrace(), "");
      ContinueStop(container, record, EndGrace());
    };
    for (std::size_t i = 0; i < spec().init_containers.size(); ++i) {
      stop(spec().init_containers[i], record().init_containers[i]);
    }
    for (std::size_t i = 0; i < spec().containers.size(); ++i)
      stop(spec().containers[i], record().containers[i]);
  }

  // ---- when all is over

  void Settle() {
    if (!IsOver(view_)) return;
    SandboxRecord& sandbox = record().sandbox;
    if (sandbox.state == SandboxState::kReady) {
      sandbox.state = SandboxState::kStopping;
      plan_.actions.emplace_back(StopSandbox{});
    }
    if (sandbox.state == SandboxState::kStarting || sandbox.state == SandboxState::kStopping) return;
    if (record().finished || !(spec().deleting || view_.gone)) return;
    record().finished = true;
    plan_.actions.emplace_back(FinishPod{});
  }

  PodView view_;
  const PlanTime now_;
  PodPlan plan_;
};

}  // namespace

PodPlan PlanPod(PodView view, PlanTime now) { return Planner(std::move(view), now).Plan(); }

std::string PrintAction(const PodAction& action) {
  struct Printer {
    std::string operator()(const StartSandbox&) const { return "start sandbox"; }
    std::string operator()(const StopSandbox&) const { return "stop sandbox"; }
    std::string operator()(const StartContainer& a) const {
      return StrCat("start ", RunId(a.container, a.attempt));
    }
    std::string operator()(const SignalContainer& a) const {
      return StrCat("signal ", RunId(a.container, a.attempt), " ", a.signal);
    }
    std::string operator()(const RunProbe& a) const {
      return StrCat("probe ", RunId(a.container, a.attempt), " ", PrintProbeKind(a.kind));
    }
    std::string operator()(const RunHook& a) const {
      return StrCat("hook ", RunId(a.container, a.attempt), " ",
                    a.kind == HookKind::kPostStart ? "PostStart" : "PreStop");
    }
    std::string operator()(const FinishPod&) const { return "finish"; }
  };
  return std::visit(Printer{}, action);
}

}  // namespace trainyard::node
