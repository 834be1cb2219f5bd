// What jobs of all kinds have around them: the nodes, and for those who ask all pods of the cluster, also
// other people's. Watched once, whoever looks.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/mutex.h"
#include "kube/api.h"
#include "kube/informer.h"
#include "kube/node.h"
#include "kube/pod.h"
#include "reconcile/accelerators.h"
#include "reconcile/observe.h"

namespace trainyard::reconcile {

// Of a pod that need not be ours, what it takes from whom.
struct LoadPod {
  kube::ObjectMeta meta;
  kube::SharedText node;
  bool finished = false;
  std::vector<kube::ResourceAmount> requests;
  kube::TextMap node_selector;
};

// The API and the clock must outlive it.
class Surroundings {
 public:
  struct Options {
    AcceleratorSigns accelerators;
    std::optional<std::uint64_t> seed;
  };
  Surroundings(kube::Api& api, Clock& clock, Options options);
  ~Surroundings() { Stop(); }
  Surroundings(const Surroundings&) = delete;
  Surroundings& operator=(const Surroundings&) = delete;

  // Called with the name of every node that something happened to, from the informer's thread. Before
  // Start().
  void OnNodeChange(std::function<void(std::string_view node)> handler);

  // ---- in threads of its own, or step by step

  void Start();
  void Stop();
  bool Step();

  // ---- nodes

  // How the node is that the pod is on.
  NodeSight FindNode(const kube::CompactPod& pod);
  // Those whose accelerators are known to have failed, or were too few not long ago, by name.
  std::vector<std::string> ListMarkedNodes() const;
  std::vector<std::shared_ptr<const kube::CompactNode>> ListNodes() const { return nodes_.cache().List(); }

  // ---- all pods

  // From now on they are watched.
  void WantLoad();
  // Null: nobody has asked for them, or they are not all seen yet, or never will be.
  std::unique_ptr<std::vector<std::shared_ptr<const LoadPod>>> ListLoad();
  absl::Status WaitForLoad(absl::Duration timeout);

 private:
  NodeSight FindMissingNode(std::string_view name);
  void FindAcceleratorTrouble(const kube::CompactNode& node, const kube::CompactPod& pod, NodeSight& sight);
  // Since when it does; nothing: it does not.
  std::optional<absl::Time> RememberLack(const std::string& node, const std::string& resource, bool lacks);
  void NodeChanged(const kube::Change<kube::CompactNode>& change);

  // Of a node that has fewer accelerators than it has given.
  struct Lack {
    std::optional<absl::Time> since;  // nothing: it no longer has
    absl::Time avoid_until = absl::InfinitePast();
  };

  kube::Api& api_;
  Clock& clock_;
  const AcceleratorSigns accelerators_;
  IdSource seeds_;
  kube::Informer<kube::CompactNode> nodes_;
  kube::Informer<LoadPod> load_;
  const kube::Cache<LoadPod>::Index load_by_node_;
  std::vector<std::function<void(std::string_view)>> handlers_;
  mutable Mutex mu_;
  std::map<std::pair<std::string, std::string>, Lack> lacks_ TY_GUARDED_BY(mu_);  // by node and resource
  std::set<std::string, std::less<>> gone_nodes_ TY_GUARDED_BY(mu_);  // that the server itself does not have
  bool running_ TY_GUARDED_BY(mu_) = false;                           // in threads
  bool load_wanted_ TY_GUARDED_BY(mu_) = false;
};

}  // namespace trainyard::reconcile
