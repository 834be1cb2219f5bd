// The decision core of the node: what is to be done for one pod now, and what its status is. Pure.
//
//   pod seen ──▶ sandbox ──▶ init containers, one after the other ──▶ containers ──▶ all ended ──▶ sandbox
//   stopped
//                                                                    │    ▲  restart policy, back-off
//                                                                    └────┘  probes, hooks
//   deletion, deadline or a refusal, at any point ──▶ stop what runs (hook, SIGTERM, grace, SIGKILL) ──▶
//   sandbox stopped ──▶ if deleted: finished
//
// The plan is total: every view has one. It is made anew whenever something was observed or its `wake` has
// come; what it asks for is noted in the record that it returns, so that it does not ask twice.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "node/event_sink.h"
#include "node/pod_record.h"
#include "node/pod_spec.h"
#include "node/pod_status.h"

namespace trainyard::node {

// How long a container that ended waits before it is started again. The first restart is at once; the second
// waits for `first`, then twice as long each time. A kubelet's first wait is 10 s; a cluster of one machine
// has no crowd to protect, and jobs that recover in milliseconds to run.
struct BackOffPolicy {
  absl::Duration first = absl::Milliseconds(100);
  absl::Duration most = absl::Minutes(5);
  absl::Duration reset = absl::Minutes(10);  // a run this long is forgiven
};

// The wait before the run that follows `short_runs` short ones in a row.
absl::Duration RestartDelay(const BackOffPolicy& policy, int short_runs);

// Why a container cannot be started as things are.
struct Problem {
  std::string reason;  // "CreateContainerConfigError", "ErrImagePull"
  std::string message;
  bool operator==(const Problem&) const = default;
};

struct PodView {
  const PodSpec& spec;
  PodRecord record;
  PodStatus status;                         // as the API server has it, or as was written last
  bool gone = false;                        // the object exists no more
  std::string refusal;                      // why this node cannot run such a pod; empty: it can
  std::string volume_problem;               // what its volumes wait for
  std::map<std::string, Problem> problems;  // by container
  std::string host_ip;
  std::string pod_ip;
  BackOffPolicy back_off;
};

// ---- what is to be done

struct StartSandbox {
  bool operator==(const StartSandbox&) const = default;
};
struct StopSandbox {
  bool operator==(const StopSandbox&) const = default;
};
struct StartContainer {
  std::string container;
  int attempt = 0;
  bool operator==(const StartContainer&) const = default;
};
struct SignalContainer {
  std::string container;
  int attempt = 0;
  int signal = 0;
  bool operator==(const SignalContainer&) const = default;
};
struct RunProbe {
  std::string container;
  int attempt = 0;
  ProbeKind kind = ProbeKind::kLiveness;
  bool operator==(const RunProbe&) const = default;
};
struct RunHook {
  std::string container;
  int attempt = 0;
  HookKind kind = HookKind::kPostStart;
  absl::Duration timeout;
  bool operator==(const RunHook&) const = default;
};
// Nothing runs any more: forget the pod, and if the object still exists, delete it.
struct FinishPod {
  bool operator==(const FinishPod&) const = default;
};
using PodAction =
    std::variant<StartSandbox, StopSandbox, StartContainer, SignalContainer, RunProbe, RunHook, FinishPod>;
std::string PrintAction(const PodAction& action);  // "start main.0", "signal main.0 15"

struct PodPlan {
  std::vector<PodAction> actions;
  PodRecord record;
  PodStatus status;
  std::vector<EventNote> events;
  SteadyTime wake = SteadyTime::Never();  // when to plan again if nothing happens before
};

PodPlan PlanPod(PodView view, PlanTime now);

// The status alone, for a record that the plan has finished with.
PodStatus DescribePod(const PodView& view, PlanTime now);

}  // namespace trainyard::node
