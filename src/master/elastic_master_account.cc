// Which records count, and what follows when they do: evaluations, the end.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/document.h"
#include "base/json.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "graph/exec/saved.h"
#include "master/elastic_master.h"

namespace trainyard::master {
namespace {

constexpr double kLossMemory = 0.95;  // of the last losses, in their mean
constexpr std::size_t kMostWaitedFor = 3;

}  // namespace

Account::Claim ElasticMaster::Check(tasks::WorkerIndex worker, tasks::TaskId task, tasks::Range records) {
  const MutexLock lock(mu_);
  const std::optional<tasks::Queue::Leased> leased = queue().FindTask(task);
  if (!leased || leased->worker != worker || leased->task.kind != tasks::Kind::kTraining) return Claim::kLost;
  const auto found = accepted_.find(task);
  const std::int64_t accepted = found == accepted_.end() ? leased->task.records.begin : found->second;
  if (records.end <= accepted) return Claim::kRepeat;
  // Records are told of in order, and none is left out.
  if (records.begin != accepted || records.size() <= 0 || records.end > leased->task.records.end)
    return Claim::kLost;
  return Claim::kNew;
}

Account::Claim ElasticMaster::Accept(tasks::WorkerIndex worker, tasks::TaskId task, tasks::Range records) {
  if (const Claim claim = Check(worker, task, records); claim != Claim::kNew) return claim;
  const MutexLock lock(mu_);
  // Between the two it may have been given to another.
  const std::optional<tasks::Queue::Leased> leased = queue().FindTask(task);
  if (!leased || leased->worker != worker) return Claim::kLost;
  accepted_[task] = records.end;
  TakesPart(worker, records.size());
  if (records.end == leased->task.records.end) ++wholly_accepted_;
  return Claim::kNew;
}

bool ElasticMaster::NothingToCome() {
  const MutexLock lock(mu_);
  return OnlySummedIsLeft();
}

bool ElasticMaster::OnlySummedIsLeft() const {
  const tasks::Stream* const stream = queue().Find(tasks::Kind::kTraining);
  if (stream == nullptr || wholly_accepted_ != queue().CountLeased(tasks::Kind::kTraining)) return false;
  return stream->IsDrained() || (stream->waiting() == 0 && !stream->options().overlap);
}

void ElasticMaster::Applied(std::int64_t version, const std::vector<Contribution>& contributions,
                            std::optional<double> loss) {
  bool evaluate = false;
  bool checkpoint = false;
  {
    const MutexLock lock(mu_);
    const bool stepped = std::exchange(version_, version) != version;
    stepped_ = stepped_ || stepped;
    // A loss that is not finite is shown as it is, and the mean begins after it.
    if (loss && loss_ && std::isfinite(*loss_) && std::isfinite(*loss)) {
      *loss_ += (*loss - *loss_) * (1 - kLossMemory);
    } else if (loss) {
      loss_ = loss;
    }
    for (const Contribution& contribution : contributions) {
      const tasks::Answer answer = Do(tasks::Advance{contribution.task, contribution.until});
      if (!answer.done) continue;
      accepted_.erase(contribution.task);
      --wholly_accepted_;
    }
    if (spec_.max_steps > 0 && version >= spec_.max_steps && phase_ == Phase::kTraining) StopTraining();
    if (stepped && phase_ == Phase::kTraining && spec_.evaluation_steps > 0 &&
        version % spec_.evaluation_steps == 0 &&
        Clock::System().Steady() - begun_ >= spec_.evaluation_delay) {
      evaluate = !evaluating_;
      wanted_ = !evaluate;
      evaluating_ = true;
    }
    checkpoint = stepped && spec_.checkpoint_steps > 0 && version % spec_.checkpoint_steps == 0;
  }
  if (evaluate) BeginEvaluation();
  if (checkpoint) WriteCheckpoint(false);
  const MutexLock lock(mu_);
  GoOn();
}

// What workers still have of it is dropped, so that no step more is made.
void ElasticMaster::StopTraining() {
  Do(tasks::Stop{tasks::Kind::kTraining});
  for (const auto& [index, worker] : workers_) {
    for (const tasks::Task& task : queue().TasksOf(index)) {
      if (task.kind == tasks::Kind::kTraining) GiveBack(index, task);
    }
  }
}

void ElasticMaster::FoundNonFinite(const std::string& what) {
  const MutexLock lock(mu_);
  ++nonfinite_;
  last_nonfinite_ = what;
  if (nonfinite_pace_.Take(Clock::System().Steady()))
    log::Warn("a number is not finite",
              {{"what", what}, {"times", nonfinite_}, {"policy", graph::Name(spec_.on_nonfinite)}});
}

void ElasticMaster::Refused() {
  const MutexLock lock(mu_);
  ++stale_;
}

void ElasticMaster::Started() {
  const MutexLock lock(mu_);
  model_ready_ = true;
  begun_ = last_evaluation_ = Clock::System().Steady();
  GoOn();
}

void ElasticMaster::Broken(const absl::Status& why) {
  if (absl::IsUnavailable(why)) return GoBack(std::string(Message(why)));
  const MutexLock lock(mu_);
  FailNow(StrCat("the model could not be updated: ", Message(why)));
}

void ElasticMaster::Fail(const std::string& reason) {
  const MutexLock lock(mu_);
  FailNow(reason);
}

void ElasticMaster::FailNow(const std::string& reason) {
  if (IsOver(phase_)) return;
  log::Error("the job has failed", {{"job", spec_.name}, {"reason", reason}});
  phase_ = Phase::kFailed;
  reason_ = reason;
  outcome_ = absl::InternalError(reason);
  over_since_ = Clock::System().Steady();
  if (shards_ != nullptr) shards_->End();
  Serve();
}

void ElasticMaster::GoOn() {
  if (IsOver(phase_) || phase_ == Phase::kEnding) return Serve();
  if (wholly_accepted_ > 0 && OnlySummedIsLeft()) learner_->Flush();
  if (evaluating_ && begun_evaluation_ && !Evaluates()) EndEvaluation();
  switch (spec_.kind) {
    case JobKind::kTrain:
      if (model_ready_ && queue().IsOver(tasks::Kind::kTraining) && !evaluating_) {
        const bool evaluate = !spec_.validation_data.empty() && metrics_version_ != version_;
        if (evaluate) {
          phase_ = Phase::kEvaluating;
          WantEvaluation();
        } else {
          BeginEnding();
        }
      }
      break;
    case JobKind::kEvaluate:
      if (!Evaluates() && metrics_version_ < 0) {
        metrics_ = queue().MeanMetrics();
        metrics_version_ = version_;
        BeginEnding();
      }
      break;
    case JobKind::kPredict:
      if (queue().IsOver(tasks::Kind::kPrediction)) BeginEnding();
      break;
  }
  Serve();
}

bool ElasticMaster::IsDueByTime() const {
  const SteadyTime now = Clock::System().Steady();
  return phase_ == Phase::kTraining && model_ready_ && spec_.evaluation_every > absl::ZeroDuration() &&
         !evaluating_ && version_ != metrics_version_ && now - begun_ >= spec_.evaluation_delay &&
         now - last_evaluation_ >= spec_.evaluation_every;
}

void ElasticMaster::WantEvaluation() {
  if (evaluating_) {
    wanted_ = true;
    return;
  }
  evaluating_ = true;
  learner_->Do([this](ModelPlace*) { BeginEvaluation(); });
}

void ElasticMaster::BeginEvaluation() {
  learner_->Freeze();
  const MutexLock lock(mu_);
  if (phase_ == Phase::kFailed) return;
  begun_evaluation_ = true;
  last_evaluation_ = Clock::System().Steady();
  Do(tasks::Begin{
      .kind = tasks::Kind::kEvaluation, .options = OptionsOf(tasks::Kind::kEvaluation), .version = version_});
  GoOn();
}

void ElasticMaster::EndEvaluation() {
  evaluating_ = begun_evaluation_ = false;
  metrics_ = queue().MeanMetrics();
  metrics_version_ = queue().evaluated_version();
  TellEvaluation();
  if (std::exchange(wanted_, false) && phase_ == Phase::kTraining && metrics_version_ != version_)
    WantEvaluation();
}

void ElasticMaster::TellEvaluation() {
  Object metrics;
  for (const tasks::Metric& metric : metrics_) metrics[metric.name] = NumberDocument(metric.value);
  const std::string line = PrintJson(Object{{"version", metrics_version_}, {"metrics", std::move(metrics)}});
  log::Info("evaluated", {{"job", spec_.name}, {"result", line}});
  if (spec_.output.empty()) return;
  writer_->Post([path = StrCat(spec_.output, "/evaluations.jsonl"), folder = spec_.output, line] {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    std::ofstream(path, std::ios::app) << line << std::endl;
  });
}

void ElasticMaster::BeginEnding() {
  if (version_ == 0 && nonfinite_ > 0)
    return FailNow(StrCat("no step could be made: ", last_nonfinite_, ": ", graph::kNonFiniteHint));
  phase_ = Phase::kEnding;
  if (spec_.kind == JobKind::kEvaluate) TellEvaluation();
  if (spec_.kind != JobKind::kTrain || spec_.tasks_only) return writer_->Post([this] { Complete(); });
  learner_->Do([this](ModelPlace* place) {
    if (place != nullptr) TakeCheckpoint(*place, true);
  });
}

// On the writer's thread.
void ElasticMaster::Complete() {
  if (spec_.kind == JobKind::kTrain && !spec_.tasks_only && !spec_.output.empty()) {
    absl::StatusOr<ElasticCheckpoint> last = ReadNewestCheckpoint(Folder(), spec_.id);
    graph::Scope scope;
    if (last.ok()) {
      for (auto& [name, tensor] : last->variables) scope.Put(name, std::move(tensor));
    }
    const absl::Status saved = last.ok() ? graph::SaveVariables(scope, spec_.output) : last.status();
    if (!saved.ok()) {
      const MutexLock lock(mu_);
      return FailNow(StrCat("the model could not be written: ", Message(saved)));
    }
  }
  const MutexLock lock(mu_);
  log::Info("the job is complete", {{"job", spec_.name}, {"version", version_}});
  phase_ = Phase::kComplete;
  over_since_ = Clock::System().Steady();
  if (shards_ != nullptr) shards_->End();
  Serve();
}

std::string ElasticMaster::WhoIsWaitedFor() const {
  if (phase_ != Phase::kTraining && phase_ != Phase::kEvaluating && phase_ != Phase::kPredicting) return "";
  if (shards_ != nullptr) {
    if (const std::string missing = shards_->WhoIsMissing(); !missing.empty()) return missing;
  }
  if (workers_.empty()) return "a worker to come";
  if (!model_ready_) return "a worker to give the model its first values";
  if (waiting_.empty()) return "";
  // Somebody has nothing to do: because of whom?
  std::string text;
  std::size_t others = 0;
  for (const auto& [index, worker] : workers_) {
    const std::vector<tasks::Task> tasks = queue().TasksOf(index);
    if (tasks.empty()) continue;
    if (++others > kMostWaitedFor) continue;
    StrAppend(
        text, text.empty() ? "" : ", ", "worker ", index, " (", tasks::Describe(tasks.front()), ", for ",
        absl::FormatDuration(absl::Trunc(Clock::System().Steady() - worker.active, absl::Seconds(1))), ")");
  }
  if (others > kMostWaitedFor) StrAppend(text, " and ", others - kMostWaitedFor, " more");
  return text;
}

Progress ElasticMaster::GetProgress() {
  const MutexLock lock(mu_);
  Progress progress;
  progress.phase = phase_;
  progress.reason = reason_;
  progress.version = version_;
  progress.loss = loss_;
  progress.nonfinite = nonfinite_;
  progress.last_nonfinite = last_nonfinite_;
  progress.evaluated = metrics_version_;
  progress.stale = stale_;
  for (const tasks::Metric& metric : metrics_)
    progress.metrics.push_back({.name = metric.name, .value = metric.value});
  const tasks::Kind kind = phase_ == Phase::kEvaluating       ? tasks::Kind::kEvaluation
                           : spec_.kind == JobKind::kPredict  ? tasks::Kind::kPrediction
                           : spec_.kind == JobKind::kEvaluate ? tasks::Kind::kEvaluation
                                                              : tasks::Kind::kTraining;
  if (const tasks::Stream* const stream = log_ == nullptr ? nullptr : queue().Find(kind)) {
    progress.epoch = stream->epoch() + 1;
    progress.epochs = stream->options().epochs;
    progress.records = stream->done_in_epoch();
    progress.epoch_records = stream->options().records;
    progress.total_records = stream->done();
    progress.waiting_tasks = stream->waiting();
  }
  for (const auto& [index, worker] : workers_) {
    if (worker.session == nullptr) continue;
    ++progress.workers;
    progress.members[{job::MemberRole::kWorker, index}] = {.records = worker.records,
                                                           .version = worker.version};
  }
  if (shards_ != nullptr) progress.pservers = static_cast<int>(shards_->Connected().size());
  progress.waiting = WhoIsWaitedFor();
  progress.checkpoint = checkpoint_;
  progress.master_restarts = restarts_;
  return progress;
}

std::vector<WorkerView> ElasticMaster::GetWorkers() {
  const MutexLock lock(mu_);
  std::vector<WorkerView> views;
  views.reserve(workers_.size());
  for (const auto& [index, worker] : workers_) {
    views.push_back({.index = index,
                     .pod = worker.pod,
                     .incarnation = worker.incarnation,
                     .connected = worker.session != nullptr,
                     .takes_part = worker.takes_part,
                     .has_tasks = queue().HasTasks(index),
                     .idle = Clock::System().Steady() - worker.active});
  }
  return views;
}

void ElasticMaster::WorkerIsGone(tasks::WorkerIndex worker, const std::string& pod) {
  const MutexLock lock(mu_);
  const auto known = workers_.find(worker);
  if (known == workers_.end() || known->second.pod != pod || known->second.session != nullptr) return;
  Release(worker);
  workers_.erase(known);
  GoOn();
}

void ElasticMaster::PserverIsGone(int pserver, const std::string& pod) {
  if (shards_ != nullptr) shards_->Gone(pserver, pod);
}

std::vector<PserverView> ElasticMaster::GetPservers() {
  return shards_ == nullptr ? std::vector<PserverView>() : shards_->Connected();
}

}  // namespace trainyard::master
