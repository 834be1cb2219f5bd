// Masters of elastic jobs as actors: each is the real link to its job (master/pods/job_link.h), the real
// claim of the job's folder and the real task log, around a training that only counts its records.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/document.h"
#include "base/ids.h"
#include "kv/store.h"
#include "master/spec.h"
#include "tests/sim/cluster.h"
#include "tests/sim/faulty_transport.h"
#include "tests/sim/promises.h"

namespace trainyard::sim {

// The annotation of an elastic job with what it is to do.
inline constexpr std::string_view kElasticSettings = "sim/job";

// What one pod of a master keeps in the job's storage, and the pod after it copies.
struct Training {
  std::unique_ptr<kv::Store> queue;
  std::map<std::pair<std::int64_t, std::int64_t>, int> counted;  // how often, by epoch and record
};

// The storage that outlives nodes.
class Storage {
 public:
  explicit Storage(Clock& clock) : clock_(clock) {}
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  // Where the queues of that job are, a folder of the machine.
  std::string FolderOf(const std::string& job_uid);
  // By the path that the claim gave; what the pod before had is copied when it is opened first.
  Training& Open(const std::string& path);

 private:
  Clock& clock_;
  std::string root_;                           // empty: not needed yet
  std::map<std::string, Training> trainings_;  // by path
};

class ElasticMasters {
 public:
  ElasticMasters(Cluster& cluster, Promises& promises, std::uint64_t seed);
  ~ElasticMasters();

  // A job for the cluster, with its settings in an annotation.
  Document MakeJob(const std::string& name);
  static bool IsElastic(const Document& job);

  void SetRates(const FaultRates& rates, bool crashes);
  // Every process does a little.
  void Step();
  // The node is cut off. Without power its processes end; else they go on.
  void NodeIsLost(const std::string& node, bool power);
  void KillOne();

  // Pods in which a master works for a job that goes on.
  std::vector<Document> WorkingPods();
  // How often a pod has claimed the job.
  int ClaimsOf(const std::string& job_uid) const;
  // Of a job that has succeeded.
  void CheckEnd(const Document& job);
  int writes() const { return writes_; }

 private:
  class Trainer;
  struct Process;

  void StartProcess(const Document& pod);
  void Run(Process& process, const Document* pod);
  bool Chance(int percent) { return random_.Below(100) < static_cast<std::uint64_t>(percent); }
  void End(Process& process, int exit_code);

  Cluster& cluster_;
  Promises& promises_;
  IdSource random_;
  Storage storage_;
  FaultRates rates_;
  bool crashes_ = true;
  int writes_ = 0;
  std::map<std::string, std::unique_ptr<Process>> processes_;  // by the pod's uid
  std::map<std::string, std::vector<std::string>> claims_;     // paths, by the job's uid
};

}  // namespace trainyard::sim
