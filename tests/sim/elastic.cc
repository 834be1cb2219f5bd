#include "tests/sim/elastic.h"

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/check.h"
#include "base/files.h"
#include "base/text.h"
#include "client/elastic_manifests.h"
#include "kv/memory_store.h"
#include "master/pods/job_link.h"
#include "master/state_folder.h"
#include "master/task_log.h"
#include "tests/sim/documents.h"

namespace trainyard::sim {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kGroup = "TrainingJobReplicaName";
constexpr std::string_view kIndex = "TrainingJobReplicaIndex";
constexpr std::size_t kMostPath = 4096;
constexpr int kKilled = 137;

master::JobSpec SpecOf(const Document& job) {
  return master::ParseJobSpec(StringAt(job, {"metadata", "annotations", kElasticSettings})).value();
}

}  // namespace

// ---- the storage

Storage::~Storage() {
  std::error_code ignored;
  if (!root_.empty()) fs::remove_all(root_, ignored);
}

std::string Storage::FolderOf(const std::string& job_uid) {
  if (root_.empty()) {
    std::error_code error;
    const bool memory = fs::is_directory("/dev/shm", error);
    root_ = StrCat(memory ? "/dev/shm" : fs::temp_directory_path().native(), "/trainyard-sim-XXXXXX");
    TY_CHECK(::mkdtemp(root_.data()) != nullptr, "the simulation needs a folder for its files");
  }
  return StrCat(root_, "/", job_uid);
}

Training& Storage::Open(const std::string& path) {
  const auto [found, is_new] = trainings_.try_emplace(path);
  Training& training = found->second;
  if (!is_new) return training;
  training.queue = kv::NewMemoryStore(clock_);
  // Whose copy it is stands in the copy.
  const std::string mark = StrCat(path, "/path");
  if (const auto from = ReadFile(mark, kMostPath); from.ok()) {
    const Training& before = trainings_.at(*from);
    const auto all = before.queue->Range({.range = kv::KeyRange::Prefix("")}).value();
    for (const kv::KeyValue& kv : all.kvs) (void)training.queue->Put(kv.key, kv.value);
    training.counted = before.counted;
  }
  fs::create_directories(path);
  TY_CHECK(ReplaceFile(mark, path, 0600, Durability::kProcess).ok(), "the simulation cannot write a file");
  return training;
}

// ---- a master

// Deals records to whoever is connected, and counts what is stored as done.
class ElasticMasters::Trainer final : public master::Master {
 public:
  Trainer(Training& training, const master::JobSpec& spec, std::string owner, IdSource& random)
      : training_(training), spec_(spec), random_(random) {
    log_ = master::TaskLog::Open(*training.queue, {.prefix = "queue", .owner = std::move(owner)}).value();
    if (log_->was_empty()) {
      log_->Apply(tasks::Begin{.options = {.records = spec.training_records,
                                           .records_per_task = spec.RecordsPerTask(),
                                           .epochs = spec.epochs,
                                           .seed = spec.seed}});
    }
    log_->Apply(tasks::Recall());
  }

  // By the indexes of their workers, the pods that are connected.
  void Train(const std::map<int, std::string>& connected, bool pservers) {
    if (IsOver()) return;
    for (auto known = workers_.begin(); known != workers_.end();) {
      const auto now = connected.find(known->first);
      const bool gone = now == connected.end() || now->second != known->second.pod;
      if (gone) log_->Apply(tasks::Leave{known->first});
      known = gone ? workers_.erase(known) : std::next(known);
    }
    for (const auto& [index, pod] : connected) {
      const auto [worker, is_new] = workers_.try_emplace(index, Worker{.pod = pod});
      if (is_new) log_->Apply(tasks::Join{index, worker->second.incarnation = ++incarnations_});
      if (pservers) Work(index, worker->second);
    }
  }

  void SeePservers(std::vector<master::PserverView> pservers) { pservers_ = std::move(pservers); }

  bool IsOver() const { return !failure_.empty() || log_->queue().IsOver(); }
  int exit_code() const { return failure_.empty() ? 0 : client::kFinalExitCode; }

