#include "job/restart_policy.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace trainyard::job {
namespace {

constexpr absl::Duration kFirstWait = absl::Seconds(10);
constexpr absl::Duration kLongestWait = absl::Minutes(5);
// A pod that has run for so long did not fail because it was made too soon.
constexpr absl::Duration kLongRun = absl::Minutes(10);
constexpr absl::Duration kLongRunUntilDisrupted = absl::Seconds(10);

// What kubelets and controllers call the end of a pod that they bring about.
constexpr std::array<std::string_view, 8> kDisruptions = {"Evicted",      "Preempted",  "Preempting",
                                                          "NodeShutdown", "Shutdown",   "Terminated",
                                                          "NodeLost",     "NodeFailure"};
constexpr std::array<std::string_view, 3> kRejections = {"NodeAffinity", "UnexpectedAdmissionError",
                                                         "TopologyAffinityError"};

template <std::size_t N>
bool Has(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

absl::Duration Backoff(int attempt) {
  if (attempt <= 0) return absl::ZeroDuration();
  return std::min(kFirstWait * static_cast<double>(std::int64_t{1} << std::min(attempt - 1, 10)),
                  kLongestWait);
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
  } else if (pod.reason.starts_with("OutOf") || Has(kRejections, pod.reason)) {
    failure.cause = FailureCause::kRejected;
  } else if (pod.reason == "DeadlineExceeded") {
    failure.cause = FailureCause::kDeadline;
  } else if (pod.end) {
    failure.cause = FailureCause::kProgram;
  }
  return failure;
}

std::string DescribeFailure(const PodView& pod, const PodFailure& failure) {
  const std::string on = pod.node.empty() ? "" : StrCat(" on ", pod.node);
  const std::string reason = pod.reason.empty() ? "" : StrCat(" (", pod.reason, ")");
  switch (failure.cause) {
    case FailureCause::kProgram: {
      const std::string who = pod.end->container.empty() ? "" : StrCat(" in container ", pod.end->container);
      const std::string what = pod.end->reason.empty() ? "" : StrCat(" (", pod.end->reason, ")");
      return StrCat("exited ", pod.end->exit_code, what, who, on);
    }
    case FailureCause::kDisruption:
      return StrCat("was disrupted", reason, on);
    case FailureCause::kNodeLost:
      return StrCat("was lost with ", pod.node.empty() ? "its node" : pod.node);
    case FailureCause::kRejected:
      return StrCat("was not taken", reason, on);
    case FailureCause::kDeadline:
      return StrCat("ran for longer than its activeDeadlineSeconds", on);
    case FailureCause::kUnknown:
      return StrCat("failed without an exit code", reason, on);
  }
  return "";
}

RestartDecision DecideRestart(RestartPolicy policy, const PodFailure& failure, int attempt) {
  if (policy == RestartPolicy::kNever) {
    return {.verdict = RestartVerdict::kFailJob, .why = "restartPolicy is Never"};
  }
  const bool blameless = failure.cause == FailureCause::kDisruption ||
                         failure.cause == FailureCause::kNodeLost || failure.cause == FailureCause::kRejected;
  if (policy == RestartPolicy::kExitCode && !blameless) {
    if (failure.cause == FailureCause::kDeadline) {
      return {.verdict = RestartVerdict::kFailJob, .why = "a pod's own deadline is not worth another try"};
    }
    if (failure.exit_code && *failure.exit_code < 128) {
      return {.verdict = RestartVerdict::kFailJob, .why = "exit codes 1-127 are not worth another try"};
    }
  }
  RestartDecision decision{.counts = !blameless};
  if (failure.cause == FailureCause::kNodeLost) return decision;
  const bool ran_long = failure.ran >= (blameless ? kLongRunUntilDisrupted : kLongRun);
  if (!ran_long) decision.wait = Backoff(attempt);
  return decision;
}

}  // namespace trainyard::job
