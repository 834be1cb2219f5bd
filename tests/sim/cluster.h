// The cluster of a simulation: the embedded API server on a store in memory and a clock that moves only when
// told to, with nodes and kubelets that do what they are told.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "apiserver/direct_transport.h"
#include "apiserver/server.h"
#include "base/clock.h"
#include "base/document.h"
#include "base/ids.h"
#include "kube/api.h"
#include "kube/resource.h"
#include "kv/store.h"
#include "operator/kinds.h"
#include "tests/sim/documents.h"

namespace trainyard::sim {

// What happened, as a story; told only if somebody wants to read it.
class Story {
 public:
  Story(const Clock& clock, bool told) : clock_(clock), begin_(clock.Now()), told_(told) {}
  void Tell(std::string_view what) const;

 private:
  const Clock& clock_;
  const absl::Time begin_;
  const bool told_;
};

class Cluster {
 public:
  Cluster(std::uint64_t seed, bool told);

  ManualClock& clock() { return clock_; }
  const Story& story() const { return story_; }
  kube::Transport& transport() { return direct_; }
  // With all rights, and nothing goes wrong on the way.
  kube::Api& user() { return user_; }
  const std::vector<std::unique_ptr<reconcile::Kind>>& kinds() const { return kinds_; }
  // The kind of a job, or of the job that a pod or a service belongs to.
  const reconcile::Kind& KindOf(const Document& object) const;
  reconcile::Place PlaceOf(const Document& object) const;

  // As they are now.
  Objects List(const kube::Resource& resource);
  Objects ListPods() { return List(kube::Resource::Pods()); }
  Objects ListJobs();  // of all kinds
  std::optional<Document> Get(const kube::Resource& resource, const std::string& name);

  // ---- nodes

  void MakeNode(const std::string& name);  // or makes one ready that exists
  bool HasNode(const std::string& name);
  bool IsLost(const std::string& node) const { return lost_nodes_.contains(node); }
  bool IsOnLostNode(const Document& pod) const;
  void LoseNode(const std::string& name, bool for_good);

  // ---- the scheduler

  static constexpr std::int64_t kNodeMillis = 2000;  // of cpu, for pods of each node
  static constexpr int kNodePods = 8;
  static std::int64_t MillisOf(const Document& pod);
  // What is free on each node that is ready.
  struct Room {
    std::int64_t millis = 0;
    int pods = 0;
  };
  std::map<std::string, Room> FindRoom();

  // ---- kubelets

  void Bind(const Document& pod, const std::string& node);
  void StartPod(const Document& pod);
  // Its containers cannot be made, or can again.
  void StickPod(const Document& pod, bool stuck);
  void RemovePod(const Document& pod);  // one that was told to go
  void Evict(const Document& pod);
  void StopPod(const Document& pod);  // one whose own deadline is over
  // Its process ends; what follows is the pod's restart policy. `seen` runs between the end and the restart,
  // if there is one.
  void EndPod(const Document& pod, int exit_code, const std::function<void()>& seen);

  // ---- the garbage collector

  // Something may have lost its owner.
  void ExpectGarbage() { garbage_ = true; }
  void CollectGarbage();

 private:
  void SetNodeReady(const std::string& name, bool ready);
  void PatchPodStatus(const Document& pod, Object status, std::string_view what);
  Object Running() const;
  Object Terminated(int exit_code) const;

  const std::vector<std::unique_ptr<reconcile::Kind>> kinds_ = ops::AllKinds();
  IdSource random_;
  ManualClock clock_;
  const Story story_;
  const std::unique_ptr<kv::Store> store_;
  const std::unique_ptr<apiserver::ApiServer> server_;
  apiserver::DirectTransport direct_;
  kube::Api user_;
  bool garbage_ = false;
  int addresses_ = 0;  // that pods have got
  struct Listed {
    kv::Revision revision = 0;
    Objects objects;
    std::map<std::string, std::shared_ptr<const Document>, std::less<>> read;  // by what was read
  };
  std::map<std::string, Listed> listed_;  // by the plural of the resource
  std::set<std::string> lost_nodes_;
};

}  // namespace trainyard::sim
