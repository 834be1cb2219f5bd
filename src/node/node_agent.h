// The process node: plays kubelet and container runtime for the nodes of an embedded cluster, with processes
// of this machine.
//
//   API server ──watches──▶ ┌───────────────────────── one loop ─────────────────────────┐ ──▶ one shim a pod
//                           │ a worker for each pod: observe ─▶ PlanPod ─▶ act, again     │ ◀── what happened
//   API server ◀──batches── └── statuses ────────────────────────────────────────────────┘
//   API server ◀──leases─── heartbeats, on a thread that waits for none of this
//
// One thread decides and acts for all nodes and pods of the process, and waits for nobody: what waits for the
// API server (a thread for each watch, one for writes, one for heartbeats) and what takes long on disk is
// done elsewhere. Pods outlive the agent: their shims go on, and the next agent on the same home adopts them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "kube/api.h"
#include "node/event_sink.h"
#include "node/node_objects.h"
#include "node/pod_plan.h"
#include "node/volumes.h"

namespace trainyard::node {

struct NodeAgentOptions {
  std::string home;  // pods live in HOME/pods
  std::string bin;   // where the shim's executable is put
  std::vector<NodeConfig> nodes;
  std::string release = "0";
  // Where relative image folders begin, and where a container without any working directory runs.
  std::string work_folder = "/";
  StringMap machine_env;  // what processes get from the machine (PickMachineEnv)
  BackOffPolicy back_off;
  absl::Duration heartbeat = absl::Seconds(2);
  absl::Duration lease = absl::Seconds(40);
  TokenSourceFn token;                                // of service accounts; null: there are none
  EventSink* events = nullptr;                        // null: nobody listens. Must outlive the agent
  std::uint64_t log_bytes = std::uint64_t{16} << 20;  // of one file of a container's log
  int log_files = 3;
};

class NodeAgent {
 public:
  // Returns when it runs; nodes are registered and pods adopted soon after. The API and the clock must
  // outlive it. FailedPrecondition: the shim cannot be run from `bin`.
  static absl::StatusOr<std::unique_ptr<NodeAgent>> Start(kube::Api& api, Clock& clock,
                                                          NodeAgentOptions options);
  virtual ~NodeAgent() = default;  // the pods' processes go on

  // What pods have to do without on this machine; one sentence each, for people.
  virtual const std::vector<std::string>& shortcomings() const = 0;

  // A node fails, or comes back; the same as its annotation trainyard.dev/node-state says. From any thread.
  virtual void SimulateKill(const std::string& node) = 0;  // its processes are killed, its heartbeats stop
  virtual void StopNode(const std::string& node) = 0;      // its heartbeats stop, its processes go on
  virtual void StartNode(const std::string& node) = 0;
};

}  // namespace trainyard::node