  int port() const override { return 0; }
  absl::Status Wait() override { return absl::OkStatus(); }
  void Stop() override {}
  master::Progress GetProgress() override {
    const tasks::Stream& stream = *log_->queue().Find(tasks::Kind::kTraining);
    return {{.phase = !failure_.empty()        ? master::Phase::kFailed
                      : log_->queue().IsOver() ? master::Phase::kComplete
                                               : master::Phase::kTraining,
             .reason = failure_,
             .epoch = std::min(stream.epoch() + 1, spec_.epochs),
             .epochs = spec_.epochs,
             .records = stream.done_in_epoch(),
             .epoch_records = spec_.training_records,
             .total_records = stream.done(),
             .workers = static_cast<int>(workers_.size())}};
  }
  std::vector<master::WorkerView> GetWorkers() override {
    std::vector<master::WorkerView> views;
    for (const auto& [index, worker] : workers_) {
      views.push_back({.index = index,
                       .pod = worker.pod,
                       .incarnation = worker.incarnation,
                       .connected = true,
                       .takes_part = worker.took_part});
    }
    return views;
  }
  void WorkerIsGone(tasks::WorkerIndex worker, const std::string& pod) override {
    const auto known = workers_.find(worker);
    if (known == workers_.end() || known->second.pod != pod) return;
    log_->Apply(tasks::Leave{worker});
    workers_.erase(known);
  }
  void PserverIsGone(int, const std::string&) override {}
  std::vector<master::PserverView> GetPservers() override { return pservers_; }
  void ExpectPods(const std::string&, int) override {}
  void Fail(const std::string& reason) override { failure_ = reason; }

 private:
  struct Worker {
    std::string pod;
    std::int64_t incarnation = 0;
    std::optional<tasks::Task> task;
    bool took_part = false;
  };

  void Work(int index, Worker& worker) {
    if (!worker.task) {
      const tasks::Answer answer = log_->Apply(tasks::Lease{index});
      if (answer.verdict == tasks::Verdict::kTask) worker.task = answer.task;
      return;
    }
    worker.took_part = true;
    const tasks::TaskId id = worker.task->id;
    switch (random_.Below(8)) {
      case 0:
        log_->Apply(tasks::Return{index, id});
        worker.task.reset();
        return;
      case 1:  // its first record is done; it goes on with the others
        Count(log_->Apply(tasks::Advance{id, worker.task->records.begin + 1}),
              worker.task->records.begin + 1);
        if (++worker.task->records.begin == worker.task->records.end) worker.task.reset();
        return;
      default:
        Count(log_->Apply(tasks::Finish{.worker = index, .task = id}), worker.task->records.end);
        worker.task.reset();
    }
  }

  // What is stored is done.
  void Count(const tasks::Answer& answer, std::int64_t until) {
    if (answer.verdict != tasks::Verdict::kOk) return;
    log_->WhenDurable([this, task = answer.task, until] {
      for (std::int64_t record = task.records.begin; record < until; ++record)
        ++training_.counted[{task.epoch, record}];
    });
  }

  Training& training_;
  const master::JobSpec spec_;
  IdSource& random_;
  std::unique_ptr<master::TaskLog> log_;
  std::int64_t incarnations_ = 0;
  std::map<int, Worker> workers_;  // by index
  std::vector<master::PserverView> pservers_;
  std::string failure_;
};

struct ElasticMasters::Process {
  std::string pod_uid;
  std::string node;
  std::string job;          // the uid
  std::optional<int> exit;  // it has ended so, and its kubelet has not said so yet
  std::optional<master::StateFolder> folder;
  std::unique_ptr<FaultyTransport> transport;
  std::unique_ptr<kube::Api> api;
  std::unique_ptr<Trainer> trainer;
  std::unique_ptr<master::JobLink> link;
};

// ---- all of them

ElasticMasters::ElasticMasters(Cluster& cluster, Promises& promises, std::uint64_t seed)
    : cluster_(cluster), promises_(promises), random_(seed), storage_(cluster.clock()) {}

ElasticMasters::~ElasticMasters() = default;

Document ElasticMasters::MakeJob(const std::string& name) {
  const int least = 1 + static_cast<int>(random_.Below(2));
  client::ElasticSettings settings{
      .pods = {.ns = std::string(kNamespace), .image = "x", .storage = client::SharedFolder{"/storage"}},
      .spec = {.name = name,
               .id = "sim",
               .training_records = 10 + static_cast<std::int64_t>(random_.Below(60)),
               .minibatch = 2,
               .minibatches_per_task = 2,
               .epochs = 1 + static_cast<std::int64_t>(random_.Below(2)),
               .seed = random_.Below(3),
               .workers = least + static_cast<int>(random_.Below(2)),
               .min_workers = least,
               .max_workers = least + 1 + static_cast<int>(random_.Below(2)),
               .pservers = Chance(30) ? 1 : 0,
               .worker_pod = {.cpu = "500m"},
               .master_pod = {.cpu = "100m"}},
      .state_dir = "/storage/state"};
  Document job = client::ElasticJobObject(settings);
  MakeObjectAt(job, {"metadata", "annotations"})[kElasticSettings] = master::Print(settings.spec);
  return job;
}

