// When a node counts as lost, what it is marked with, and which of its pods leave it. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "base/document.h"
#include "base/steady_time.h"
#include "controllers/observed.h"
#include "kube/node.h"

namespace trainyard::controllers {

struct NodeTimes {
  absl::Duration grace = absl::Seconds(40);          // without a sign of life for so long it is unknown
  absl::Duration startup_grace = absl::Seconds(60);  // the same for one that has never said how it is
  absl::Duration orphan_grace = absl::Seconds(40);   // pods of a node that does not exist are left so long
};

inline constexpr std::string_view kNotReadyTaint = "node.kubernetes.io/not-ready";
inline constexpr std::string_view kUnreachableTaint = "node.kubernetes.io/unreachable";
inline constexpr std::string_view kOutOfServiceTaint = "node.kubernetes.io/out-of-service";

// The time that the judge of the nodes has watched them. Of the time between two passes, at most one interval
// counts. A pass is late because the machine is busy or was suspended, and then the heartbeats are late too.
struct WatchedTime {
  SteadyTime now;                       // every deadline below is in this time
  std::optional<SteadyTime> last_pass;  // by the clock; unset: none yet
  bool operator==(const WatchedTime&) const = default;
};
// How often the judge passes over the nodes. The more often, the better it notices that it is late.
absl::Duration PassInterval(const NodeTimes& times);
// Counts the time since the last pass, and returns how late this one is.
absl::Duration NotePass(WatchedTime& watched, absl::Duration interval, SteadyTime clock_now);

// The signs of life of a node, by when we saw them: the clocks of two machines are never compared.
struct NodeHealth {
  std::string uid;
  SteadyTime heard;       // when a sign last changed, in watched time
  std::string lease;      // as it was then
  std::string heartbeat;  // as it was then
};
// True: it was a new sign.
bool NoteLease(NodeHealth& health, std::string_view renewed, SteadyTime now);
bool NoteHeartbeat(NodeHealth& health, std::string_view heartbeat, SteadyTime now);

// When the node counts as lost unless something is heard of it.
SteadyTime LostAt(const NodeHealth& health, const NodeTimes& times, bool has_reported);

// Says in the node's status that nothing is known of it. False: it says so already.
bool MarkUnknown(Document& node, absl::Time now);

// What follows from a node's conditions, as taints.
std::vector<kube::Taint> WantedTaints(const ObservedNode& node);
// Its taints are not as they should be. Those that others set do not count.
bool NeedsTaints(const ObservedNode& node);
// Makes them so.
void CorrectTaints(Document& node, const std::vector<kube::Taint>& wanted, absl::Time now);

bool Tolerates(const Toleration& toleration, const kube::Taint& taint);
// How long a pod stays on a node with those taints, of which only NoExecute counts: nothing is for ever.
std::optional<absl::Duration> StaysFor(const std::vector<Toleration>& tolerations,
                                       const std::vector<kube::Taint>& taints);
bool HasTaint(const ObservedNode& node, std::string_view key);

// Its containers may go on, but nobody should be led to them. False: it is not ready already.
bool MarkPodNotReady(Document& pod, std::string_view node, absl::Time now);
// Somebody other than the pod itself ends it. False: it says so already.
bool MarkDisrupted(Document& pod, std::string_view reason, std::string_view message, absl::Time now);

}  // namespace trainyard::controllers
