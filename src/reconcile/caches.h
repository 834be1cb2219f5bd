// What one controller sees of the cluster: jobs of its kind, their pods and services.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "job/job_view.h"
#include "kube/api.h"
#include "kube/expectations.h"
#include "kube/informer.h"
#include "kube/pod.h"
#include "reconcile/kind.h"
#include "reconcile/observe.h"
#include "reconcile/surroundings.h"

namespace trainyard::reconcile {

// What is given must outlive it.
class Caches {
 public:
  struct Options {
    std::string ns;  // empty: all
    std::optional<std::uint64_t> seed;
  };
  // What happened to a job. kOwnWrite: nothing but that its status was stored; who waits for that wants to
  // know.
  enum class News { kChange, kOwnWrite };
  // `wake` is called with the key of every job that something happened to, from the informers' threads.
  Caches(kube::Api& api, Clock& clock, const Kind& kind, Surroundings& surroundings, const Options& options,
         std::function<void(const kube::ObjectKey&, News)> wake);
  ~Caches() { Stop(); }  // before anything goes that the informers' threads use
  Caches(const Caches&) = delete;
  Caches& operator=(const Caches&) = delete;

  // ---- filling: in threads of their own, or step by step

  void Start();
  void Stop();
  absl::Status WaitForSync(absl::Duration timeout);
  bool HasSynced() const;
  // One step of each; whether anything came. For one thread that plays all parts.
  bool Step();

  // ---- reading

  std::shared_ptr<const CompactJob> FindJob(const kube::ObjectKey& key) const {
    return jobs_.cache().Get(key);
  }
  std::vector<std::shared_ptr<const CompactJob>> ListJobs() const { return jobs_.cache().List(); }
  // The job with all that is its own, or is nobody's and carries its labels.
  job::JobView Observe(const CompactJob& job);
  // Of an object that is to be adopted.
  std::shared_ptr<const kube::CompactPod> FindPod(const kube::ObjectKey& key) const {
    return pods_.cache().Get(key);
  }
  std::shared_ptr<const CompactService> FindService(const kube::ObjectKey& key) const {
    return services_.cache().Get(key);
  }

  // ---- own writes, remembered until they are seen

  kube::Expectations& job_writes() { return job_writes_; }
  kube::Expectations& pod_writes() { return pod_writes_; }
  kube::Expectations& service_writes() { return service_writes_; }
  kube::Expectations& config_map_writes() { return config_map_writes_; }
  // Whether the caches have all of the job's writes.
  kube::Expectations::Verdict Check(const kube::ObjectKey& job);

 private:
  std::uint64_t NextSeed();
  std::vector<kube::InformerBase*> Informers();
  std::optional<job::ConfigMapView> FindConfigMap(const CompactJob& job, const std::string& name) const;
  void JobChanged(const kube::Change<CompactJob>& change);
  template <typename T>
  void ChildChanged(const kube::Change<T>& change);
  void NodeChanged(std::string_view name);
  template <typename T>
  void WakeOwner(const T& object);

  const Kind& kind_;
  Surroundings& surroundings_;
  IdSource seeds_;
  const std::function<void(const kube::ObjectKey&, News)> wake_;
  kube::Expectations job_writes_;
  kube::Expectations pod_writes_;
  kube::Expectations service_writes_;
  kube::Expectations config_map_writes_;
  kube::Informer<CompactJob> jobs_;
  kube::Informer<kube::CompactPod> pods_;
  kube::Informer<CompactService> services_;
  kube::Informer<ConfigMapObject> config_maps_;
  kube::Cache<kube::CompactPod>::Index pods_by_owner_ = 0;
  kube::Cache<kube::CompactPod>::Index pods_by_node_ = 0;
  kube::Cache<CompactService>::Index services_by_owner_ = 0;
};

}  // namespace trainyard::reconcile