bool ElasticMasters::IsElastic(const Document& job) {
  return Find(job, {"metadata", "annotations", kElasticSettings}) != nullptr;
}

void ElasticMasters::SetRates(const FaultRates& rates, bool crashes) {
  rates_ = rates;
  rates_.stale = 0;
  crashes_ = crashes;
  for (const auto& [uid, process] : processes_) {
    if (process->transport == nullptr) continue;
    process->transport->rates = rates_;
    if (!crashes) process->transport->writes_until_crash.reset();
  }
}

void ElasticMasters::StartProcess(const Document& pod) {
  const std::string uid = UidOf(pod);
  const std::string job_uid = LabelOf(pod, "trainyard.dev/job-uid");
  std::unique_ptr<Process>& process = processes_[uid];
  process = std::make_unique<Process>();
  process->pod_uid = uid;
  process->node = StringAt(pod, {"spec", "nodeName"});
  process->job = job_uid;
  const auto job = cluster_.Get(client::AITrainingJobs(), LabelOf(pod, "TrainingJobName"));
  if (!job || UidOf(*job) != job_uid) return;  // it goes soon
  auto folder =
      master::StateFolder::TakeOver(storage_.FolderOf(job_uid), uid, /*settle=*/absl::ZeroDuration());
  if (absl::IsFailedPrecondition(folder.status())) return End(*process, client::kFinalExitCode);
  TY_CHECK(folder.ok(), "a master of the simulation cannot claim its folder");
  process->folder = *std::move(folder);
  Training& training = storage_.Open(process->folder->path());
  std::vector<std::string>& claims = claims_[job_uid];
  if (claims.empty() || claims.back() != process->folder->path()) {
    claims.push_back(process->folder->path());
    cluster_.story().Tell(StrCat(KeyOf(pod).name, " on ", process->node, " claims ", claims.size()));
  }
  const master::JobSpec spec = SpecOf(*job);
  process->trainer = std::make_unique<Trainer>(training, spec, StrCat(uid, random_.Next()), random_);
  process->transport = std::make_unique<FaultyTransport>(
      cluster_.transport(), random_.Next(),
      FaultyTransport::Hooks{.before_write = [this, job_uid](const kube::Request& request) {
        promises_.JudgeActorWrite(job_uid, request);
      }});
  process->transport->rates = rates_;
  if (crashes_ && Chance(50)) process->transport->writes_until_crash = static_cast<int>(random_.Below(20));
  process->api = std::make_unique<kube::Api>(*process->transport, cluster_.clock(), IdSource(random_.Next()),
                                             kube::RetryPolicy{.attempts = 1});
  process->link =
      std::make_unique<master::JobLink>(*process->api, cluster_.clock(), *process->trainer,
                                        master::JobLink::Options{.resource = client::AITrainingJobs(),
                                                                 .ns = std::string(kNamespace),
                                                                 .uid = job_uid,
                                                                 .spec = spec,
                                                                 .seed = random_.Next()});
}

// Its last report is written, unless it cannot write any more.
void ElasticMasters::End(Process& process, int exit_code) {
  process.link.reset();
  if (process.transport) writes_ += process.transport->writes;
  process.api.reset();
  process.transport.reset();
  process.trainer.reset();
  process.exit = exit_code;
}

void ElasticMasters::Step() {
  std::map<std::string, const Document*> pods;
  const Objects all = cluster_.ListPods();
  for (const Document& pod : all) {
    const bool ours = !LabelOf(pod, client::kElasticJobLabel).empty();
    if (ours && LabelOf(pod, kGroup) == master::kMasterGroup) pods.emplace(UidOf(pod), &pod);
  }
  std::erase_if(processes_, [&](const auto& known) {
    const auto pod = pods.find(known.first);
    Process& process = *known.second;
    const bool cut_off = cluster_.IsLost(process.node);
    const bool gone = pod == pods.end() ? !cut_off || process.exit.has_value()
                                        : StringAt(*pod->second, {"status", "phase"}) != "Running";
    if (gone && process.transport) process.transport->crashed = true;
    return gone;
  });
  for (const auto& [uid, pod] : pods) {
    const bool runs = StringAt(*pod, {"status", "phase"}) == "Running" && !cluster_.IsOnLostNode(*pod);
    if (runs && !processes_.contains(uid)) StartProcess(*pod);
  }
  std::vector<std::string> uids;
  for (const auto& [uid, process] : processes_) uids.push_back(uid);
  for (const std::string& uid : uids) {
    const auto pod = pods.find(uid);
    Run(*processes_.at(uid), pod == pods.end() ? nullptr : pod->second);
  }
  promises_.CheckOneMaster([this](const std::string& job) {
    return std::ranges::count_if(processes_, [&](const auto& known) {
      const Process& process = *known.second;
      return process.job == job && process.trainer != nullptr && process.folder->IsOwned();
    });
  });
}

