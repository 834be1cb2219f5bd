#include "client/elastic_job.h"

#include <set>
#include <utility>

#include "base/access.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/text.h"
#include "kube/informer.h"
#include "kube/pod_history.h"

namespace trainyard::client {
namespace {

constexpr int kIdLength = 8;
constexpr std::size_t kMostConfigBytes = std::size_t{1} << 20;
constexpr std::string_view kHistoryKind = "aitrainingjob";

// An object with its metadata apart, for a cache.
struct ParsedObject {
  kube::ObjectMeta meta;
  Document object;
};

absl::StatusOr<ParsedObject> ParseObject(std::string json) {
  ParsedObject parsed;
  TY_ASSIGN_OR_RETURN(parsed.object, ParseJson(json));
  TY_ASSIGN_OR_RETURN(parsed.meta, kube::ParseObjectMeta(std::move(json)));
  return parsed;
}

class ClusterElasticJob final : public ElasticJob {
 public:
  ClusterElasticJob(Cluster& cluster, std::string name)
      : cluster_(cluster),
        name_(std::move(name)),
        job_(cluster.api(), Clock::System(), IdSource::Random(), Only(AITrainingJobs(), name_), ParseObject),
        history_(cluster.api(), Clock::System(), IdSource::Random(),
                 Only(kube::Resource::ConfigMaps(), kube::HistoryName(kHistoryKind, name_)), ParseObject) {
    job_.OnChange([this](const auto&) { Wake(); });
    history_.OnChange([this](const auto&) { Wake(); });
    job_.Start();
    history_.Start();
  }
  ~ClusterElasticJob() override {
    job_.Stop();
    history_.Stop();
  }

  ElasticNews Await(absl::Duration timeout) override {
    {
      const SteadyTime deadline = Clock::System().Steady() + timeout;
      const MutexLock lock(mu_);
      while (!woken_ && changed_.WaitUntil(mu_, deadline)) {
      }
      woken_ = false;
    }
    ElasticNews news;
    const auto job = job_.cache().Get({cluster_.ns(), name_});
    if (job == nullptr) {
      news.gone = job_.HasSynced();
      return news;
    }
    const Document& object = job->object;
    const job::JobStatus status = StatusOf(object);
    if (const Document* const progress = Find(object, {"status", "progress"}))
      news.progress = job::ParseProgress(job::Reporter::kMaster, *progress);
    news.phase = PhaseOf(status);
    news.restarts = status.CountRestarts();
    news.ended = status.IsFinished();
    news.failed = news.ended && !status.Is(job::State::kSucceeded);
    TakeReplaced(job->meta, news.ended || (news.progress && IsOver(news.progress->phase)), news);
    return news;
  }

  absl::Status Delete() override {
    // What it owns goes with it.
    return cluster_.Delete(AITrainingJobs(), name_);
  }

 private:
  kube::WatcherOptions Only(const kube::Resource& resource, const std::string& name) const {
    return {.resource = resource, .ns = cluster_.ns(), .field_selector = StrCat("metadata.name=", name)};
  }

  // At the end the watch of the history may be behind that of the job: the server is asked.
  void TakeReplaced(const kube::ObjectMeta& job, bool over, ElasticNews& news) {
    std::vector<kube::GonePod> gone;
    if (over) {
      auto read = kube::ReadHistory(cluster_.api(), cluster_.ns(), kHistoryKind, name_, job.uid);
      if (read.ok()) gone = *std::move(read);
    } else if (const auto history =
                   history_.cache().Get({cluster_.ns(), kube::HistoryName(kHistoryKind, name_)})) {
      if (history->meta.controller && history->meta.controller->uid == job.uid)
        gone = kube::ParseHistory(history->object);
    }
    for (kube::GonePod& pod : gone) {
      if (seen_.insert(pod.uid).second) news.replaced.push_back(std::move(pod));
    }
  }

  void Wake() {
    const MutexLock lock(mu_);
    woken_ = true;
    changed_.SignalAll();
  }

