#include "client/graph_job.h"

#include <filesystem>
#include <map>
#include <memory>
#include <utility>

#include "base/access.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "client/graph_jobs.h"
#include "ps/job.h"
#include "ps/scaling.h"

namespace trainyard::client {
namespace {

using graph::GraphRole;

constexpr int kMostWorkers = 10000;
constexpr absl::Duration kBetweenJobPolls = absl::Milliseconds(200);
constexpr absl::Duration kTellAfter = absl::Seconds(5);

std::string GraphTokenName(std::string_view object) { return StrCat(object, "-token"); }

// Of all pservers that the job has had.
absl::StatusOr<std::vector<std::string>> CheckpointFiles(kv::Store& store, const ps::JobKeys& keys) {
  TY_ASSIGN_OR_RETURN(const kv::RangeResult pointers,
                      store.Range({.range = kv::KeyRange::Prefix(keys.Checkpoint(""))}));
  std::vector<std::string> files;
  for (const kv::KeyValue& kv : pointers.kvs) {
    const absl::StatusOr<ps::GraphCheckpoints> kept = ps::DecodeCheckpoints(kv.value);
    if (!kept.ok()) continue;  // the job goes, whatever somebody wrote there
    for (const ps::Checkpoint& checkpoint : kept->kept) files.push_back(checkpoint.file);
  }
  return files;
}

absl::Status CheckWorkers(const std::vector<graph::Graph>& graphs, const WorkersOptions& options) {
  if (graphs.empty()) return absl::InvalidArgumentError("graphs: there are none; give all of one side");
  for (const graph::Graph& graph : graphs) {
    if (graph.role != graphs[0].role)
      return absl::InvalidArgumentError("graphs: trainers and pservers are added one after the other");
  }
  if (options.threads < 1 || options.threads > 1024)
    return absl::InvalidArgumentError(StrCat("threads must be between 1 and 1024, and is ", options.threads));
  if (options.restart_limit && *options.restart_limit < 0)
    return absl::InvalidArgumentError(
        StrCat("restart_limit must be 0 or more, and is ", *options.restart_limit));
  if (!options.elastic) return absl::OkStatus();
  if (graphs[0].role == GraphRole::kPserver)
    return absl::InvalidArgumentError("least, most: only trainers come and go by themselves");
  const auto [least, most] = *options.elastic;
  const int begin = static_cast<int>(graphs.size());
  if (least < 1 || most > kMostWorkers || least > begin || begin > most) {
    return absl::InvalidArgumentError(StrCat("least and most must be around the ", begin,
                                             " trainers that it begins with, and are ", least, " and ",
                                             most));
  }
  return absl::OkStatus();
}

void ResolveSources(graph::Program& program) {
  for (graph::Block& block : program.blocks) {
    for (graph::Op& op : block.ops) {
      if (op.type != "read") continue;
      graph::Strings sources = op.StringList("sources");
      for (std::string& source : sources) source = AbsolutePaths(source);
      op.attrs["sources"] = std::move(sources);
    }
  }
}

// What trainers read is named from the folder that this process runs in, wherever a pod does.
void ResolveSources(std::vector<graph::Graph>& graphs) {
  std::map<const graph::Origin*, std::shared_ptr<const graph::Origin>> resolved;
  for (graph::Graph& graph : graphs) {
    ResolveSources(graph.main);
    if (graph.origin == nullptr) continue;
    std::shared_ptr<const graph::Origin>& origin = resolved[graph.origin.get()];
    if (origin == nullptr) {
      graph::Origin changed = *graph.origin;
      ResolveSources(changed.programs.main);
      origin = std::make_shared<const graph::Origin>(std::move(changed));
    }
    graph.origin = origin;
  }
}

// A lease and the key under it.
absl::StatusOr<kv::Lease> Begin(kv::Store& store, const ps::JobKeys& keys, absl::Duration ttl) {
  TY_ASSIGN_OR_RETURN(const kv::Lease lease, store.GrantLease(ttl));
  const absl::StatusOr<kv::TxnResult> put =
      store.Txn({.compares = {kv::Absent(keys.Client())},
                 .then = {kv::PutOp{.key = keys.Client(), .value = "{}", .lease = lease.id}}});
  if (put.ok() && put->succeeded) return lease;
  store.RevokeLease(lease.id).IgnoreError();
  if (!put.ok()) return put.status();
  return absl::AlreadyExistsError(StrCat("job ", keys.job, " has a client that keeps it in the foreground"));
}

}  // namespace

// One side of the job.
class GraphJob::Group final : public Workers {
 public:
  Group(GraphJob& job, GroupSettings settings, std::vector<graph::Graph> graphs)
      : job_(job), settings_(std::move(settings)), graphs_(std::move(graphs)) {}

