// One graph job of a client: what graph_jobs.h promises of Job and Workers.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/mutex.h"
#include "client/cluster.h"
#include "client/graph_jobs.h"
#include "kv/store.h"
#include "ps/tables.h"

namespace trainyard::client {

// The sign of life of a foreground job's client: a leased key that the job's graphs watch. When it is gone,
// they end.
class Heartbeat {
 public:
  // Puts the key under a lease and renews it on a thread of its own. AlreadyExists: another client has the
  // job.
  static absl::StatusOr<std::unique_ptr<Heartbeat>> Start(kv::Store& store, const ps::JobKeys& keys,
                                                          absl::Duration lease);
  // Ends the lease, so that the job need not wait for it.
  ~Heartbeat();

 private:
  Heartbeat(kv::Store& store, const ps::JobKeys& keys, kv::Lease lease);
  void Renew();

  kv::Store& store_;
  const ps::JobKeys keys_;
  kv::Lease lease_;  // the thread's, while there is one
  Mutex mu_;
  CondVar changed_;
  bool stopping_ TY_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

class GraphJob final : public Job {
 public:
  // The cluster and the store must outlive it. `heartbeat`: of a foreground job.
  GraphJob(Cluster& cluster, kv::Store& store, std::string name, const JobOptions& options,
           std::unique_ptr<Heartbeat> heartbeat);

  ~GraphJob() override;

  // Takes up what the store has of a job that was started.
  absl::Status TakeUp(const ps::JobMeta& meta);

  const std::string& name() const override { return name_; }
  absl::StatusOr<Workers*> AddWorkers(std::vector<graph::Graph> graphs,
                                      const WorkersOptions& options) override;
  Workers* trainers() override;
  Workers* pservers() override;
  absl::Status Load(const std::string& folder, bool allow_missing) override;
  absl::StatusOr<std::int64_t> Save(const std::string& folder,
                                    std::optional<std::int64_t> step = std::nullopt) override;
  absl::StatusOr<JobStatus> Status() override;
  absl::Status Wait(absl::Duration timeout) override;
  absl::Status Stop() override;
  void LetGo() override { heartbeat_.reset(); }

 private:
  class Group;

  std::string ObjectName() const;
  // FailedPrecondition: a side is missing.
  absl::Status CheckComplete() const;
  const std::vector<graph::Graph>& PserverGraphs() const;
  // Puts the job into the store, if that has not been done.
  absl::Status CreateOnce();
  absl::Status StartGroup(const Group& group);
  absl::Status CreateToken();
  absl::Status SetReplicas(const Group& group, int replicas);
  // What the AITrainingJob says of the job, as JobLook promises. Warns when the job waits for something for
  // long.
  absl::Status Look();
  void TellOfWaiting(std::string phase);
  absl::Status WasKilled() const;
  absl::StatusOr<JobSettings> Settings();

  Cluster& cluster_;
  kv::Store& store_;
  const std::string name_;
  const JobOptions options_;
  const ps::JobKeys keys_;
  IdSource ids_ = IdSource::Random();
  std::unique_ptr<Group> trainers_;
  std::unique_ptr<Group> pservers_;
  std::string folder_;  // of its checkpoints, below the storage; set when it is created
  bool created_ = false;
  // What the AITrainingJob waits for, since when Look() has seen it, and of what people were told.
  std::string waits_;
  SteadyTime waits_since_;
  std::string told_;
  std::unique_ptr<Heartbeat> heartbeat_;
};

// Ends what the cluster runs of a job, and removes it. Then what the store has of it, and its checkpoints if
// this machine sees them.
absl::Status RemoveObjects(Cluster& cluster, std::string_view name);
absl::Status RemoveStored(kv::Store& store, const ps::JobKeys& keys);

}  // namespace trainyard::client