  Cluster& cluster_;
  const std::string name_;
  std::set<std::string> seen_;  // uids of pods that were replaced
  Mutex mu_;
  CondVar changed_;
  bool woken_ TY_GUARDED_BY(mu_) = false;
  kube::Informer<ParsedObject> job_;
  kube::Informer<ParsedObject> history_;
};

absl::Status RemoveEnded(Cluster& cluster, const std::string& name) {
  const absl::StatusOr<Document> there = cluster.Get(AITrainingJobs(), name);
  if (kube::IsNotFound(there.status())) return absl::OkStatus();
  TY_RETURN_IF_ERROR(there);
  const bool ours = StringAt(*there, {"metadata", "labels", kElasticJobLabel}) == name;
  if (!ours || !StatusOf(*there).IsFinished()) {
    return absl::AlreadyExistsError(StrCat("job ", name,
                                           ours ? " has not ended" : " is another kind of AITrainingJob",
                                           ": choose another --name, or delete it with `trainyard delete ",
                                           ours ? "elastic" : "aitj", "/", name, "`"));
  }
  return cluster.Delete(AITrainingJobs(), name);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ElasticJob>> ElasticJob::Submit(Cluster& cluster, ElasticSettings settings) {
  master::JobSpec& spec = settings.spec;
  TY_RETURN_IF_ERROR(master::Validate(spec));
  if (spec.id.empty()) spec.id = IdSource::Random().Suffix(kIdLength);
  TY_ASSIGN_OR_RETURN(settings.pods, cluster.FindPodSettings());
  TY_RETURN_IF_ERROR(ResolvePaths(settings));
  settings.state_dir =
      StrCat(MountPath(settings.pods.storage), "/elastic/", cluster.ns(), "/", spec.name, "/", spec.id);
  TY_RETURN_IF_ERROR(RemoveEnded(cluster, spec.name));
  const Document config = JobConfig(settings);
  if (PrintJson(config).size() > kMostConfigBytes) {
    return absl::InvalidArgumentError(
        "the model is too large for a ConfigMap (1 MiB): keep what is large out of the program, as "
        "--init-from");
  }
  TY_ASSIGN_OR_RETURN(const std::string token, NewToken());
  const auto put = [&](const kube::Resource& resource, const Document& object,
                       const std::string& name) -> absl::Status {
    absl::Status made = cluster.Create(resource, object).status();
    if (!kube::IsAlreadyExists(made)) return made;
    // Left over from a job whose master is gone.
    TY_RETURN_IF_ERROR(cluster.Delete(resource, name));
    return cluster.Create(resource, object).status();
  };
  TY_RETURN_IF_ERROR(put(kube::Resource::Secrets(), TokenSecret(cluster.ns(), TokenName(spec.name), token),
                         TokenName(spec.name)));
  TY_RETURN_IF_ERROR(put(kube::Resource::ConfigMaps(), config, ConfigName(spec.name)));
  const absl::StatusOr<Document> made = cluster.Create(AITrainingJobs(), ElasticJobObject(settings));
  if (!made.ok()) {
    cluster.Delete(kube::Resource::Secrets(), TokenName(spec.name)).IgnoreError();
    cluster.Delete(kube::Resource::ConfigMaps(), ConfigName(spec.name)).IgnoreError();
    return made.status();
  }
  // From now on they go with the job.
  const std::string owner = PrintJson(OwnerPatch(*made));
  std::vector<kube::Operation> patches;
  patches.push_back(
      kube::PatchOperation(kube::Resource::Secrets(), {cluster.ns(), TokenName(spec.name)}, owner, {}));
  patches.push_back(
      kube::PatchOperation(kube::Resource::ConfigMaps(), {cluster.ns(), ConfigName(spec.name)}, owner, {}));
  for (const auto& patched : cluster.api().Do(std::move(patches))) TY_RETURN_IF_ERROR(patched.status());
  return std::make_unique<ClusterElasticJob>(cluster, spec.name);
}

absl::StatusOr<std::unique_ptr<ElasticJob>> ElasticJob::Attach(Cluster& cluster, std::string_view name) {
  TY_RETURN_IF_ERROR(cluster.Get(AITrainingJobs(), name));
  return std::make_unique<ClusterElasticJob>(cluster, std::string(name));
}

}  // namespace trainyard::client
