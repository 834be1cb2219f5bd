// Watches over nodes: one that gives no sign of life is marked and its pods leave it after a while; pods of
// one that no longer exists are removed.
//
//              silent for the grace                      the pod's toleration is over
//   [ready] ─────────────────────────▶ [unknown, tainted] ──────────────────────────▶ its pods are deleted
//      ▲                                       │                                       (and stay Terminating
//      └──────── it says that it is ready ─────┘                                        while it is away)
//
// Silence is measured in watched time (node_health.h) from the last sign that we saw. Before a node is
// marked, a write of our own goes the way of its heartbeats: one that waits for a slow disk has arrived by
// then.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "controllers/actions.h"
#include "controllers/endpoints.h"
#include "controllers/loop.h"
#include "controllers/node_health.h"
#include "controllers/watches.h"
#include "kube/api.h"

namespace trainyard::controllers {

// Used by one thread. What it is given must outlive it.
class NodeLifecycle {
 public:
  struct Parts {
    kube::Api& api;
    Watches& watches;
    Clock& clock;
    Tell tell;
  };
  NodeLifecycle(Parts parts, IdSource random, const NodeTimes& times);

  // Call it first in every pass of the controllers, before what the watches say is taken.
  void BeginPass();
  // When the next pass is due: nodes are not silent in the time that it is late. Never: there is nothing to
  // judge.
  SteadyTime NextPass() const;
  Loop& loop() { return loop_; }

 private:
  // A pod that is to leave its node.
  struct Leaving {
    std::string uid;
    SteadyTime since;  // in watched time
  };

  void ObserveNode(const kube::Change<ObservedNode>& change);
  void ObserveLease(const kube::Change<ObservedLease>& change);
  void ObservePod(const kube::Change<ObservedPod>& change);

  kube::Outcome Pass(const kube::ObjectKey& key);
  absl::Status WaitForHeartbeats();
  absl::Status CheckLife(const ObservedNode& node, NodeHealth& health);
  absl::Status WriteTaints(const ObservedNode& node);
  absl::Status MarkPodsNotReady(const std::string& node, const std::vector<PodPtr>& pods);
  // Returns when the next pod is to leave.
  absl::StatusOr<SteadyTime> EvictPods(const ObservedNode& node, const std::vector<PodPtr>& pods);
  absl::Status ReleasePods(const ObservedNode& node, const std::vector<PodPtr>& pods);
  kube::Outcome RemoveOrphans(const std::string& node, const std::vector<PodPtr>& pods);

  // How pods end that do not end of themselves.
  struct Ending {
    std::string reason;  // of the condition
    std::string message;
    bool fail = false;   // they are failed at once: nobody runs them any more
    bool force = false;  // they are gone at once
  };
  absl::Status EndPods(const std::vector<PodPtr>& pods, const Ending& ending);
  std::vector<PodPtr> PodsOn(const std::string& node) const;

  kube::Api& api_;
  Watches& watches_;
  Clock& clock_;
  const Tell tell_;
  const NodeTimes times_;
  kube::Cache<ObservedPod>::Index by_node_;
  std::map<std::string, NodeHealth, std::less<>> health_;
  WatchedTime watched_;
  std::map<std::string, SteadyTime> missing_;  // nodes of pods that do not exist, and since when (watched)
  std::map<kube::ObjectKey, Leaving> leaving_;
  Loop loop_;
};

}  // namespace trainyard::controllers
