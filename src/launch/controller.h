// Keeps tasks as they should be: watches their AITrainingJobs and pods, listens to their agents, decides
// (launch/plan.h), acts, and stores where they stand. The operator keeps the pods. All that the launcher
// knows is in the cluster: it may be killed at any point and goes on.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/mutex.h"
#include "kube/api.h"
#include "kube/event_recorder.h"
#include "kube/expectations.h"
#include "kube/informer.h"
#include "kube/pod.h"
#include "kube/runner.h"
#include "launch/agent_watch.h"
#include "launch/plan.h"
#include "launch/task.h"

namespace trainyard::launch {

// A task as its AITrainingJob has it.
struct StoredTask {
  kube::ObjectMeta meta;
  TaskSpec spec;
  Progress status;
  SeenJob job;
  bool cancel = false;  // a user wants it to end
  std::string wrong;    // it cannot be understood: why
};
absl::StatusOr<StoredTask> ParseStoredTask(std::string json);

// Whose pod it is; nothing: its labels do not say.
std::optional<MemberId> MemberOf(const kube::CompactPod& pod);

struct ControllerOptions {
  std::string ns = "default";
  AgentSource agent;
  int workers = 4;
  std::optional<std::uint64_t> seed;  // nothing: a random one
};

class Controller {
 public:
  // What is given outlives it.
  Controller(kube::Api& api, http::Calls& calls, Clock& clock, ControllerOptions options);
  ~Controller();

  // FailedPrecondition: the cluster has no AITrainingJobs, and how it gets them.
  absl::Status Start();
  absl::Status WaitForSync(absl::Duration timeout);
  // Instead of Start(): takes one step in the caller's thread, and returns whether it did anything.
  bool Step();

  // ---- What clients want. Errors are for them: InvalidArgument, AlreadyExists, NotFound,
  // FailedPrecondition.
  absl::Status Create(const TaskSpec& spec);
  absl::Status Cancel(const std::string& task);
  absl::Status Delete(const std::string& task);
  std::shared_ptr<const StoredTask> Find(const std::string& task) const;
  std::vector<std::shared_ptr<const StoredTask>> List() const;
  // The pods that a task has, the oldest first.
  std::vector<std::shared_ptr<const kube::CompactPod>> PodsOf(const std::string& task) const;
  // Waits until something of any task has changed since `seen`, or so long; the number to give next.
  std::uint64_t AwaitChange(std::uint64_t seen, absl::Duration timeout);

  kube::Api& api() { return api_; }
  const std::string& ns() const { return options_.ns; }

 private:
  kube::Pass PassOver(const kube::ObjectKey& key);
  kube::Pass Carry(const kube::ObjectKey& key, const StoredTask& task);
  TaskView Observe(const StoredTask& task);
  // Before the job, whose pods need it.
  absl::Status CreateSecret(const TaskSpec& spec);
  // Reads the token, and gives the Secret to the job.
  absl::Status LearnToken(const StoredTask& task);
  std::string TokenOf(const StoredTask& task) const;
  // On the condition that the job is as it was seen.
  absl::Status Store(const kube::ObjectKey& key, const StoredTask& task, const Progress& status);
  // A failure is shown as the task's reason.
  kube::Pass GiveReason(const kube::ObjectKey& key, const StoredTask& task, const absl::Status& failure);
  absl::Status Act(const StoredTask& task, const std::vector<Action>& actions);
  void CallAgents(const StoredTask& task, const std::vector<Action>& actions);
  absl::Duration HoldBack(const kube::ObjectKey& key, const Progress& before, const Progress& after);
  void Tell(const StoredTask& task, const Progress& status);
  void ForgetPods(const kube::ObjectKey& key);
  void Changed(const kube::ObjectKey& key);

  kube::Api& api_;
  http::Calls& calls_;
  Clock& clock_;
  const ControllerOptions options_;
  IdSource seeds_;
  kube::WorkQueue queue_;
  kube::EventRecorder events_;
  kube::Expectations writes_;
  AgentWatch agents_;
  kube::Informer<StoredTask> tasks_;
  kube::Informer<kube::CompactPod> pods_;
  const kube::Cache<kube::CompactPod>::Index pods_by_task_;
  kube::Runner runner_;

  mutable Mutex mu_;
  CondVar changed_;
  std::uint64_t changes_ TY_GUARDED_BY(mu_) = 0;
  std::map<kube::ObjectKey, SteadyTime> stored_ TY_GUARDED_BY(mu_);  // when
  struct Token {
    std::string uid;  // of the job
    std::string token;
  };
  std::map<kube::ObjectKey, Token> tokens_ TY_GUARDED_BY(mu_);
  std::map<kube::ObjectKey, std::set<std::string>> watched_ TY_GUARDED_BY(mu_);  // uids of pods
};

}  // namespace trainyard::launch
