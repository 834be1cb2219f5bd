#include "bench/job_load.h"

#include <unistd.h>

#include <fstream>
#include <utility>

#include "base/document.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/text.h"
#include "bench/local_cluster.h"
#include "kube/curl_transport.h"
#include "kube/informer.h"
#include "kube/kubeconfig.h"
#include "kube/pod.h"
#include "operator/kinds.h"
#include "operator/tfjob.h"

namespace trainyard::bench {
namespace {

constexpr absl::Duration kJobLoadPatience = absl::Seconds(120);

Document ParsedJob(std::string_view name, int workers) {
  Document job = ParseJson(JobBody(name, workers)).value();
  MakeObjectAt(job, {"metadata"})["namespace"] = "default";
  MakeObjectAt(job, {"metadata"})["uid"] = "0a1b2c3d-0000-4000-8000-000000000000";
  return job;
}

// What the operator makes for the first worker of such a job, under another name.
std::string Renamed(const std::string& object, std::string_view name) {
  Document document = ParseJson(object).value();
  Object& metadata = MakeObjectAt(document, {"metadata"});
  metadata["name"] = name;
  Remove(metadata, "ownerReferences");  // an owner that does not exist
  Remove(metadata, "namespace");
  return PrintJson(document);
}

std::string RunningStatus(std::string_view container) {
  return StrCat(
      R"({"status":{"phase":"Running","startTime":"2024-05-01T10:00:00Z","containerStatuses":[{"name":")",
      container,
      R"(","image":"none","imageID":"","ready":true,"restartCount":0,"state":{"running":{"startedAt":"2024-05-01T10:00:00Z"}}}]}})");
}

}  // namespace

const kube::Resource& TfJobs() {
  static const auto* const resource =
      new kube::Resource{.group = "kubeflow.org", .version = "v1alpha2", .plural = "tfjobs", .kind = "TFJob"};
  return *resource;
}

std::string JobBody(std::string_view name, int workers) {
  const Object container{{"name", "tensorflow"},
                         {"image", "none"},
                         {"command", Array{"python3", "/opt/train.py"}},
                         {"args", Array{"--batch-size", "64", "--epochs", "10"}},
                         {"env", Array{Object{{"name", "DATA"}, {"value", "/data/mnist"}}}}};
  const Object worker{{"replicas", workers},
                      {"restartPolicy", "ExitCode"},
                      {"template", Object{{"spec", Object{{"schedulerName", "nobody"},
                                                          {"terminationGracePeriodSeconds", 0},
                                                          {"containers", Array{container}}}}}}};
  return PrintJson(Object{{"apiVersion", TfJobs().ApiVersion()},
                          {"kind", TfJobs().kind},
                          {"metadata", Object{{"name", name}}},
                          {"spec", Object{{"tfReplicaSpecs", Object{{"Worker", worker}}}}}});
}

std::string LikePodBody(std::string_view name, int workers) {
  const reconcile::CompactJob job = ops::TfJobKind().Decode(PrintJson(ParsedJob("like", workers))).value();
  return Renamed(ops::TfJobKind().NewMaker(job)->MakePod({.role = "worker"}), name);
}

std::string LikeServiceBody(std::string_view name) {
  const reconcile::CompactJob job = ops::TfJobKind().Decode(PrintJson(ParsedJob("like", 1))).value();
  return Renamed(ops::TfJobKind().NewMaker(job)->MakeService({.role = "worker"}), name);
}

// ---- the client

absl::StatusOr<std::unique_ptr<kube::Transport>> ConnectTo(const std::string& kubeconfig) {
  TY_ASSIGN_OR_RETURN(kube::ClusterConfig config, kube::LoadConfig({.path = kubeconfig}));
  return kube::NewCurlTransport(std::move(config));
}

absl::StatusOr<std::unique_ptr<JobLoad>> JobLoad::Connect(std::string kubeconfig) {
  auto load = std::make_unique<JobLoad>();
  load->kubeconfig_ = std::move(kubeconfig);
  TY_ASSIGN_OR_RETURN(load->transport_, ConnectTo(load->kubeconfig_));
  load->api_ = std::make_unique<kube::Api>(*load->transport_, Clock::System(), IdSource::Random());
  return load;
}

