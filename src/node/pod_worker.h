// One pod on its node: brings together what is known of it, has PlanPod decide, and does what it says. All on
// the node's loop.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kube/api.h"
#include "node/cgroups.h"
#include "node/cluster_objects.h"
#include "node/hosts.h"
#include "node/node_agent.h"
#include "node/pod_addresses.h"
#include "node/pod_folder.h"
#include "node/probes.h"
#include "node/shim_client.h"

namespace trainyard::node {

class PodWorker;

// What all workers of an agent share.
struct NodeContext {
  Loop& loop;
  Clock& clock;
  const NodeAgentOptions& options;
  Machine machine;
  std::string shim;
  ClusterObjects objects;
  ClusterNames names;
  PodAddresses addresses;
  Cgroups cgroups;
  std::map<std::string, Resources> allocatable;  // by node
  std::function<void(PodWorker&)> plan_soon;     // have it Reconcile()d at the end of this turn
  std::function<void(PodWorker&)> write_soon;    // it has something to write
};

class PodWorker {
 public:
  // `saved_address`: the one that it had before the agent was started.
  PodWorker(NodeContext& context, Document pod, PodSpec spec, const std::string& saved_address);
  ~PodWorker();
  PodWorker(const PodWorker&) = delete;
  PodWorker& operator=(const PodWorker&) = delete;

  const PodSpec& spec() const { return spec_; }
  const PodFolder& folder() const { return folder_; }

  // Takes over what runs of it, if anything does.
  void Adopt();
  // The object has changed, or is gone.
  void Update(Document pod, PodSpec spec);
  void NoteGone();
  // Config maps, secrets or services have.
  void NoteObjects();
  void NoteNames();
  // A frozen pod is on a node that is down: nothing is decided or written for it.
  void Freeze(bool frozen);
  void KillShim();

  void Reconcile();

  // ---- writes. At most one is under way.
  // What to tell the API server next; nothing if it knows all.
  std::optional<kube::Operation> NextWrite();
  void NoteWritten(const absl::StatusOr<std::string>& answer);
  // A write failed: not before.
  SteadyTime write_after() const { return write_after_; }
  // There is nothing left of it, here or there.
  bool over() const { return over_; }

 private:
  PlanTime Now() const;
  PodView MakeView();
  std::map<std::string, Problem> FindProblems();
  std::string FindVolumeProblem();
  LaunchInput MakeLaunchInput(const ContainerSpec& container, int attempt);
  PodFacts MakeFacts() const;
  void Tell(const EventNote& note);

  void Do(const StartSandbox& action);
  void Do(const StopSandbox& action);
  void Do(const StartContainer& action);
  void Do(const SignalContainer& action);
  void Do(const RunProbe& action);
  void Do(const RunHook& action);
  void Do(const FinishPod& action);

  absl::Status PrepareSandbox();
  absl::Status Connect();
  void TakeOverEnd();
  absl::Status RefreshVolumes();
  void WriteHosts();
  void OnShimEvent(const StateEvent& event);
  void OnShimGone();
  void FailRun(const std::string& container, int attempt, std::string why);
  // Runs a probe's or hook's action; `done` comes later, if ever.
  void RunAction(const Action& action, const std::string& container, int attempt, absl::Duration timeout,
                 std::function<void(ProbeOutcome)> done);
  void OnProbe(const RunProbe& probe, const ProbeOutcome& outcome);
  void OnHook(const RunHook& hook, const ProbeOutcome& outcome);

  NodeContext& context_;
  Document pod_;
  PodSpec spec_;
  const PodFolder folder_;
  std::string address_;
  PodRecord record_;
  PodStatus status_;      // as planned last
  PodStatus api_status_;  // as the API server has it
  bool planned_ = false;
  bool gone_ = false;
  bool frozen_ = false;
  bool finishing_ = false;
  bool over_ = false;
  const std::string refusal_;

  std::optional<PodStatus> written_;  // what the API server has acknowledged
  std::optional<PodStatus> writing_;  // what is on its way; with `deleting_`, the object's end
  bool deleting_ = false;
  std::int64_t written_version_ = 0;
  SteadyTime write_after_;

  std::unique_ptr<ShimStart> start_;
  std::unique_ptr<ShimClient> client_;
  std::map<std::string, Launch> launches_;  // of the last run of each container
  std::map<std::string, VolumeContent> volumes_;
  std::string hosts_;
  std::uint64_t next_action_ = 1;
  std::map<std::uint64_t, std::unique_ptr<NetworkProbe>> network_;
  Loop::TimerId timer_ = 0;
};

}  // namespace trainyard::node
