// What the benchmarks of the operator load a cluster with: jobs, a kubelet that says Running at once, and a
// counter of what is made. It speaks with any API server.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/process.h"
#include "kube/api.h"
#include "kube/http.h"

namespace trainyard::bench {

const kube::Resource& TfJobs();

// A TFJob of so many workers, which nobody schedules but the kubelet below.
std::string JobBody(std::string_view name, int workers);
// A pod and a service as the operator makes them for such a job: what they cost the server is the operator's
// limit.
std::string LikePodBody(std::string_view name, int workers);
std::string LikeServiceBody(std::string_view name);

// A client of a cluster by its kubeconfig.
class JobLoad {
 public:
  static absl::StatusOr<std::unique_ptr<JobLoad>> Connect(std::string kubeconfig);
  const std::string& kubeconfig() const { return kubeconfig_; }
  kube::Api& api() { return *api_; }
  kube::Transport& transport() { return *transport_; }

  // Puts the kinds of jobs there.
  absl::Status InstallKinds();
  absl::Status MakeNamespace(const std::string& ns);
  // All at once; an error if one is refused.
  absl::Status CreateAll(const kube::Resource& resource, const std::string& ns,
                         std::vector<std::string> bodies);
  // Deletes all of the namespace's objects of the resource.
  absl::Status DeleteAll(const kube::Resource& resource, const std::string& ns);

 private:
  std::string kubeconfig_;
  std::unique_ptr<kube::Transport> transport_;
  std::unique_ptr<kube::Api> api_;
};

// Counts the objects of a collection, as the server tells of them.
class ObjectCounter {
 public:
  ObjectCounter(kube::Transport& transport, const kube::Resource& resource, const std::string& ns);
  ~ObjectCounter();
  std::int64_t count() const;

 private:
  struct Feed;
  std::unique_ptr<Feed> feed_;
};

// Waits until there are so many.
absl::Status AwaitCount(const std::function<std::int64_t()>& count, std::int64_t wanted);

// Says of every pod of the namespace that it runs, as soon as it is there.
class InstantKubelet {
 public:
  // Over a connection of its own, as a kubelet is another process. Pods have one container, of that name.
  static absl::StatusOr<std::unique_ptr<InstantKubelet>> Start(const std::string& kubeconfig, std::string ns,
                                                               std::string_view container = "tensorflow");
  ~InstantKubelet();
  std::int64_t started() const { return started_; }
  std::int64_t pods() const;  // that it knows of

 private:
  InstantKubelet() = default;
  class Feed;
  std::unique_ptr<Feed> feed_;
  std::atomic<std::int64_t> started_ = 0;
};

// `trainyard operator` as a process of its own.
class OperatorProcess {
 public:
  static absl::StatusOr<OperatorProcess> Start(const std::string& trainyard, const std::string& kubeconfig,
                                               const std::string& log);
  // Of the process so far.
  absl::StatusOr<absl::Duration> CpuTime() const;
  absl::StatusOr<double> ResidentMiB() const;

 private:
  explicit OperatorProcess(Child child) : child_(std::move(child)) {}
  Child child_;
};

}  // namespace trainyard::bench
