// The cluster that a client talks to, and the store in it.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/manifests.h"
#include "client/storage.h"
#include "job/job_status.h"
#include "kube/api.h"
#include "kube/http.h"
#include "kube/kubeconfig.h"
#include "kv/store.h"

namespace trainyard::client {

struct ClusterOptions {
  std::string kubeconfig;  // empty: as kubectl finds it, or the embedded cluster of this user
  std::string context;     // empty: the kubeconfig's current one
  std::string ns;          // empty: the context's
  // "etcd://HOST:PORT", as pods call it. Empty: the namespace's own, which is started if there is none.
  std::string store;
  // As ParseStorage() reads it. Empty: what the nodes' annotation trainyard.dev/storage says.
  std::string storage;
  std::string image = "trainyard";
  absl::Duration patience = absl::Seconds(60);  // with what must come up, or go
};

// All calls may be made from many threads.
class Cluster {
 public:
  // NotFound: no cluster is configured.
  static absl::StatusOr<std::unique_ptr<Cluster>> Open(ClusterOptions options);

  kube::Api& api() { return *api_; }
  const std::string& ns() const { return config_.ns; }
  absl::Duration patience() const { return options_.patience; }

  // Of the cluster's pods. FailedPrecondition: nobody has said where files can be kept.
  absl::StatusOr<PodSettings> FindPodSettings();

  // What pods open. The second: its token is in the Secret `trainyard-store`.
  std::string StoreUrlForPods() const;
  bool HasOwnStore() const { return options_.store.empty(); }

  // NotFound: the namespace has no store.
  absl::StatusOr<std::unique_ptr<kv::Store>> FindStore();
  // The same; starts the namespace's store if it has none, and waits until it answers.
  absl::StatusOr<std::unique_ptr<kv::Store>> EnsureStore();

  // An object as the server has it; NotFound as it says it.
  absl::StatusOr<Document> Get(const kube::Resource& resource, std::string_view name);
  // FailedPrecondition: the cluster does not have objects of that kind; the message says how to install them.
  absl::StatusOr<Document> Create(const kube::Resource& resource, const Document& object);
  // Deletes it with all that it owns, and waits until it is gone. Nothing is there: that is fine.
  absl::Status Delete(const kube::Resource& resource, std::string_view name);

 private:
  Cluster(ClusterOptions options, kube::ClusterConfig config, std::unique_ptr<kube::Transport> transport);
  absl::StatusOr<std::unique_ptr<kv::Store>> OpenNamed();
  absl::StatusOr<std::unique_ptr<kv::Store>> OpenOwn(const Document& secret);
  absl::StatusOr<std::unique_ptr<kv::Store>> OpenThroughServer(std::string_view ns, std::string_view service,
                                                               std::string_view port, std::string token);
  absl::Status CreateStore();
  bool HasKind(const kube::Resource& resource);
  absl::Status AwaitStore(kv::Store& store);

  const ClusterOptions options_;
  const kube::ClusterConfig config_;
  const bool inside_;  // we are a pod of it
  const std::unique_ptr<kube::Transport> transport_;
  const std::unique_ptr<kube::Api> api_;
};

// Of an AITrainingJob.
job::JobStatus StatusOf(const Document& job);
// Why it is as it is, for people: "Pending: 0/3 nodes are available". Empty: it says nothing.
std::string PhaseOf(const job::JobStatus& status);

}  // namespace trainyard::client