  GraphRole role() const override { return settings_.role; }
  int count() const override { return settings_.replicas; }
  const GroupSettings& settings() const { return settings_; }
  const std::vector<graph::Graph>& graphs() const { return graphs_; }
  bool started() const { return started_; }
  void SetStarted() { started_ = true; }

  absl::Status Start() override {
    if (started_)
      return absl::FailedPreconditionError(StrCat("the ", Name(role()), "s have been started already"));
    TY_RETURN_IF_ERROR(job_.CreateOnce());
    TY_RETURN_IF_ERROR(job_.StartGroup(*this));
    started_ = true;
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<OutputStream>> Get(std::vector<std::string> names,
                                                    bool uncommitted) override {
    if (!started_)
      return absl::FailedPreconditionError(
          StrCat("the ", Name(role()), "s have not been started: there is nothing to get"));
    return std::make_unique<OutputStream>(
        job_.store_, job_.keys_,
        OutputStream::Choice{StrCat(Name(role()), "-"), std::move(names), uncommitted},
        [job = &job_] { return job->Look(); });
  }

  absl::Status Scale(int count) override {
    if (count < 1 || count > kMostWorkers)
      return absl::InvalidArgumentError(
          StrCat("a job has between 1 and ", kMostWorkers, " ", Name(role()), "s, and cannot have ", count));
    if (!started_)
      return absl::FailedPreconditionError(StrCat("the ", Name(role()), "s have not been started yet"));
    if (settings_.elastic)
      return absl::FailedPreconditionError(
          "the cluster's load decides how many trainers there are: they were added with least and most");
    const int before = std::exchange(settings_.replicas, count);
    if (role() == GraphRole::kPserver) {  // all that there are must give up what they have first
      TY_RETURN_IF_ERROR(ps::ScalePservers(job_.store_, job_.ids_, job_.keys_, count));
      return job_.SetReplicas(*this, count);
    }
    // Pods that are too many go first, so that they are not taken for ones that have done their part.
    const bool fewer = count < before;
    if (fewer) TY_RETURN_IF_ERROR(job_.SetReplicas(*this, count));
    TY_RETURN_IF_ERROR(ps::ScaleTrainers(job_.store_, job_.ids_, job_.keys_, count));
    return fewer ? absl::OkStatus() : job_.SetReplicas(*this, count);
  }

 private:
  GraphJob& job_;
  GroupSettings settings_;
  const std::vector<graph::Graph> graphs_;
  bool started_ = false;
};

GraphJob::GraphJob(Cluster& cluster, kv::Store& store, std::string name, const JobOptions& options,
                   std::unique_ptr<Heartbeat> heartbeat)
    : cluster_(cluster),
      store_(store),
      name_(std::move(name)),
      options_(options),
      keys_{StrCat(cluster.ns(), "/", name_)},
      heartbeat_(std::move(heartbeat)) {}

GraphJob::~GraphJob() = default;

Workers* GraphJob::trainers() { return trainers_.get(); }
Workers* GraphJob::pservers() { return pservers_.get(); }

absl::Status GraphJob::WasKilled() const { return absl::NotFoundError(StrCat("job ", name_, " was killed")); }

std::string GraphJob::ObjectName() const { return client::ObjectName(name_); }

absl::Status GraphJob::TakeUp(const ps::JobMeta& meta) {
  created_ = true;
  for (const GraphRole role : {GraphRole::kTrainer, GraphRole::kPserver}) {
    const bool trainer = role == GraphRole::kTrainer;
    GroupSettings settings{.role = role, .replicas = trainer ? meta.trainers : meta.pservers};
    if (trainer && meta.most_trainers > meta.least_trainers)
      settings.elastic = GroupSettings::Bounds{meta.least_trainers, meta.most_trainers};
    std::unique_ptr<Group>& group = trainer ? trainers_ : pservers_;
    group = std::make_unique<Group>(*this, std::move(settings), std::vector<graph::Graph>());
    group->SetStarted();
  }
  return absl::OkStatus();
}

absl::StatusOr<Workers*> GraphJob::AddWorkers(std::vector<graph::Graph> graphs,
                                              const WorkersOptions& options) {
  TY_RETURN_IF_ERROR(CheckWorkers(graphs, options));
  TY_ASSIGN_OR_RETURN(const graph::Resource resource, CheckResource(options.resource));
  const GraphRole role = graphs[0].role;
  std::unique_ptr<Group>& group = role == GraphRole::kTrainer ? trainers_ : pservers_;
  if (group != nullptr)
    return absl::FailedPreconditionError(StrCat("job ", name_, " has its ", Name(role), "s already"));
  for (graph::Graph& graph : graphs) graph.resource = resource;
  ResolveSources(graphs);
  GroupSettings settings{.role = role,
                         .replicas = static_cast<int>(graphs.size()),
                         .resource = resource,
                         .elastic = options.elastic,
                         .restart_limit = options.restart_limit,
                         .threads = options.threads};
  group = std::make_unique<Group>(*this, std::move(settings), std::move(graphs));
  return group.get();
}

absl::Status GraphJob::CheckComplete() const {
  if (trainers_ != nullptr && pservers_ != nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(StrCat("job ", name_, " has no ",
                                              trainers_ == nullptr ? "trainers" : "pservers",
                                              " yet: add all its workers before you start some"));
}

const std::vector<graph::Graph>& GraphJob::PserverGraphs() const { return pservers_->graphs(); }

absl::Status GraphJob::CreateOnce() {
  if (created_) return absl::OkStatus();
  TY_RETURN_IF_ERROR(CheckComplete());
  ps::NewJob job{.graphs = {.trainers = trainers_->graphs(), .pservers = pservers_->graphs()},
                 .checkpoint_every = options_.checkpoint_every,
                 .on_nonfinite = options_.on_nonfinite,
                 .foreground = options_.run_type == RunType::kForeground};
  if (const auto& elastic = trainers_->settings().elastic) {
    job.least_trainers = elastic->least;
    job.most_trainers = elastic->most;
  }
  TY_RETURN_IF_ERROR(ps::CreateJob(store_, ids_, keys_, job));
  created_ = true;
  return absl::OkStatus();
}

absl::StatusOr<JobSettings> GraphJob::Settings() {
  JobSettings settings{
      .name = name_, .store_url = cluster_.StoreUrlForPods(), .store_has_token = cluster_.HasOwnStore()};
  TY_ASSIGN_OR_RETURN(settings.pods, cluster_.FindPodSettings());
  if (folder_.empty()) folder_ = ids_.Uuid();
  settings.checkpoints =
      StrCat(MountPath(settings.pods.storage), "/jobs/", cluster_.ns(), "/", name_, "/", folder_);
  return settings;
}

absl::Status GraphJob::StartGroup(const Group& group) {
  TY_ASSIGN_OR_RETURN(const JobSettings settings, Settings());
  Object groups{{GroupName(group.role()), GroupObject(settings, group.settings())}};
  const Group& other = group.role() == GraphRole::kTrainer ? *pservers_ : *trainers_;
  if (other.started()) {
    const Document patch = Object{{"spec", Object{{"replicaSpecs", std::move(groups)}}}};
    return cluster_.api()
        .Patch(AITrainingJobs(), {.ns = cluster_.ns(), .name = ObjectName()}, PrintJson(patch), {})
        .status();
  }
  TY_RETURN_IF_ERROR(CreateToken());
  Document job = GraphJobObject(settings);
  MakeObjectAt(job, {"spec"})["replicaSpecs"] = std::move(groups);
  TY_ASSIGN_OR_RETURN(const Document made, cluster_.Create(AITrainingJobs(), job));
  // From now on the Secret goes with the job.
  return cluster_.api()
      .Patch(kube::Resource::Secrets(), {.ns = cluster_.ns(), .name = GraphTokenName(ObjectName())},
             PrintJson(OwnerPatch(made)), {})
      .status();
}

// One that is there, from a start that failed half-way, is as good.
absl::Status GraphJob::CreateToken() {
  TY_ASSIGN_OR_RETURN(const std::string token, NewToken());
  const absl::Status created =
      cluster_
          .Create(kube::Resource::Secrets(), TokenSecret(cluster_.ns(), GraphTokenName(ObjectName()), token))
          .status();
  return kube::IsAlreadyExists(created) ? absl::OkStatus() : created;
}

absl::Status GraphJob::SetReplicas(const Group& group, int replicas) {
  const Document patch = Object{
      {"spec", Object{{"replicaSpecs", Object{{GroupName(group.role()), Object{{"replicas", replicas}}}}}}}};
  return cluster_.api()
      .Patch(AITrainingJobs(), {.ns = cluster_.ns(), .name = ObjectName()}, PrintJson(patch), {})
      .status();
}

absl::Status GraphJob::Look() {
  const absl::StatusOr<Document> object = cluster_.Get(AITrainingJobs(), ObjectName());
  if (kube::IsNotFound(object.status())) return WasKilled();
  if (!object.ok()) return object.status();
  const job::JobStatus status = StatusOf(*object);
  if (status.Is(job::State::kSucceeded)) return absl::OutOfRangeError(StrCat("job ", name_, " is complete"));
  if (status.IsFinished())
    return absl::FailedPreconditionError(StrCat("job ", name_, " has ended as ", PhaseOf(status)));
  TellOfWaiting(status.Is(job::State::kRunning) ? "" : PhaseOf(status));
  return absl::OkStatus();
}

void GraphJob::TellOfWaiting(std::string phase) {
  if (phase != waits_) {
    waits_ = std::move(phase);
    waits_since_ = Clock::System().Steady();
    return;
  }
  if (waits_.empty() || waits_ == told_ || Clock::System().Steady() - waits_since_ < kTellAfter) return;
  log::Warn("the job waits", {{"job", name_}, {"phase", waits_}});
  told_ = waits_;
}

absl::StatusOr<JobStatus> GraphJob::Status() {
  if (!created_) {
    return JobStatus{.trainers = trainers_ == nullptr ? 0 : trainers_->count(),
                     .pservers = pservers_ == nullptr ? 0 : pservers_->count()};
  }
  const absl::StatusOr<ps::StoredMeta> stored = ps::GetMeta(store_, keys_);
  if (absl::IsNotFound(stored.status())) return WasKilled();
  if (!stored.ok()) return stored.status();
  const ps::JobMeta& meta = stored->meta;
  JobStatus status{.state = meta.state,
                   .reason = meta.reason,
                   .trainers = meta.trainers,
                   .pservers = meta.pservers,
                   .steps = meta.steps};
  const absl::StatusOr<Document> object = cluster_.Get(AITrainingJobs(), ObjectName());
  if (object.ok()) status.phase = PhaseOf(StatusOf(*object));
  return status;
}

absl::Status GraphJob::Wait(absl::Duration timeout) {
  const SteadyTime deadline = Clock::System().Steady() + timeout;
  for (;;) {
    TY_ASSIGN_OR_RETURN(const JobStatus status, Status());
    if (status.state == ps::JobState::kComplete) return absl::OkStatus();
    if (status.state == ps::JobState::kFailed)
      return absl::FailedPreconditionError(StrCat("job ", name_, " has failed: ", status.reason));
    if (created_) {
      const absl::Status look = Look();
      if (!look.ok() && !absl::IsOutOfRange(look)) return look;
    }
    if (Clock::System().Steady() >= deadline)
      return absl::DeadlineExceededError(
          StrCat("job ", name_, " is not over yet", status.phase.empty() ? "" : StrCat(": ", status.phase)));
    absl::SleepFor(kBetweenJobPolls);
  }
}

absl::Status GraphJob::Stop() {
  TY_RETURN_IF_ERROR(RemoveObjects(cluster_, name_));
  TY_RETURN_IF_ERROR(RemoveStored(store_, keys_));
  heartbeat_.reset();
  return absl::OkStatus();
}

absl::Status RemoveObjects(Cluster& cluster, std::string_view name) {
  const std::string object = client::ObjectName(name);
  TY_RETURN_IF_ERROR(cluster.Delete(AITrainingJobs(), object));
  return cluster.Delete(kube::Resource::Secrets(), GraphTokenName(object));
}

absl::Status RemoveStored(kv::Store& store, const ps::JobKeys& keys) {
  TY_ASSIGN_OR_RETURN(const std::vector<std::string> files, CheckpointFiles(store, keys));
  TY_RETURN_IF_ERROR(ps::DeleteJob(store, keys));
  for (const std::string& file : files) {
    std::error_code unseen;  // from this machine
    std::filesystem::remove(file, unseen);
    std::filesystem::remove(std::filesystem::path(file).parent_path(), unseen);  // once it is empty
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Heartbeat>> Heartbeat::Start(kv::Store& store, const ps::JobKeys& keys,
                                                            absl::Duration lease) {
  TY_ASSIGN_OR_RETURN(const kv::Lease granted, Begin(store, keys, lease));
  return std::unique_ptr<Heartbeat>(new Heartbeat(store, keys, granted));
}

Heartbeat::Heartbeat(kv::Store& store, const ps::JobKeys& keys, kv::Lease lease)
    : store_(store), keys_(keys), lease_(lease), thread_([this] { Renew(); }) {}

Heartbeat::~Heartbeat() {
  {
    const MutexLock lock(mu_);
    stopping_ = true;
    changed_.SignalAll();
  }
  thread_.join();
  store_.RevokeLease(lease_.id).IgnoreError();
}

void Heartbeat::Renew() {
  for (;;) {
    {
      const MutexLock lock(mu_);
      const SteadyTime next = Clock::System().Steady() + lease_.ttl / 4;
      while (!stopping_ && changed_.WaitUntil(mu_, next)) {
      }
      if (stopping_) return;
    }
    const absl::Status renewed = store_.KeepAlive(lease_.id).status();
    if (renewed.ok()) continue;
    log::Warn("the heart-beat of this client does not reach the store",
              {{"job", keys_.job}, {"error", renewed}});
    // It has ended while we live: a store that was away for longer, or a machine that slept. If the job's
    // graphs have not seen it yet, they never need to.
    if (!absl::IsNotFound(renewed)) continue;
    if (const absl::StatusOr<kv::Lease> again = Begin(store_, keys_, lease_.ttl); again.ok()) lease_ = *again;
  }
}

}  // namespace trainyard::client