absl::Status JobLoad::InstallKinds() {
  TY_RETURN_IF_ERROR(ops::InstallDefinitions(*api_));
  const SteadyTime deadline = Clock::System().Steady() + kJobLoadPatience;
  const auto served = [&](const reconcile::Kind& kind) {
    return api_->List(kind.resource(), "default", {.limit = 1}).ok();
  };
  // A server takes a moment to serve a new kind.
  while (!std::ranges::all_of(ops::AllKinds(), served,
                              [](const auto& kind) -> const reconcile::Kind& { return *kind; })) {
    if (Clock::System().Steady() > deadline) return absl::DeadlineExceededError("the kinds are not served");
    ::usleep(20'000);
  }
  return absl::OkStatus();
}

absl::Status JobLoad::MakeNamespace(const std::string& ns) {
  return api_
      ->Create(
          kube::Resource::Namespaces(), "",
          PrintJson(Object{{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", Object{{"name", ns}}}}))
      .status();
}

absl::Status JobLoad::CreateAll(const kube::Resource& resource, const std::string& ns,
                                std::vector<std::string> bodies) {
  std::vector<kube::Operation> operations;
  operations.reserve(bodies.size());
  for (std::string& body : bodies) operations.push_back(kube::CreateOperation(resource, ns, std::move(body)));
  for (const auto& answer : api_->Do(std::move(operations))) TY_RETURN_IF_ERROR(answer);
  return absl::OkStatus();
}

absl::Status JobLoad::DeleteAll(const kube::Resource& resource, const std::string& ns) {
  TY_ASSIGN_OR_RETURN(const kube::ListPage page, api_->ListAll(resource, ns, {}));
  std::vector<kube::Operation> operations;
  for (const std::string& item : page.items) {
    TY_ASSIGN_OR_RETURN(const kube::ObjectMeta meta, kube::ParseObjectMeta(item));
    operations.push_back(kube::DeleteOperation(resource, meta.Key(), {.grace_seconds = 0}));
  }
  for (const auto& answer : api_->Do(std::move(operations))) {
    if (!kube::IsNotFound(answer.status())) TY_RETURN_IF_ERROR(answer);
  }
  return absl::OkStatus();
}

// ---- counting

namespace {
struct CountedObject {
  kube::ObjectMeta meta;
};
absl::StatusOr<CountedObject> DecodeCounted(std::string json) {
  TY_ASSIGN_OR_RETURN(kube::ObjectMeta meta, kube::ParseObjectMeta(std::move(json)));
  return CountedObject{std::move(meta)};
}
}  // namespace

struct ObjectCounter::Feed {
  Feed(kube::Transport& transport, const kube::Resource& resource, const std::string& ns)
      : api(transport, Clock::System(), IdSource::Random()),
        informer(api, Clock::System(), IdSource::Random(), {.resource = resource, .ns = ns}, DecodeCounted) {}
  kube::Api api;
  kube::Informer<CountedObject> informer;
};

ObjectCounter::ObjectCounter(kube::Transport& transport, const kube::Resource& resource,
                             const std::string& ns)
    : feed_(std::make_unique<Feed>(transport, resource, ns)) {
  feed_->informer.Start();
}
ObjectCounter::~ObjectCounter() = default;

std::int64_t ObjectCounter::count() const {
  return static_cast<std::int64_t>(feed_->informer.cache().Size());
}

absl::Status AwaitCount(const std::function<std::int64_t()>& count, std::int64_t wanted) {
  const SteadyTime deadline = Clock::System().Steady() + kJobLoadPatience;
  while (count() < wanted) {
    if (Clock::System().Steady() > deadline) {
      return absl::DeadlineExceededError(StrCat(count(), " of ", wanted, " objects are there"));
    }
    ::usleep(1'000);
  }
  return absl::OkStatus();
}

// ---- the kubelet

class InstantKubelet::Feed {
 public:
  Feed(std::unique_ptr<kube::Transport> transport, std::string ns, std::string running,
       std::atomic<std::int64_t>& started)
      : transport_(std::move(transport)),
        api_(*transport_, Clock::System(), IdSource::Random()),
        informer_(api_, Clock::System(), IdSource::Random(),
                  {.resource = kube::Resource::Pods(), .ns = std::move(ns)},
                  [](std::string json) { return kube::ParsePod(std::move(json)); }),
        running_(std::move(running)),
        started_(started) {
    informer_.OnChange([this](const kube::Change<kube::CompactPod>& change) {
      if (change.after == nullptr || change.after->phase != kube::PodPhase::kPending) return;
      MutexLock lock(mu_);
      waiting_.push_back(change.after->meta.Key());
      changed_.SignalAll();
    });
    informer_.Start();
    thread_ = std::thread([this] { Work(); });
  }
  std::int64_t pods() const { return static_cast<std::int64_t>(informer_.cache().Size()); }
  ~Feed() {
    informer_.Stop();
    {
      MutexLock lock(mu_);
      stopping_ = true;
      changed_.SignalAll();
    }
    thread_.join();
  }

 private:
  void Work() {
    for (;;) {
      std::vector<kube::ObjectKey> keys;
      {
        MutexLock lock(mu_);
        while (waiting_.empty() && !stopping_) changed_.Wait(mu_);
        if (stopping_) return;
        keys.swap(waiting_);
      }
      std::vector<kube::Operation> operations;
      operations.reserve(keys.size());
      for (const kube::ObjectKey& key : keys) {
        operations.push_back(kube::PatchOperation(kube::Resource::Pods(), key, running_,
                                                  {.type = kube::PatchType::kMerge}, "status"));
      }
      for (const auto& answer : api_.Do(std::move(operations))) started_ += answer.ok() ? 1 : 0;
    }
  }

  const std::unique_ptr<kube::Transport> transport_;
  kube::Api api_;
  kube::Informer<kube::CompactPod> informer_;
  const std::string running_;
  std::atomic<std::int64_t>& started_;
  Mutex mu_;
  CondVar changed_;
  std::vector<kube::ObjectKey> waiting_ TY_GUARDED_BY(mu_);
  bool stopping_ TY_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

absl::StatusOr<std::unique_ptr<InstantKubelet>> InstantKubelet::Start(const std::string& kubeconfig,
                                                                      std::string ns,
                                                                      std::string_view container) {
  TY_ASSIGN_OR_RETURN(auto transport, ConnectTo(kubeconfig));
  std::unique_ptr<InstantKubelet> kubelet(new InstantKubelet);
  kubelet->feed_ = std::make_unique<Feed>(std::move(transport), std::move(ns), RunningStatus(container),
                                          kubelet->started_);
  return kubelet;
}
InstantKubelet::~InstantKubelet() = default;
std::int64_t InstantKubelet::pods() const { return feed_->pods(); }

// ---- the operator

absl::StatusOr<OperatorProcess> OperatorProcess::Start(const std::string& trainyard,
                                                       const std::string& kubeconfig,
                                                       const std::string& log) {
  TY_ASSIGN_OR_RETURN(Child child, Child::Spawn({.argv = {trainyard, "operator", "--kubeconfig", kubeconfig},
                                                 .stdout_path = log,
                                                 .stderr_path = log}));
  return OperatorProcess(std::move(child));
}

absl::StatusOr<absl::Duration> OperatorProcess::CpuTime() const {
  std::ifstream stat(StrCat("/proc/", child_.pid(), "/stat"));
  std::string text((std::istreambuf_iterator<char>(stat)), {});
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return absl::NotFoundError("the operator has ended");
  const std::string rest = text.substr(name_end + 2);
  const std::vector<std::string_view> fields = Split(rest, ' ');  // from the third field on
  const auto user = ParseNumber<std::int64_t>(fields.at(11));
  const auto system = ParseNumber<std::int64_t>(fields.at(12));
  if (!user || !system) return absl::InternalError("cannot read the operator's times");
  return absl::Seconds(static_cast<double>(*user + *system) / static_cast<double>(::sysconf(_SC_CLK_TCK)));
}

absl::StatusOr<double> OperatorProcess::ResidentMiB() const { return bench::ResidentMiB(child_.pid()); }

}  // namespace trainyard::bench
