#include "job/restart_policy.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"

namespace trainyard::job {
namespace {

constexpr absl::Duration kLongestWait = absl::Minutes(5);
// A pod that has run for so long did not fail because it was made too soon.
constexpr absl::Duration kLongRun = absl::Minutes(10);
constexpr absl::Duration kLongRunUntilDisrupted = absl::Seconds(10);
constexpr absl::Duration kLongRunUntilKilled = absl::Seconds(1);

// What kubelets and controllers call the end of a pod that they bring about.
constexpr std::array<std::string_view, 8> kDisruptions = {"Evicted",      "Preempted",  "Preempting",
                                                          "NodeShutdown", "Shutdown",   "Terminated",
                                                          "NodeLost",     "NodeFailure"};
constexpr std::array<std::string_view, 3> kShutdowns = {"NodeShutdown", "Shutdown", "Terminated"};
constexpr std::array<std::string_view, 3> kRejections = {"NodeAffinity", "UnexpectedAdmissionError",
                                                         "TopologyAffinityError"};

template <std::size_t N>
bool Has(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

absl::Duration Backoff(absl::Duration first, int attempt) {
  if (attempt <= 0) return absl::ZeroDuration();
  return std::min(first * static_cast<double>(std::int64_t{1} << std::min(attempt - 1, 20)), kLongestWait);
}

// Somebody killed the program: that it ended says nothing of it.
bool WasKilled(const ContainerEnd& end) {
  constexpr int kSigKill = 128 + 9;
  constexpr int kSigTerm = 128 + 15;
  return (end.exit_code == kSigKill || end.exit_code == kSigTerm) && end.reason != "OOMKilled";
}

// Why the rules have no restart for it; empty: they have.
std::string FindRefusal(const RestartRules& rules, const PodFailure& failure, bool node, bool disruption) {
  if (failure.cause == FailureCause::kCreation) return "";
  const bool covered = node ? rules.node_failures : disruption ? rules.disruptions : rules.failures;
  if (!covered) return StrCat("restartPolicy is ", Print(rules.policy));
  if (node || disruption || !rules.codes) return "";
  if (failure.cause == FailureCause::kDeadline) return "a pod's own deadline is not worth another try";
  const bool listed = failure.exit_code ? rules.codes->Contains(*failure.exit_code) : rules.without_code;
  if (listed) return "";
  const std::string codes = rules.codes->Print();
  return StrCat("restartPolicy ", Print(rules.policy), " restarts after ",
                codes.empty() ? "no exit code" : StrCat("exit codes ", codes), codes.empty() ? "" : " only");
}

}  // namespace

std::string_view Print(FailureCause cause) {
  switch (cause) {
    case FailureCause::kProgram:
      return "Program";
    case FailureCause::kDisruption:
      return "Disruption";
    case FailureCause::kNodeLost:
      return "NodeLost";
    case FailureCause::kAccelerator:
      return "Accelerator";
    case FailureCause::kCreation:
      return "Creation";
    case FailureCause::kRejected:
      return "Rejected";
    case FailureCause::kDeadline:
      return "Deadline";
    case FailureCause::kUnknown:
      return "Unknown";
  }
  return "";
}

PodFailure ClassifyFailure(const PodView& pod) {
  PodFailure failure;
  if (pod.end) {
    failure.exit_code = pod.end->exit_code;
    failure.ran = pod.end->ran;
  }
  if (pod.disrupted || Has(kDisruptions, pod.reason)) {
    failure.cause = FailureCause::kDisruption;
    failure.shutdown = Has(kShutdowns, pod.reason);
  } else if (pod.reason.starts_with("OutOf") || Has(kRejections, pod.reason)) {
    failure.cause = FailureCause::kRejected;
  } else if (pod.reason == "DeadlineExceeded") {
    failure.cause = FailureCause::kDeadline;
  } else if (pod.end) {
    failure.cause = FailureCause::kProgram;
    failure.killed = WasKilled(*pod.end);
  }
  return failure;
}

std::string DescribeFailure(const PodView& pod, const PodFailure& failure) {
  const std::string on = pod.node.empty() ? "" : StrCat(" on ", pod.node);
  const std::string reason = pod.reason.empty() ? "" : StrCat(" (", pod.reason, ")");
  switch (failure.cause) {
    case FailureCause::kProgram: {
      const std::string who = pod.end->container.empty() ? "" : StrCat(" in container ", pod.end->container);
      const std::string why = pod.end->message.empty() ? "" : StrCat(": ", pod.end->message);
      const std::string what = pod.end->reason.empty() ? "" : StrCat(" (", pod.end->reason, why, ")");
      return StrCat("exited ", pod.end->exit_code, what, who, on);
    }
    case FailureCause::kDisruption:
      return StrCat("was disrupted", reason, on);
    case FailureCause::kNodeLost:
      return StrCat("was lost with ", pod.node.empty() ? "its node" : pod.node);
    case FailureCause::kAccelerator:
      return StrCat("lost its accelerator", on, ": ", pod.accelerator_trouble);
    case FailureCause::kCreation:
      return StrCat("could not be started", on, ": ", pod.creation_error);
    case FailureCause::kRejected:
      return StrCat("was not taken", reason, on);
    case FailureCause::kDeadline:
      return StrCat("ran for longer than its activeDeadlineSeconds", on);
    case FailureCause::kUnknown:
      return StrCat("failed without an exit code", reason, on);
  }
  return "";
}

bool IsNodeFailure(FailureCause cause) {
  return cause == FailureCause::kNodeLost || cause == FailureCause::kAccelerator;
}

RestartDecision DecideRestart(const RestartRules& rules, const PodFailure& failure, int attempt) {
  const bool node = IsNodeFailure(failure.cause);
  const bool disruption =
      failure.cause == FailureCause::kDisruption || failure.cause == FailureCause::kRejected;
  if (std::string why = FindRefusal(rules, failure, node, disruption); !why.empty()) {
    return {.verdict = RestartVerdict::kGiveUp, .why = std::move(why)};
  }
  const bool blameless = node || disruption;
  RestartDecision decision{.counts = !blameless || (rules.counts_all && !failure.shutdown)};
  // A lost node says nothing of the pod, and containers that cannot be made have been waited for already.
  if (node || failure.cause == FailureCause::kCreation) return decision;
  const absl::Duration long_run = blameless        ? kLongRunUntilDisrupted
                                  : failure.killed ? kLongRunUntilKilled
                                                   : kLongRun;
  if (failure.ran < long_run) decision.wait = Backoff(rules.first_wait, attempt);
  return decision;
}

}  // namespace trainyard::job
