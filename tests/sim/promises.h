// What an operator promises, checked against what the server has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/document.h"
#include "job/job_status.h"
#include "kube/http.h"
#include "tests/sim/cluster.h"

namespace trainyard::sim {

// The cluster must outlive it.
class Promises {
 public:
  explicit Promises(Cluster& cluster) : cluster_(cluster) {}

  // Those that were broken, with who and how.
  const std::vector<std::string>& broken() const { return broken_; }
  void Break(std::string what);

  // Jobs whose spec was changed so; an operator may see it later than it is so.
  void WasScaled(const std::string& job) { scaled_.insert(job); }
  void WasSuspended(const std::string& job) { suspended_.insert(job); }
  // An annotation asks the job to end so.
  void WasAsked(const std::string& uid, std::string state) { asked_.emplace(uid, std::move(state)); }

  // At any time: states, counters, limits, and never two pods of one index.
  void Check();
  // What an operator is about to write must be right by what is stored at that moment.
  void JudgeWrite(const kube::Request& request);
  // The same for a master that works for the job with that uid.
  void JudgeActorWrite(const std::string& job_uid, const kube::Request& request);
  // An operator has written: what others keep in the status of the job is as it was.
  void JudgeWritten(const kube::Request& request);
  // The script of that pod begins.
  void ScriptRuns(const std::string& pod_uid, std::int64_t attempt);
  // `count`: masters of the job that hold its claim.
  void CheckOneMaster(const std::function<std::ptrdiff_t(const std::string& job_uid)>& count);

  // When nothing goes wrong any more: whether all have come to their ends.
  bool AllSettled();
  // That they have; how many jobs there are.
  int CheckEnds();

 private:
  struct Known {
    std::string version;  // that was checked
    std::string state;
    std::map<std::string, std::int64_t> counters;
  };

  void CheckJob(const Document& job);
  void CheckPhase(const Document& job, const std::string& state);
  void CheckMembers();
  void CheckLimits(const Document& job);
  void CheckProgress(const Document& job);
  void CheckSize(const Document& job);
  void CheckTask(const Document& job);
  void JudgeBarrier(const Document& job, const job::JobStatus& status, const Document& pod);
  void JudgeCreate(const Document& pod);
  void JudgeDelete(const std::string& name, const kube::Request& request);
  std::optional<Document> OwnerOf(const Document& pod);
  job::JobStatus StatusOf(const Document& job) const;

  // What others than operators have written into the job's status, and who owns fields there.
  static std::string OthersPart(const Document& job);

  Cluster& cluster_;
  std::vector<std::string> broken_;
  std::set<std::string> scaled_;
  std::set<std::string> suspended_;
  std::map<std::string, Known> known_;                                   // by the uid of the job
  std::map<std::string, std::string> asked_;                             // the same
  std::map<std::string, std::int64_t> epochs_;                           // of the members; the same
  std::map<std::pair<std::string, std::int64_t>, std::string> members_;  // and what they were
  std::map<std::string, std::map<std::string, int>> attempts_;           // of a task, by the uid of the job
  std::map<std::string, std::int64_t> records_;                          // that are reported; the same
  std::set<std::string> scripts_;                                        // that have been run
  std::pair<std::string, std::string> others_;  // a job that is being written, and OthersPart() before
};

}  // namespace trainyard::sim
