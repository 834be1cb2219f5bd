// A pod in a test of the plan: plans, and is told what happened, on a clock that the test moves.
#pragma once

#include <signal.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/document.h"
#include "base/text.h"
#include "gtest/gtest.h"
#include "node/pod_plan.h"

namespace trainyard::node {

class PlannedPod {
 public:
  // `spec` is the pod's spec as JSON; the rest of the object is made up.
  explicit PlannedPod(std::string_view spec) {
    const auto pod =
        ParseJson(StrCat(R"({"metadata":{"name":"p","namespace":"ns","uid":"u1"},"spec":)", spec, "}"));
    EXPECT_TRUE(pod.ok()) << pod.status();
    auto parsed = ParsePodSpec(*pod);
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    spec_ = *std::move(parsed);
    record_ = NewRecord(spec_);
  }

  // The actions, printed; what the node would do at once about the sandbox is done.
  std::vector<std::string> Plan() {
    PodPlan plan = PlanPod(View(), now_);
    record_ = std::move(plan.record);
    status_ = std::move(plan.status);
    wake_ = plan.wake;
    std::vector<std::string> actions;
    for (const PodAction& action : plan.actions) actions.push_back(PrintAction(action));
    for (const EventNote& event : plan.events) events_.push_back(StrCat(event.reason, ": ", event.message));
    return actions;
  }

  PodView View() const {
    return {.spec = spec_,
            .record = record_,
            .status = status_,
            .gone = gone,
            .refusal = refusal,
            .volume_problem = volume_problem,
            .problems = problems,
            .host_ip = "127.0.0.1",
            .pod_ip = "127.64.0.1",
            .back_off = back_off};
  }

  // Until all containers that can be started run.
  void RunAll() {
    for (int i = 0; i < 20; ++i) {
      const auto actions = Plan();
      if (actions.empty()) return;
      for (const std::string& action : actions) {
        if (action == "start sandbox") NoteSandboxReady(record_);
        if (action.starts_with("start ") && action != "start sandbox")
          Started(action.substr(6, action.rfind('.') - 6));
      }
    }
    FAIL() << "the plan does not settle";
  }

  ContainerRecord& container(std::string_view name) {
    ContainerRecord* found = record_.Find(spec_, name);
    EXPECT_NE(found, nullptr) << name;
    return *found;
  }
  void Started(std::string_view name) {
    NoteStarted(container(name), container(name).run.attempt, now_.wall, now_);
  }
  void Exited(std::string_view name, int code) {
    NoteEnded(container(name), container(name).run.attempt, EndOfExit(code, now_.wall, now_.steady),
              back_off.reset);
  }
  void Killed(std::string_view name, int signal, bool oom = false) {
    NoteEnded(container(name), container(name).run.attempt, EndOfSignal(signal, oom, now_.wall, now_.steady),
              back_off.reset);
  }
  void StartFailed(std::string_view name, std::string why) {
    NoteEnded(container(name), container(name).run.attempt,
              EndOfFailedStart(std::move(why), now_.wall, now_.steady), back_off.reset);
  }
  void Probed(std::string_view name, ProbeKind kind, bool ok) {
    NoteProbe(container(name), kind, *ProbeOf(*spec_.FindContainer(name), kind), ok);
  }
  void Advance(absl::Duration by) {
    now_.wall += by;
    now_.steady = now_.steady + by;
  }
  void Delete(absl::Duration grace) {
    spec_.deleting = true;
    spec_.deletion_grace = grace;
  }
  absl::Duration WakesIn() const { return wake_ - now_.steady; }

  const PodStatus& status() const { return status_; }
  std::string phase() const { return std::string(PrintPhase(status_.phase)); }
  // "running", "waiting CrashLoopBackOff", "terminated Error 1".
  std::string State(std::string_view name) const {
    const ContainerStatus* found = status_.FindContainer(name);
    if (found == nullptr) return "unknown";
    if (std::holds_alternative<Running>(found->state)) return "running";
    if (const auto* ended = std::get_if<Terminated>(&found->state)) {
      return StrCat("terminated ", ended->reason, " ", ended->exit_code);
    }
    return StrCat("waiting ", std::get<Waiting>(found->state).reason);
  }
  // "True", "False ContainersNotReady".
  std::string ConditionOf(std::string_view type) const {
    const Condition* found = status_.FindCondition(type);
    if (found == nullptr) return "missing";
    return StrCat(found->status ? "True" : "False", found->reason.empty() ? "" : " ", found->reason);
  }

  PodSpec spec_;
  PodRecord record_;
  PodStatus status_;
  std::vector<std::string> events_;
  SteadyTime wake_;
  PlanTime now_{.wall = absl::FromUnixSeconds(1'700'000'000),
                .steady = SteadyTime::FromNanos(1'000'000'000'000)};

  bool gone = false;
  std::string refusal;
  std::string volume_problem;
  std::map<std::string, Problem> problems;
  BackOffPolicy back_off;
};

}  // namespace trainyard::node