void ElasticMasters::Run(Process& process, const Document* pod) {
  if (process.exit) {
    const bool heard = pod != nullptr && !cluster_.IsLost(process.node) && !IsLeaving(*pod);
    if (heard) cluster_.EndPod(*pod, *process.exit, {});
    return;
  }
  if (!process.folder) return;
  if (!process.folder->IsOwned()) {
    cluster_.story().Tell(StrCat("a master on ", process.node, " finds that another has its job"));
    process.transport->crashed = true;
    return End(process, client::kFinalExitCode);
  }
  if (process.transport->crashed) {  // the agent starts it again
    cluster_.story().Tell(StrCat("a master has been killed on ", process.node));
    writes_ += process.transport->writes;
    process.link.reset();
    process.trainer.reset();
    const std::string uid = process.pod_uid;
    if (pod != nullptr) StartProcess(*pod);
    return;
  }
  std::map<int, std::string> workers;
  bool pservers = true;
  std::vector<master::PserverView> serving;
  for (const Document& other : cluster_.ListPods()) {
    if (LabelOf(other, "trainyard.dev/job-uid") != process.job) continue;
    const bool runs = StringAt(other, {"status", "phase"}) == "Running" && !cluster_.IsOnLostNode(other);
    const std::string group = LabelOf(other, kGroup);
    const int index = ParseNumber<int>(LabelOf(other, kIndex)).value_or(0);
    if (group == master::kPserverGroup) {
      pservers = pservers && runs;
      const auto incarnation = static_cast<std::int64_t>(std::hash<std::string>()(UidOf(other)) >> 1);
      if (runs) serving.push_back({.index = index, .incarnation = incarnation, .works = true});
    }
    if (group == master::kWorkerGroup && runs) workers[index] = KeyOf(other).name;
  }
  process.trainer->SeePservers(std::move(serving));
  for (std::uint64_t i = 1 + random_.Below(6); i > 0; --i) (void)process.link->Step();
  for (std::uint64_t i = crashes_ ? random_.Below(2) : 5; i > 0; --i)
    process.trainer->Train(workers, pservers);
  if (process.trainer->IsOver()) End(process, process.trainer->exit_code());
}

void ElasticMasters::NodeIsLost(const std::string& node, bool power) {
  for (const auto& [uid, process] : processes_) {
    if (process->node != node || process->exit || power) continue;
    if (process->transport) process->transport->crashed = true;
    End(*process, kKilled);
  }
}

void ElasticMasters::KillOne() {
  for (const auto& [uid, process] : processes_) {
    if (process->transport && Chance(50)) process->transport->crashed = true;
  }
}

std::vector<Document> ElasticMasters::WorkingPods() {
  std::vector<Document> working;
  for (const Document& pod : cluster_.ListPods()) {
    const auto process = processes_.find(UidOf(pod));
    if (process == processes_.end() || process->second->trainer == nullptr || IsLeaving(pod)) continue;
    const auto job = cluster_.Get(client::AITrainingJobs(), LabelOf(pod, "TrainingJobName"));
    const bool goes_on = job && UidOf(*job) == process->second->job && !IsFinished(*job) &&
                         Find(*job, {"status", "ending"}) == nullptr;
    if (goes_on && !cluster_.IsLost(process->second->node)) working.push_back(pod);
  }
  return working;
}

int ElasticMasters::ClaimsOf(const std::string& job_uid) const {
  const auto known = claims_.find(job_uid);
  return known == claims_.end() ? 0 : static_cast<int>(known->second.size());
}

void ElasticMasters::CheckEnd(const Document& job) {
  const std::string name = KeyOf(job).name;
  const auto claims = claims_.find(UidOf(job));
  if (claims == claims_.end()) return promises_.Break(StrCat(name, " has succeeded without a master"));
  const master::JobSpec spec = SpecOf(job);
  const auto& counted = storage_.Open(claims->second.back()).counted;
  const bool once = std::ranges::all_of(counted, [](const auto& record) { return record.second == 1; });
  const std::int64_t wanted = spec.training_records * spec.epochs;
  if (!once || static_cast<std::int64_t>(counted.size()) != wanted)
    promises_.Break(StrCat(name, " has counted ", counted.size(), " records of ", wanted,
                           once ? "" : ", some of them twice"));
}

}  // namespace trainyard::sim
