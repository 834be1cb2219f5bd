// The one Master: what its three files share.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/clock.h"
#include "base/executor.h"
#include "base/mutex.h"
#include "base/pace.h"
#include "master/call.h"
#include "master/checkpoints.h"
#include "master/learner.h"
#include "master/master.h"
#include "master/pserver/shards.h"
#include "master/rpc/sessions.h"
#include "master/task_log.h"

namespace trainyard::master {

class ElasticMaster final : public Master, public SessionHandler, public Account {
 public:
  ElasticMaster(kv::Store& store, MasterOptions options);
  ~ElasticMaster() override;

  absl::Status Begin();

  // ---- Master
  int port() const override { return server_->port(); }
  absl::Status Wait() override;
  void Stop() override;
  Progress GetProgress() override;
  std::vector<WorkerView> GetWorkers() override;
  void WorkerIsGone(tasks::WorkerIndex worker, const std::string& pod) override;
  void PserverIsGone(int pserver, const std::string& pod) override;
  std::vector<PserverView> GetPservers() override;
  void Fail(const std::string& reason) override;
  void ExpectPods(const std::string& role, int live) override;

  // ---- SessionHandler
  void OnMessage(const std::shared_ptr<Session>& session, ps::Unpacked message) override;
  void OnPause() override;
  void OnEnd(const std::shared_ptr<Session>& session) override;

  // ---- Account
  Claim Check(tasks::WorkerIndex worker, tasks::TaskId task, tasks::Range records) override;
  Claim Accept(tasks::WorkerIndex worker, tasks::TaskId task, tasks::Range records) override;
  bool NothingToCome() override;
  void Applied(std::int64_t version, const std::vector<Contribution>& contributions,
               std::optional<double> loss) override;
  void FoundNonFinite(const std::string& what) override;
  void Refused() override;
  void Started() override;
  void Broken(const absl::Status& why) override;

 private:
  struct Worker {
    std::int64_t incarnation = 0;
    std::string pod;
    std::shared_ptr<Session> session;  // null: its stream has ended
    SteadyTime left;                   // when it did
    SteadyTime active;                 // when it last asked for something or told of something
    bool takes_part = false;           // a gradient of it was accepted, or a task of it is done
    std::int64_t records = 0;          // of those, since this process came
    std::int64_t version = 0;          // of the model, when it was the last time
  };

  // ---- Beginning (elastic_master.cc)
  absl::Status CountRecords();
  absl::Status TakeOver();
  absl::Status TakeRestarts() TY_EXCLUDES(mu_);
  absl::Status StoreRestarts(const Restarts& restarts) TY_EXCLUDES(mu_);
  absl::Status BeginTraining() TY_REQUIRES(mu_);
  absl::Status BeginTasks() TY_REQUIRES(mu_);
  void ExpectWorkers() TY_REQUIRES(mu_);
  absl::Status BeginWithModelOf(const std::string& path) TY_REQUIRES(mu_);
  absl::Status Resume(ElasticCheckpoint checkpoint) TY_REQUIRES(mu_);
  absl::StatusOr<ModelOrigin> OriginOfProgram() const;
  // Gives the model its place: here, or on the pservers.
  absl::StatusOr<std::unique_ptr<ModelPlace>> Keep(ModelOrigin origin);
  absl::Status KeepAndTake(ModelOrigin origin);
  // Pservers read a model's first values from a checkpoint: the file that has them now.
  absl::StatusOr<std::string> WriteFirstValues(const ModelOrigin& origin) TY_EXCLUDES(mu_);
  Model::Options ModelOptions() const {
    return {.threads = spec_.threads, .on_nonfinite = spec_.on_nonfinite};
  }
  tasks::Queue::State FreshQueue(tasks::TaskId next_id) const;
  tasks::StreamOptions OptionsOf(tasks::Kind kind) const;
  const std::string& Folder() const;

  // ---- Time (elastic_master.cc)
  void RunClock();
  void DoWhatIsDue() TY_EXCLUDES(mu_);
  void EndHungTasks() TY_REQUIRES(mu_);
  bool HoldsUpOthers(tasks::WorkerIndex worker) const TY_REQUIRES(mu_);
  void WriteCheckpoint(bool last) TY_EXCLUDES(mu_);
  void TakeCheckpoint(ModelPlace& place, bool last) TY_EXCLUDES(mu_);
  void FinishCheckpoint(ElasticCheckpoint& checkpoint, absl::Status saved, bool last) TY_EXCLUDES(mu_);
  // Another master is to go on from the newest checkpoint.
  void GoBack(const std::string& why) TY_EXCLUDES(mu_);

  // ---- Sessions (elastic_master_sessions.cc)
  void OnHello(const Call& call, const wire::Hello& hello) TY_REQUIRES(mu_);
  void OnNext(const Call& call, tasks::WorkerIndex worker, const wire::Next& next) TY_REQUIRES(mu_);
  // What a pserver says; without the lock, since what it waits for is not under it.
  void OnPserver(const Call& call, const wire::Request& request) TY_EXCLUDES(mu_);
  void OnReport(tasks::WorkerIndex worker, const wire::Report& report) TY_REQUIRES(mu_);
  tasks::WorkerIndex FreeIndex() const TY_REQUIRES(mu_);
  // All that the worker had is given back, but for what counts already.
  void Release(tasks::WorkerIndex worker) TY_REQUIRES(mu_);
  void GiveBack(tasks::WorkerIndex worker, const tasks::Task& task) TY_REQUIRES(mu_);
  // Tasks for those who wait, as far as there are any.
  void Serve() TY_REQUIRES(mu_);
  void TakesPart(tasks::WorkerIndex worker, std::int64_t records) TY_REQUIRES(mu_);
  bool Give(const Call& call, tasks::WorkerIndex worker) TY_REQUIRES(mu_);
  void Tell(const Call& call, wire::Given::Verdict verdict, const std::string& reason = "") TY_REQUIRES(mu_);

