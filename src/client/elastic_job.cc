#include "client/elastic_job.h"

#include <utility>

#include "base/access.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/text.h"
#include "kube/informer.h"
#include "kube/pod.h"
#include "master/pods/keeper.h"
#include "master/pods/teller.h"

namespace trainyard::client {
namespace {

constexpr int kIdLength = 8;
constexpr std::size_t kMostConfigBytes = std::size_t{1} << 20;

// A ConfigMap's metadata and the line that matters.
struct ProgressText {
  kube::ObjectMeta meta;
  std::string text;
};

absl::StatusOr<ProgressText> ParseProgressText(std::string json) {
  TY_ASSIGN_OR_RETURN(const Document object, ParseJson(json));
  ProgressText progress;
  progress.text = StringAt(object, {"data", master::kProgressKey});
  TY_ASSIGN_OR_RETURN(progress.meta, kube::ParseObjectMeta(std::move(json)));
  return progress;
}

// Why the pod does not do what it should; "": it does.
std::string TroubleOf(const kube::CompactPod& pod) {
  if (pod.phase == kube::PodPhase::kPending) {
    if (!pod.unscheduled.empty()) return StrCat("waits for a node: ", pod.unscheduled.view());
    for (const kube::ContainerStatus& container : pod.containers) {
      if (container.state.kind == kube::ContainerState::Kind::kWaiting && !container.state.reason.empty())
        return StrCat(container.state.reason.view(), container.state.message.empty() ? "" : ": ",
                      container.state.message);
    }
    return "is being started";
  }
  for (const kube::ContainerStatus& container : pod.containers) {
    if (container.state.kind == kube::ContainerState::Kind::kWaiting && container.last_termination)
      return StrCat("exited ", container.last_termination->exit_code, ": ",
                    container.last_termination->message);
    if (container.state.kind != kube::ContainerState::Kind::kTerminated) continue;
    if (container.state.exit_code != 0)
      return StrCat("exited ", container.state.exit_code, ": ", container.state.message);
    // The master of a job that has failed exits 0, so that no kubelet begins it again.
    if (!container.state.message.empty()) return StrCat("failed: ", container.state.message);
  }
  return "";
}

class ClusterElasticJob final : public ElasticJob {
 public:
  ClusterElasticJob(Cluster& cluster, std::string name)
      : cluster_(cluster),
        name_(std::move(name)),
        progress_(cluster.api(), Clock::System(), IdSource::Random(),
                  {.resource = kube::Resource::ConfigMaps(),
                   .ns = cluster.ns(),
                   .field_selector = StrCat("metadata.name=", master::ProgressName(name_))},
                  ParseProgressText),
        master_(cluster.api(), Clock::System(), IdSource::Random(),
                {.resource = kube::Resource::Pods(),
                 .ns = cluster.ns(),
                 .field_selector = StrCat("metadata.name=", MasterName(name_))},
                [](std::string json) { return kube::ParsePod(std::move(json)); }) {
    progress_.OnChange([this](const auto&) { Wake(); });
    master_.OnChange([this](const auto&) { Wake(); });
    progress_.Start();
    master_.Start();
  }
  ~ClusterElasticJob() override {
    progress_.Stop();
    master_.Stop();
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
    const kube::ObjectKey progress_key{cluster_.ns(), master::ProgressName(name_)};
    const auto take = [&](const std::string& text) {
      if (auto parsed = ParseJson(text); parsed.ok()) news.progress = *std::move(parsed);
    };
    if (const auto progress = progress_.cache().Get(progress_key)) take(progress->text);
    const auto pod = master_.cache().Get({cluster_.ns(), MasterName(name_)});
    if (pod == nullptr) {
      news.gone = master_.HasSynced();
      return news;
    }
    news.master = TroubleOf(*pod);
    news.ended = pod->IsFinished();
    if (!news.ended) return news;
    // The watch of the pod may be ahead of the watch of what the master wrote before it ended.
    const auto last = cluster_.api().Get(kube::Resource::ConfigMaps(), progress_key);
    if (const auto progress = last.ok() ? ParseProgressText(*last) : last.status(); progress.ok())
      take(progress->text);
    if (news.master.empty()) news.master = "ended without a result";
    return news;
  }

  absl::Status Delete() override {
    // Workers and progress are the master's own, and go with it.
    TY_RETURN_IF_ERROR(cluster_.Delete(kube::Resource::Pods(), MasterName(name_)));
    for (const auto& [resource, object] :
         {std::pair(&kube::Resource::ConfigMaps(), ConfigName(name_)),
          std::pair(&kube::Resource::Secrets(), TokenName(name_)),
          std::pair(&kube::Resource::ConfigMaps(), master::ProgressName(name_))}) {
      TY_RETURN_IF_ERROR(cluster_.Delete(*resource, object));
    }
    return absl::OkStatus();
  }

 private:
  void Wake() {
    const MutexLock lock(mu_);
    woken_ = true;
    changed_.SignalAll();
  }

  Cluster& cluster_;
  const std::string name_;
  Mutex mu_;
  CondVar changed_;
  bool woken_ TY_GUARDED_BY(mu_) = false;
  kube::Informer<ProgressText> progress_;
  kube::Informer<kube::CompactPod> master_;
};

absl::Status RemoveEnded(Cluster& cluster, const std::string& name) {
  const absl::StatusOr<std::string> there =
      cluster.api().Get(kube::Resource::Pods(), {cluster.ns(), MasterName(name)});
  if (kube::IsNotFound(there.status())) return absl::OkStatus();
  TY_RETURN_IF_ERROR(there);
  TY_ASSIGN_OR_RETURN(const kube::CompactPod pod, kube::ParsePod(*there));
  if (!pod.IsFinished()) {
    return absl::AlreadyExistsError(
        StrCat("job ", name,
               " is there already, and has not ended: choose another --name, or delete it with "
               "`kubectl delete pod ",
               MasterName(name), "`"));
  }
  return ClusterElasticJob(cluster, name).Delete();
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
  TY_RETURN_IF_ERROR(cluster.Create(kube::Resource::Pods(), MasterPod(settings)));
  return std::make_unique<ClusterElasticJob>(cluster, spec.name);
}

absl::StatusOr<std::unique_ptr<ElasticJob>> ElasticJob::Attach(Cluster& cluster, std::string_view name) {
  TY_RETURN_IF_ERROR(cluster.Get(kube::Resource::Pods(), MasterName(name)));
  return std::make_unique<ClusterElasticJob>(cluster, std::string(name));
}

}  // namespace trainyard::client
