// The master's link to the AITrainingJob that it works for. The operator keeps the job's pods; the master
// starts its workers by giving their group a size, hears of pods that are gone, asks for pods to be replaced
// whose process it has lost, and writes its progress into the job's status.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/document.h"
#include "base/mutex.h"
#include "base/pace.h"
#include "job/progress.h"
#include "kube/api.h"
#include "kube/informer.h"
#include "kube/pod.h"
#include "master/master.h"
#include "master/pods/lost_streams.h"

namespace trainyard::master {

// The groups of an elastic job.
inline constexpr std::string_view kMasterGroup = "master";
inline constexpr std::string_view kWorkerGroup = "worker";
inline constexpr std::string_view kPserverGroup = "pserver";

// "loss=0.2107 accuracy_0=0.96": how well it goes. Empty: that is not known yet.
std::string PrintMetrics(const job::Progress& progress);

// How fast records are used: by what was reported before, smoothed. Pure.
class Rates {
 public:
  // Records a second; nothing: that is not known yet, or the count has gone back.
  std::optional<double> See(const std::string& who, std::int64_t records, SteadyTime now);

 private:
  struct Known {
    std::int64_t records = 0;
    SteadyTime at;
    std::optional<double> rate;
  };
  std::map<std::string, Known> known_;
};

// Adds what the master itself does not know: how fast it goes, and `waiting`, which pods it waits for, if for
// any.
void CompleteProgress(job::Progress& progress, std::string_view waiting, Rates& rates, SteadyTime now);

// A merge patch that starts the workers: the group gets its size and, if that may change, its bounds.
Object StartPatch(const JobSpec& spec);

// A pod of the job, with the annotation that FailureCounts reads.
absl::StatusOr<kube::CompactPod> ParseMemberPod(std::string json);

// Finds how often the pod of a member failed in a row by its own fault. The operator counts: each pod carries
// its attempt. What is kept here, and in the job's progress for the next master, is from where on to count.
// Pure.
class FailureCounts {
 public:
  using Member = std::pair<std::string, int>;  // its group and index
  // Whether the pod failed by its own fault: no signal, eviction or lost node ended it.
  static bool IsOwnFault(const kube::CompactPod& pod);
  static int AttemptOf(const kube::CompactPod& pod);

  FailureCounts() = default;
  explicit FailureCounts(job::GroupAttempts settled) : settled_(std::move(settled)) {}
  // With the one of this attempt.
  int InARow(const Member& member, int attempt) const { return attempt - SettledOf(member, attempt); }
  // What failed up to this attempt does not matter any more: the member has worked since.
  void Settle(const Member& member, int attempt);
  // One attempt up to this one ended through no fault of its own.
  void Excuse(const Member& member, int attempt);
  const job::GroupAttempts& settled() const { return settled_; }

 private:
  // -1: none, or the operator counts from 0 again because the member was gone for a while.
  int SettledOf(const Member& member, int attempt) const;

  job::GroupAttempts settled_;
};

class JobLink {
 public:
  struct Options {
    kube::Resource resource;  // of the job
    std::string ns;
    std::string uid;  // of the job: one of the same name may have been there before
    JobSpec spec;
    absl::Duration every = absl::Seconds(1);  // between two reports of progress, at least
    std::optional<std::uint64_t> seed;        // nothing: a random one
  };

  // What is given outlives it.
  JobLink(kube::Api& api, Clock& clock, Master& master, Options options);
  // Reports one last time.
  ~JobLink();
  JobLink(const JobLink&) = delete;
  JobLink& operator=(const JobLink&) = delete;

  // In threads of its own; once.
  void Start();
  // One step in the caller's thread instead; whether it did anything.
  bool Step();

 private:
  void Run();
  // The job as it is. The first time, learns what a master before this one knew, and begins to watch pods.
  absl::StatusOr<Document> ReadJob();
  // Does what is due; when it wants to look again.
  SteadyTime Look();
  // Not OK: to be tried again.
  absl::Status StartWorkers();
  void Hear(const kube::Change<kube::CompactPod>& change);
  void HearOfEnd(const kube::CompactPod& pod);
  void CountPods();
  void SettleAttempts();
  void ReplaceLost();
  std::string FindWaiting() const;
  // Which member of the job the pod is; no group: none.
  FailureCounts::Member MemberOf(const kube::CompactPod& pod) const;
  void Report(bool last);
  void LogMetrics(const job::Progress& progress, bool last);

  kube::Api& api_;
  Clock& clock_;
  Master& master_;
  const Options options_;
  kube::Informer<kube::CompactPod> pods_;
  // Of the thread.
  bool threaded_ = false;
  bool started_ = false;
  bool read_ = false;
  LostStreams streams_;
  job::Progress reported_;
  Rates rates_;
  Pace pace_;
  std::string logged_;
  std::int64_t logged_version_ = 0;
  SteadyTime next_;  // look

  const std::unique_ptr<Alarm> alarm_;
  Mutex mu_;
  bool stopping_ TY_GUARDED_BY(mu_) = false;
  FailureCounts failures_ TY_GUARDED_BY(mu_);
  std::thread thread_;
};

// Writes into the job's status that the job could not even begin.
absl::Status ReportFailure(kube::Api& api, const JobLink::Options& options, const std::string& reason);

}  // namespace trainyard::master