  // ---- What there is to do (elastic_master_account.cc)
  // After any change: whether something has ended, and what comes then.
  void GoOn() TY_REQUIRES(mu_);
  // No gradient will come before those that are summed are applied.
  bool OnlySummedIsLeft() const TY_REQUIRES(mu_);
  void StopTraining() TY_REQUIRES(mu_);
  void TellEvaluation() TY_REQUIRES(mu_);
  // Has the present version evaluated, now or after the evaluation that is under way.
  void WantEvaluation() TY_REQUIRES(mu_);
  // On the learner's thread.
  void BeginEvaluation() TY_EXCLUDES(mu_);
  void EndEvaluation() TY_REQUIRES(mu_);
  bool Evaluates() const TY_REQUIRES(mu_) { return !queue().IsOver(tasks::Kind::kEvaluation); }
  void BeginEnding() TY_REQUIRES(mu_);
  void Complete() TY_EXCLUDES(mu_);
  void FailNow(const std::string& reason) TY_REQUIRES(mu_);
  bool IsDueByTime() const TY_REQUIRES(mu_);
  std::string WhoIsWaitedFor() const TY_REQUIRES(mu_);
  const tasks::Queue& queue() const TY_REQUIRES(mu_) { return log_->queue(); }
  tasks::Answer Do(const tasks::Command& command) TY_REQUIRES(mu_) { return log_->Apply(command); }

  kv::Store& store_;
  const MasterOptions options_;
  const JobSpec& spec_ = options_.spec;
  const std::string prefix_;
  std::int64_t generation_ = 0;
  std::int64_t records_[tasks::kKinds] = {};  // that there are

  Mutex mu_;
  CondVar changed_;
  std::unique_ptr<TaskLog> log_ TY_GUARDED_BY(mu_);
  std::map<tasks::WorkerIndex, Worker> workers_ TY_GUARDED_BY(mu_);
  std::map<Session*, tasks::WorkerIndex> sessions_ TY_GUARDED_BY(mu_);
  std::deque<std::pair<Call, tasks::WorkerIndex>> waiting_ TY_GUARDED_BY(mu_);
  // Of tasks that workers have: the records before it are summed, or done.
  absl::flat_hash_map<tasks::TaskId, std::int64_t> accepted_ TY_GUARDED_BY(mu_);
  std::int64_t wholly_accepted_ TY_GUARDED_BY(mu_) = 0;  // of those, how many are so to their end
  bool model_ready_ TY_GUARDED_BY(mu_) = false;
  std::optional<SteadyTime> given_back_
      TY_GUARDED_BY(mu_);  // when a worker was lost whose tasks nobody has yet
  Phase phase_ TY_GUARDED_BY(mu_) = Phase::kStarting;
  std::string reason_ TY_GUARDED_BY(mu_);
  bool stopping_ TY_GUARDED_BY(mu_) = false;
  std::map<std::string, int> live_pods_ TY_GUARDED_BY(mu_);  // by role
  SteadyTime over_since_ TY_GUARDED_BY(mu_);                 // when the job was complete or had failed
  bool ended_ TY_GUARDED_BY(mu_) = false;
  absl::Status outcome_ TY_GUARDED_BY(mu_);

  std::int64_t version_ TY_GUARDED_BY(mu_) = 0;
  bool stepped_ TY_GUARDED_BY(mu_) = false;     // the model has made a step under this master
  Restarts restarts_ TY_GUARDED_BY(mu_);        // of masters in their pods, as they are stored
  bool evaluating_ TY_GUARDED_BY(mu_) = false;  // an evaluation is under way, or asked for
  bool begun_evaluation_ TY_GUARDED_BY(mu_) = false;
  bool wanted_ TY_GUARDED_BY(mu_) = false;  // another one is to follow
  SteadyTime begun_ TY_GUARDED_BY(mu_);     // when the model was ready
  SteadyTime last_evaluation_ TY_GUARDED_BY(mu_);
  SteadyTime last_checkpoint_ TY_GUARDED_BY(mu_);
  absl::Duration checkpoint_took_ TY_GUARDED_BY(mu_);
  std::int64_t checkpoint_version_ TY_GUARDED_BY(mu_) = -1;
  bool checkpointing_ TY_GUARDED_BY(mu_) = false;
  std::vector<tasks::Metric> metrics_ TY_GUARDED_BY(mu_);
  std::int64_t metrics_version_ TY_GUARDED_BY(mu_) = -1;
  std::optional<double> loss_ TY_GUARDED_BY(mu_);
  std::int64_t nonfinite_ TY_GUARDED_BY(mu_) = 0;  // how often one was found
  std::string last_nonfinite_ TY_GUARDED_BY(mu_);  // and where
  Pace nonfinite_pace_ TY_GUARDED_BY(mu_) = Pace(Clock::System().Steady());
  std::int64_t stale_ TY_GUARDED_BY(mu_) = 0;
  std::string checkpoint_ TY_GUARDED_BY(mu_);

  std::unique_ptr<Shards> shards_;    // null: the model is here
  std::map<Session*, int> pservers_;  // of the server's thread: whose stream it is
  std::unique_ptr<Learner> learner_;
  std::unique_ptr<SessionServer> server_;
  std::unique_ptr<Executor> writer_;  // of checkpoints
  std::thread clock_;
};

// The job's own keys in the store.
std::string KeyPrefix(std::string_view ns, const JobSpec& spec);

}  // namespace trainyard::master
