#include "master/elastic_master.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/base64.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "graph/exec/saved.h"
#include "graph/ir/codec.h"
#include "graph/pass/halves.h"
#include "master/data.h"
#include "master/pserver/model_on_pservers.h"
#include "master/spec.h"

namespace trainyard::master {
namespace {

constexpr int kCheckpointShare = 20;  // of the time between two, the most that writing one may take
constexpr absl::Duration kTick = absl::Milliseconds(20);
constexpr int kOwnerLength = 16;
constexpr int kMostLosses = 10;  // of pservers without a step in between
constexpr absl::Duration kComeBack =
    absl::Seconds(5);  // in which workers find a master that was started again
constexpr absl::Duration kFarewell = absl::Seconds(3);  // in which workers hear that the job is over

// The checkpoint's model, as of that version.
absl::StatusOr<ModelOrigin> OriginOf(ElasticCheckpoint checkpoint, std::int64_t version) {
  ModelOrigin origin{.shared = std::move(checkpoint.shared),
                     .version = version,
                     .values = std::move(checkpoint.variables),
                     .all_values = true,
                     .checkpoint = std::move(checkpoint.file)};
  TY_ASSIGN_OR_RETURN(origin.learning.main, graph::Decode(checkpoint.update));
  TY_ASSIGN_OR_RETURN(origin.learning.startup, graph::Decode(checkpoint.startup));
  return origin;
}

}  // namespace

std::string KeyPrefix(std::string_view ns, const JobSpec& spec) {
  return StrCat("trainyard/elastic/", ns, "/", spec.name, "/", spec.id);
}

ElasticMaster::ElasticMaster(kv::Store& store, MasterOptions options)
    : store_(store), options_(std::move(options)), prefix_(KeyPrefix(options_.ns, options_.spec)) {}

ElasticMaster::~ElasticMaster() {
  {
    const MutexLock lock(mu_);
    stopping_ = true;
    ended_ = true;
    changed_.SignalAll();
  }
  // First whoever gives the others something to do. A stream that has ended takes answers and drops them.
  server_.reset();
  if (shards_ != nullptr) shards_->Stop();
  if (clock_.joinable()) clock_.join();
  if (learner_ != nullptr) learner_->Close();
  writer_.reset();
  learner_.reset();
  const MutexLock lock(mu_);
  log_.reset();
}

const std::string& ElasticMaster::Folder() const {
  return spec_.checkpoint_dir.empty() ? options_.folder : spec_.checkpoint_dir;
}

tasks::StreamOptions ElasticMaster::OptionsOf(tasks::Kind kind) const {
  const bool training = kind == tasks::Kind::kTraining;
  return {.records = records_[static_cast<int>(kind)],
          .records_per_task = spec_.RecordsPerTask(),
          .epochs = training ? spec_.epochs : 1,
          .seed = training && spec_.shuffle == "tasks" ? spec_.seed : 0,
          .overlap = training && spec_.overlap_epochs};
}

absl::Status ElasticMaster::Begin() {
  TY_RETURN_IF_ERROR(Validate(spec_));
  TY_RETURN_IF_ERROR(CountRecords());
  writer_ = std::make_unique<Executor>();
  TY_RETURN_IF_ERROR(TakeOver());
  TY_ASSIGN_OR_RETURN(server_,
                      SessionServer::Start({.address = options_.listen, .token = options_.token}, *this));
  clock_ = std::thread([this] { RunClock(); });
  log::Info("the master is ready", {{"job", spec_.name},
                                    {"port", server_->port()},
                                    {"generation", generation_},
                                    {"records", records_[0]}});
  return absl::OkStatus();
}

absl::Status ElasticMaster::CountRecords() {
  for (const tasks::Kind kind :
       {tasks::Kind::kTraining, tasks::Kind::kEvaluation, tasks::Kind::kPrediction}) {
    const DataSources& sources = SourcesOf(spec_, kind);
    if (sources.empty()) continue;
    const absl::StatusOr<std::int64_t> count = CountRecordsOf(spec_, kind);
    if (!count.ok()) return Annotate(count.status(), StrCat(tasks::Name(kind), " data"));
    if (*count == 0)
      return absl::InvalidArgumentError(
          StrCat(tasks::Name(kind), " data: there are no records in ", sources.front()));
    records_[static_cast<int>(kind)] = *count;
  }
  return absl::OkStatus();
}

absl::Status ElasticMaster::TakeOver() {
  const std::string key = StrCat(prefix_, "/generation");
  TY_ASSIGN_OR_RETURN(const kv::GetResult before, store_.Get(key));
  generation_ = (before.kv ? ParseNumber<std::int64_t>(before.kv->value).value_or(0) : 0) + 1;
  TY_RETURN_IF_ERROR(store_.Put(key, std::to_string(generation_)));
  TY_RETURN_IF_ERROR(TakeRestarts());
  if (spec_.pservers > 0) {
    shards_ = std::make_unique<Shards>(Shards::Options{
        .count = spec_.pservers,
        .generation = generation_,
        .patience = spec_.task_timeout,
        .lost = [this](const std::string& why) { writer_->Post([this, why] { GoBack(why); }); }});
  }
  learner_ = std::make_unique<Learner>(
      LearnerOptions{.generation = generation_,
                     .async = spec_.async,
                     .grads_to_wait = spec_.grads_to_wait,
                     .staleness = spec_.staleness,
                     .modulate_rate = spec_.modulate_rate,
                     .on_nonfinite = spec_.on_nonfinite,
                     .keep = [this](ModelOrigin origin) { return Keep(std::move(origin)); }},
      *this);
  const MutexLock lock(mu_);
  TY_ASSIGN_OR_RETURN(
      log_, TaskLog::Open(store_, {.prefix = prefix_,
                                   .owner = StrCat(generation_, "-", IdSource::Random().Suffix(kOwnerLength)),
                                   .queue = {.most_failures = spec_.most_failures},
                                   .on_broken = [this](const absl::Status& why) {
                                     // On the store's thread, perhaps within a call of ours: so not under the
                                     // lock.
                                     writer_->Post([this, why] {
                                       const MutexLock broken(mu_);
                                       outcome_ = why;
                                       ended_ = true;
                                       changed_.SignalAll();
                                     });
                                   }}));
  last_evaluation_ = last_checkpoint_ = Clock::System().Steady();
  if (!queue().failure().empty()) {
    FailNow(queue().failure());
    return absl::OkStatus();
  }
  switch (spec_.kind) {
    case JobKind::kTrain:
      phase_ = Phase::kTraining;
      return spec_.tasks_only ? BeginTasks() : BeginTraining();
    case JobKind::kEvaluate:
      phase_ = Phase::kEvaluating;
      break;
    case JobKind::kPredict:
      phase_ = Phase::kPredicting;
      break;
  }
  return BeginWithModelOf(spec_.init_from);
}

absl::Status ElasticMaster::TakeRestarts() {
  TY_ASSIGN_OR_RETURN(const kv::GetResult stored, store_.Get(StrCat(prefix_, "/restarts")));
  Restarts restarts = ParseRestarts(stored.kv ? stored.kv->value : "");
  if (options_.last_end) {
    Count(restarts, *options_.last_end, Clock::System().Now());
    TY_RETURN_IF_ERROR(StoreRestarts(restarts));
  }
  const MutexLock lock(mu_);
  restarts_ = std::move(restarts);
  return absl::OkStatus();
}

absl::Status ElasticMaster::StoreRestarts(const Restarts& restarts) {
  return store_.Put(StrCat(prefix_, "/restarts"), PrintJson(Print(restarts))).status();
}

absl::StatusOr<ModelOrigin> ElasticMaster::OriginOfProgram() const {
  TY_ASSIGN_OR_RETURN(const std::string bytes, DecodeBase64(spec_.program));
  TY_ASSIGN_OR_RETURN(const graph::Programs programs, DecodePrograms(bytes));
  TY_ASSIGN_OR_RETURN(graph::Halves halves, graph::CutInHalves(programs.main));
  return ModelOrigin{.learning = {.startup = programs.startup, .main = std::move(halves.update)},
                     .shared = std::move(halves.shared)};
}

absl::StatusOr<std::unique_ptr<ModelPlace>> ElasticMaster::Keep(ModelOrigin origin) {
  if (shards_ == nullptr) return KeepModelHere(std::move(origin), generation_, ModelOptions());
  if (!origin.values.empty() && origin.checkpoint.empty()) {
    TY_ASSIGN_OR_RETURN(origin.checkpoint, WriteFirstValues(origin));
  }
  return KeepModelOnPservers(origin, *shards_, {.folder = Folder(), .model = ModelOptions()});
}

absl::Status ElasticMaster::KeepAndTake(ModelOrigin origin) {
  TY_ASSIGN_OR_RETURN(auto place, Keep(std::move(origin)));
  learner_->Take(std::move(place));
  return absl::OkStatus();
}

absl::StatusOr<std::string> ElasticMaster::WriteFirstValues(const ModelOrigin& origin) {
  TY_ASSIGN_OR_RETURN(const auto model,
                      Model::Make(origin.learning.main, origin.learning.startup, origin.shared, {}));
  TY_RETURN_IF_ERROR(model->Start(origin.values));
  ElasticCheckpoint checkpoint{.job = spec_.id, .name = spec_.name};
  Describe(origin, 0, checkpoint);
  checkpoint.variables = model->TakeAll();
  {
    const MutexLock lock(mu_);
    checkpoint.queue = queue().Save();  // nobody has been given anything yet
  }
  TY_ASSIGN_OR_RETURN(const FoundCheckpoint written, WriteElasticCheckpoint(Folder(), checkpoint, 0));
  return written.file;
}

tasks::Queue::State ElasticMaster::FreshQueue(tasks::TaskId next_id) const {
  tasks::Queue queue({.most_failures = spec_.most_failures});
  queue.Apply(tasks::Begin{.kind = tasks::Kind::kTraining, .options = OptionsOf(tasks::Kind::kTraining)});
  tasks::Queue::State state = queue.Save();
  state.next_id = next_id;
  return state;
}

// With a model in the master, what was learnt since the last checkpoint is gone with the one before: the
// queue goes back to where it stood then. Tasks get numbers that nobody had.
absl::Status ElasticMaster::BeginTraining() {
  absl::StatusOr<ElasticCheckpoint> own = ReadNewestCheckpoint(Folder(), spec_.id);
  if (own.ok()) return Resume(*std::move(own));
  if (!absl::IsNotFound(own.status())) return own.status();
  if (const auto others = ListCheckpoints(Folder()); others.ok() && !others->empty()) {
    return absl::FailedPreconditionError(
        StrCat(Folder(), " has checkpoints of another job, up to version ", others->back().step,
               ": choose another --checkpoint-dir, and --init-from that one to begin with its model"));
  }
  log_->Replace(FreshQueue(queue().Save().next_id));
  if (spec_.init_from.empty() && spec_.program.empty()) return absl::OkStatus();  // a worker offers one
  if (spec_.init_from.empty()) {
    TY_ASSIGN_OR_RETURN(ModelOrigin origin, OriginOfProgram());
    return KeepAndTake(std::move(origin));
  }
  TY_ASSIGN_OR_RETURN(ElasticCheckpoint from, ReadNewestCheckpoint(spec_.init_from));
  TY_ASSIGN_OR_RETURN(ModelOrigin origin, OriginOf(std::move(from), 0));
  return KeepAndTake(std::move(origin));
}

// Those who have tasks may come back; who does not is gone as well.
void ElasticMaster::ExpectWorkers() {
  for (const auto& [index, incarnation] : queue().Save().workers) {
    if (!queue().HasTasks(index)) continue;
    Worker& worker = workers_[index];
    worker.incarnation = incarnation;
    worker.left = Clock::System().Steady() + kComeBack;
  }
}

// Without a model nothing was lost with the master before this one: all goes on, also what workers have.
absl::Status ElasticMaster::BeginTasks() {
  constexpr tasks::Kind kKind = tasks::Kind::kTraining;
  if (queue().Find(kKind) == nullptr) Do(tasks::Begin{.kind = kKind, .options = OptionsOf(kKind)});
  model_ready_ = true;
  ExpectWorkers();
  return absl::OkStatus();
}

absl::Status ElasticMaster::Resume(ElasticCheckpoint checkpoint) {
  tasks::Queue queue_then(checkpoint.queue);
  queue_then.Apply(tasks::Recall{});
  queue_then.Apply(tasks::Stop{tasks::Kind::kEvaluation});  // the version that it was of is gone
  tasks::Queue::State state = queue_then.Save();
  state.next_id = std::max(state.next_id, queue().Save().next_id);
  log_->Replace(state);
  version_ = checkpoint_version_ = checkpoint.version;
  metrics_version_ = checkpoint.evaluated;
  metrics_ = checkpoint.metrics;
  log::Info("goes on from a checkpoint", {{"version", version_}, {"generation", generation_}});
  TY_ASSIGN_OR_RETURN(ModelOrigin origin, OriginOf(std::move(checkpoint), version_));
  return KeepAndTake(std::move(origin));
}

absl::Status ElasticMaster::BeginWithModelOf(const std::string& path) {
  TY_ASSIGN_OR_RETURN(ElasticCheckpoint from, ReadNewestCheckpoint(path));
  version_ = from.version;
  TY_ASSIGN_OR_RETURN(ModelOrigin origin, OriginOf(std::move(from), version_));
  TY_RETURN_IF_ERROR(KeepAndTake(std::move(origin)));
  const tasks::Kind kind =
      spec_.kind == JobKind::kEvaluate ? tasks::Kind::kEvaluation : tasks::Kind::kPrediction;
  // What was found out and written is the workers' and the log's: it goes on exactly where it was.
  if (queue().Find(kind) == nullptr)
    Do(tasks::Begin{.kind = kind, .options = OptionsOf(kind), .version = version_});
  ExpectWorkers();
  return absl::OkStatus();
}

void ElasticMaster::RunClock() {
  for (;;) {
    {
      const MutexLock lock(mu_);
      if (stopping_ || ended_) return;
      changed_.WaitUntil(mu_, Clock::System().Steady() + kTick);
      if (stopping_ || ended_) return;
    }
    DoWhatIsDue();
  }
}

void ElasticMaster::DoWhatIsDue() {
  bool checkpoint = false;
  TaskLog* log = nullptr;
  std::optional<Restarts> got_on;
  {
    const MutexLock lock(mu_);
    if (stepped_ && std::exchange(restarts_.early, 0) > 0) got_on = restarts_;
    const SteadyTime now = Clock::System().Steady();
    std::vector<tasks::WorkerIndex> gone;
    for (const auto& [index, worker] : workers_) {
      if (worker.session == nullptr && now - worker.left >= options_.reconnecting) gone.push_back(index);
    }
    for (const tasks::WorkerIndex index : gone) {
      log::Info("a worker is gone", {{"worker", index}, {"pod", workers_.at(index).pod}});
      Release(index);
      workers_.erase(index);
    }
    EndHungTasks();
    if (!gone.empty()) GoOn();
    if (IsDueByTime()) WantEvaluation();
    const bool over = IsOver(phase_);
    const bool alone = sessions_.empty() && (shards_ == nullptr || shards_->NobodyIsHere());
    const bool none_to_come =
        alone && std::ranges::all_of(live_pods_, [](const auto& role) { return role.second == 0; });
    if (over && (none_to_come || now - over_since_ >= kFarewell)) {
      ended_ = true;
      changed_.SignalAll();
      return;
    }
    checkpoint =
        phase_ == Phase::kTraining && model_ready_ && !checkpointing_ && version_ > checkpoint_version_ &&
        spec_.checkpoint_every > absl::ZeroDuration() &&
        now - last_checkpoint_ >= std::max(spec_.checkpoint_every, checkpoint_took_ * kCheckpointShare);
    log = log_.get();
  }
  if (got_on) StoreRestarts(*got_on).IgnoreError();  // the log is broken as well, and says so
  if (checkpoint) WriteCheckpoint(false);
  log->Tend();
  if (shards_ != nullptr) shards_->Tend();
}

// Tasks that have failed on others are kept for it, and it does not ask for them.
bool ElasticMaster::HoldsUpOthers(tasks::WorkerIndex worker) const {
  return model_ready_ && !waiting_.empty() && queue().HasFor(worker) &&
         std::ranges::none_of(waiting_, [&](const auto& waiting) { return waiting.second == worker; });
}

// A worker that lives and makes no progress is no better than one that is gone.
void ElasticMaster::EndHungTasks() {
  if (spec_.task_timeout <= absl::ZeroDuration()) return;
  const SteadyTime now = Clock::System().Steady();
  for (auto& [index, worker] : workers_) {
    if (worker.session == nullptr || now - worker.active < spec_.task_timeout) continue;
    const std::vector<tasks::Task> tasks = queue().TasksOf(index);
    if (tasks.empty() && !HoldsUpOthers(index)) continue;
    const std::string what = tasks.empty() ? "what has failed on others" : tasks::Describe(tasks.front());
    log::Warn("a worker makes no progress, and its stream is ended",
              {{"worker", index}, {"pod", worker.pod}, {"records", what}});
    worker.active = now;
    worker.session->Close(absl::FailedPreconditionError(
        StrCat("no progress with ", what, " for ", absl::FormatDuration(spec_.task_timeout))));
  }
}

void ElasticMaster::WriteCheckpoint(bool last) {
  {
    const MutexLock lock(mu_);
    if (checkpointing_ && !last) return;
    checkpointing_ = true;
    last_checkpoint_ = Clock::System().Steady();
  }
  learner_->Do([this, last](ModelPlace* place) {
    if (place != nullptr) TakeCheckpoint(*place, last);
  });
}

// On the learner's thread, between two steps: model and queue are of the same moment, because nobody else
// advances tasks.
void ElasticMaster::TakeCheckpoint(ModelPlace& place, bool last) {
  auto checkpoint = std::make_shared<ElasticCheckpoint>();
  checkpoint->job = spec_.id;
  checkpoint->name = spec_.name;
  {
    const MutexLock lock(mu_);
    checkpoint->queue = queue().Save();
    checkpoint->evaluated = metrics_version_;
    checkpoint->metrics = metrics_;
  }
  place.Save(checkpoint, [this, checkpoint, last](const absl::Status& saved) {
    writer_->Post([this, checkpoint, saved, last] { FinishCheckpoint(*checkpoint, saved, last); });
  });
}

void ElasticMaster::FinishCheckpoint(ElasticCheckpoint& checkpoint, absl::Status saved, bool last) {
  const bool lost = absl::IsUnavailable(saved);  // with a pserver: another master ends the job
  if (checkpoint.nonfinite.empty()) checkpoint.nonfinite = graph::FindNonFinite(checkpoint.variables);
  if (saved.ok() && !checkpoint.nonfinite.empty() && spec_.on_nonfinite != graph::OnNonFinite::kWarn)
    saved = absl::FailedPreconditionError(StrCat("step ", checkpoint.version, ": ", checkpoint.nonfinite));
  if (saved.ok()) saved = WriteElasticCheckpoint(Folder(), checkpoint, spec_.keep_checkpoints).status();
  if (!saved.ok()) log::Error("a checkpoint could not be written", {{"error", saved}});
  {
    const MutexLock lock(mu_);
    checkpointing_ = false;
    checkpoint_took_ = Clock::System().Steady() - last_checkpoint_;
    if (saved.ok()) {
      checkpoint_version_ = checkpoint.version;
      checkpoint_ = StrCat("version ", checkpoint.version);
    } else {
      checkpoint_ = StrCat("could not be written: ", Message(saved));
    }
  }
  if (!last || lost) return;
  if (saved.ok() && checkpoint.nonfinite.empty()) return Complete();
  const MutexLock lock(mu_);
  if (!saved.ok()) return FailNow(StrCat("the last checkpoint could not be written: ", Message(saved)));
  FailNow(StrCat("the trained model is not finite: ", checkpoint.nonfinite, "; ", Folder(),
                 " keeps the last checkpoint that is"));
}

void ElasticMaster::GoBack(const std::string& why) {
  const MutexLock lock(mu_);
  if (ended_ || IsOver(phase_)) return;
  if (!stepped_ && restarts_.early + 1 >= kMostLosses)
    return FailNow(StrCat(why, ", as ", restarts_.early, " times before without a step in between"));
  log::Warn("goes back to the newest checkpoint", {{"because", why}});
  outcome_ = absl::AbortedError(why);
  ended_ = true;
  changed_.SignalAll();
}

absl::Status ElasticMaster::Wait() {
  const MutexLock lock(mu_);
  while (!ended_) changed_.Wait(mu_);
  return outcome_;
}

void ElasticMaster::Stop() {
  bool training = false;
  {
    const MutexLock lock(mu_);
    if (stopping_ || ended_) return;
    stopping_ = true;
    training = phase_ == Phase::kTraining && model_ready_ && version_ > checkpoint_version_;
    changed_.SignalAll();
  }
  if (training) {
    WriteCheckpoint(false);
    const SteadyTime deadline = Clock::System().Steady() + options_.deadline_of_stop;
    const MutexLock lock(mu_);
    while (checkpointing_ && Clock::System().Steady() < deadline)
      changed_.WaitUntil(mu_, Clock::System().Steady() + kTick);
  }
  const MutexLock lock(mu_);
  outcome_ = absl::UnavailableError("the master was stopped");
  ended_ = true;
  changed_.SignalAll();
}

void ElasticMaster::ExpectPods(const std::string& role, int live) {
  const MutexLock lock(mu_);
  live_pods_[role] = live;
}

absl::StatusOr<std::unique_ptr<Master>> Master::Start(kv::Store& store, MasterOptions options) {
  auto master = std::make_unique<ElasticMaster>(store, std::move(options));
  if (absl::Status begun = master->Begin(); !begun.ok()) return begun;
  return master;
}

}  // namespace trainyard::master
