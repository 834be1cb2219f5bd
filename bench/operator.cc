// How fast the operator makes what jobs ask for, how soon it mends what failed, and what it costs when
// nothing happens.
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <utility>

#include "base/document.h"
#include "base/status.h"
#include "base/text.h"
#include "bench/job_load.h"
#include "bench/local_cluster.h"
#include "bench/report.h"
#include "job/job_testing.h"
#include "job/plan.h"
#include "kube/pod.h"
#include "tests/support/kube_apiserver.h"

namespace trainyard::bench {
namespace {

using kube::Resource;

const std::vector<std::string> kClusterFlags = {"--capacity", "pods=0"};  // nobody is to run what is measured

struct Shape {
  int jobs = 0;
  int workers = 0;
  int objects() const { return 2 * jobs * workers; }
};

SteadyTime OperatorNow() { return Clock::System().Steady(); }

absl::Status SubmitJobs(JobLoad& load, const std::string& ns, const Shape& shape) {
  std::vector<std::string> bodies;
  bodies.reserve(static_cast<std::size_t>(shape.jobs));
  for (int i = 0; i < shape.jobs; ++i) bodies.push_back(JobBody(StrCat("job-", i), shape.workers));
  return load.CreateAll(TfJobs(), ns, std::move(bodies));
}

// From the submission of jobs to the last of their pods and services, in seconds.
absl::StatusOr<double> MakeJobs(JobLoad& load, const std::string& ns, const Shape& shape) {
  TY_RETURN_IF_ERROR(load.MakeNamespace(ns));
  const ObjectCounter services(load.transport(), Resource::Services(), ns);
  TY_ASSIGN_OR_RETURN(const auto kubelet, InstantKubelet::Start(load.kubeconfig(), ns));
  const auto count = [&] { return services.count() + kubelet->pods(); };
  const SteadyTime begin = OperatorNow();
  TY_RETURN_IF_ERROR(SubmitJobs(load, ns, shape));
  TY_RETURN_IF_ERROR(AwaitCount(count, shape.objects()));
  return absl::ToDoubleSeconds(OperatorNow() - begin);
}

// The same objects from a client that does nothing else, a second.
absl::StatusOr<double> RawCreates(JobLoad& load, const std::string& ns, const Shape& shape) {
  TY_RETURN_IF_ERROR(load.MakeNamespace(ns));
  const ObjectCounter services(load.transport(), Resource::Services(), ns);
  TY_ASSIGN_OR_RETURN(const auto kubelet, InstantKubelet::Start(load.kubeconfig(), ns));
  const auto count = [&] { return services.count() + kubelet->pods(); };
  std::vector<kube::Operation> operations;
  for (int i = 0; i < shape.jobs * shape.workers; ++i) {
    const std::string name = StrCat("raw-", i);
    operations.push_back(kube::CreateOperation(Resource::Services(), ns, LikeServiceBody(name)));
    operations.push_back(kube::CreateOperation(Resource::Pods(), ns, LikePodBody(name, shape.workers)));
  }
  const SteadyTime begin = OperatorNow();
  for (const auto& answer : load.api().Do(std::move(operations))) TY_RETURN_IF_ERROR(answer);
  TY_RETURN_IF_ERROR(AwaitCount(count, shape.objects()));
  return shape.objects() / absl::ToDoubleSeconds(OperatorNow() - begin);
}

// ---- the embedded cluster

absl::StatusOr<double> MakeOnEmbedded(const Settings& settings, const Shape& shape) {
  std::vector<double> times;
  TY_ASSIGN_OR_RETURN(const auto cluster,
                      LocalCluster::Start(settings.trainyard, settings.folder + "/operator", kClusterFlags));
  TY_ASSIGN_OR_RETURN(const auto load, JobLoad::Connect(cluster->kubeconfig()));
  TY_RETURN_IF_ERROR(load->InstallKinds());
  for (int round = 0; round < settings.rounds; ++round) {
    const std::string ns = StrCat("round-", round);
    TY_ASSIGN_OR_RETURN(const double time, MakeJobs(*load, ns, shape));
    times.push_back(time);
    TY_RETURN_IF_ERROR(load->DeleteAll(TfJobs(), ns));
  }
  return Quantile(times, 0.5);
}

// ---- a real API server

struct Share {
  double operator_rate = 0;
  double raw_rate = 0;
};
absl::StatusOr<Share> MakeOnReal(const Settings& settings, const testing_support::KubeApiServer& server,
                                 const Shape& shape) {
  TY_ASSIGN_OR_RETURN(const auto load, JobLoad::Connect(server.kubeconfig()));
  TY_RETURN_IF_ERROR(load->InstallKinds());
  TY_ASSIGN_OR_RETURN(
      const OperatorProcess process,
      OperatorProcess::Start(settings.trainyard, server.kubeconfig(), settings.folder + "/operator.log"));
  std::vector<double> raw;
  std::vector<double> own;
  TY_RETURN_IF_ERROR(RawCreates(*load, StrCat("warm-", shape.jobs), {shape.jobs, 1}));
  for (int round = 0; round < settings.rounds; ++round) {  // in turns, so that noise falls on both
    const std::string name = StrCat("x", shape.jobs, "-", round);
    TY_ASSIGN_OR_RETURN(const double rate, RawCreates(*load, StrCat("raw-", name), shape));
    raw.push_back(rate);
    TY_ASSIGN_OR_RETURN(const double time, MakeJobs(*load, StrCat("jobs-", name), shape));
    own.push_back(shape.objects() / time);
    TY_RETURN_IF_ERROR(load->DeleteAll(TfJobs(), StrCat("jobs-", name)));
    for (const std::string& ns :
         {StrCat("raw-", name), StrCat("jobs-", name)}) {  // nobody collects garbage here
      TY_RETURN_IF_ERROR(load->DeleteAll(Resource::Pods(), ns));
      TY_RETURN_IF_ERROR(load->DeleteAll(Resource::Services(), ns));
    }
  }
  return Share{.operator_rate = Quantile(own, 0.5), .raw_rate = Quantile(raw, 0.5)};
}

}  // namespace

void OperatorOnRealRows(const Settings& settings, std::vector<Row>& rows) {
  if (std::getenv("KUBEBUILDER_ASSETS") == nullptr) return;
  const auto server = testing_support::KubeApiServer::Start();
  for (const Shape& shape : {Shape{100, 10}, Shape{10, 200}}) {
    const Shape used = settings.quick ? Shape{2, 2} : shape;
    Row row{
        .name = StrCat("operator: ", shape.jobs, " jobs x ", shape.workers, " pods on a real kube-apiserver"),
        .unit = "creates/s",
        .limit_name = "creates/s of a bare client",
        .least_ratio = 0.85};
    const auto share = server.ok() ? MakeOnReal(settings, **server, used) : server.status();
    if (share.ok()) row.limit = share->raw_rate;
    Add(rows, std::move(row), share.ok() ? absl::StatusOr<double>(share->operator_rate) : share.status());
  }
}

// ---- failures

namespace {

constexpr std::string_view kFailed =
    R"({"status":{"phase":"Failed","containerStatuses":[{"name":"tensorflow","image":"none","imageID":"","ready":false,)"
    R"("restartCount":0,"state":{"terminated":{"exitCode":137,"reason":"Error"}}}]}})";

// Tells of each pod that is added.
class AddedNames {
 public:
  absl::Status Open(kube::Transport& transport, const std::string& ns) {
    api_.emplace(transport, Clock::System(), IdSource::Random());
    TY_ASSIGN_OR_RETURN(const kube::ListPage page, api_->List(Resource::Pods(), ns, {.limit = 1}));
    TY_ASSIGN_OR_RETURN(stream_,
                        api_->Watch(Resource::Pods(), ns, {.resource_version = page.resource_version}));
    return absl::OkStatus();
  }
  // Until one of that kind is told of.
  absl::Status Await(kube::WatchEventType type) {
    for (;;) {
      TY_ASSIGN_OR_RETURN(const kube::WatchEvent event, stream_->Next(absl::Seconds(20)));
      if (event.type == type) return absl::OkStatus();
    }
  }

 private:
  std::optional<kube::Api> api_;
  std::unique_ptr<kube::WatchStream> stream_;
};

struct Recovery {
  double p99 = 0;
  double own_p50 = 0;  // what the API server alone takes for the same writes
};

// One job after the other loses its pod.
absl::StatusOr<Recovery> MeasureRecovery(const Settings& settings, JobLoad& load, const std::string& ns,
                                         int jobs) {
  const int samples = std::min(settings.quick ? 3 : 200, jobs);
  TY_ASSIGN_OR_RETURN(const kube::ListPage page, load.api().ListAll(Resource::Pods(), ns, {}));
  AddedNames events;
  TY_RETURN_IF_ERROR(events.Open(load.transport(), ns));
  std::vector<double> times;
  std::vector<double> own;
  for (int i = 0; i < samples; ++i) {
    TY_ASSIGN_OR_RETURN(const kube::ObjectMeta meta,
                        kube::ParseObjectMeta(page.items[static_cast<std::size_t>(i)]));
    const SteadyTime begin = OperatorNow();
    TY_RETURN_IF_ERROR(load.api().Patch(Resource::Pods(), meta.Key(), std::string(kFailed),
                                        {.type = kube::PatchType::kMerge}, "status"));
    TY_RETURN_IF_ERROR(events.Await(kube::WatchEventType::kAdded));
    times.push_back(absl::ToDoubleMilliseconds(OperatorNow() - begin));
  }
  // The same by hand: the failure, a status, a delete, a create, each one seen before the next.
  const std::string other = ns + "-own";
  TY_RETURN_IF_ERROR(load.MakeNamespace(other));
  AddedNames own_events;
  TY_RETURN_IF_ERROR(own_events.Open(load.transport(), other));
  TY_RETURN_IF_ERROR(load.api().Create(Resource::Pods(), other, LikePodBody("own", 1)));
  TY_RETURN_IF_ERROR(own_events.Await(kube::WatchEventType::kAdded));
  for (int i = 0; i < samples; ++i) {
    const SteadyTime begin = OperatorNow();
    for (const bool failed : {true, false}) {
      TY_RETURN_IF_ERROR(
          load.api().Patch(Resource::Pods(), {other, "own"},
                           failed ? std::string(kFailed) : R"({"status":{"message":"counted"}})",
                           {.type = kube::PatchType::kMerge}, "status"));
      TY_RETURN_IF_ERROR(own_events.Await(kube::WatchEventType::kModified));
    }
    TY_RETURN_IF_ERROR(load.api().Delete(Resource::Pods(), {other, "own"}));
    TY_RETURN_IF_ERROR(own_events.Await(kube::WatchEventType::kDeleted));
    TY_RETURN_IF_ERROR(load.api().Create(Resource::Pods(), other, LikePodBody("own", 1)));
    TY_RETURN_IF_ERROR(own_events.Await(kube::WatchEventType::kAdded));
    own.push_back(absl::ToDoubleMilliseconds(OperatorNow() - begin));
  }
  return Recovery{.p99 = Quantile(times, 0.99), .own_p50 = Quantile(own, 0.5)};
}

// ---- what it costs

// A job that ended long ago.
absl::Status MakeFinished(JobLoad& load, const std::string& ns, int jobs) {
  constexpr int kAtOnce = 1000;
  constexpr std::string_view kStatus =
      R"({"status":{"completionTime":"2024-05-01T10:00:00Z","startTime":"2024-05-01T09:00:00Z","observedGeneration":1,)"
      R"("ready":"1/1","restartCount":0,"lastReconcileTime":"2024-05-01T10:00:00Z",)"
      R"("tfReplicaStatuses":{"Worker":{"active":0,"succeeded":1,"failed":0,"completedIndexes":"0"}},)"
      R"("conditions":[{"type":"Succeeded","status":"True","reason":"TFJobSucceeded","message":"worker-0 ended with 0",)"
      R"("lastUpdateTime":"2024-05-01T10:00:00Z","lastTransitionTime":"2024-05-01T10:00:00Z"}]}})";
  for (int from = 0; from < jobs; from += kAtOnce) {
    std::vector<std::string> bodies;
    std::vector<kube::Operation> ends;
    for (int i = from; i < std::min(from + kAtOnce, jobs); ++i) {
      // Suspended until it has ended, so that nobody makes pods for it.
      Document job = ParseJson(JobBody(StrCat("old-", i), 1)).value();
      MakeObjectAt(job, {"spec"})["suspend"] = true;
      bodies.push_back(trainyard::PrintJson(job));
      ends.push_back(kube::PatchOperation(TfJobs(), {ns, StrCat("old-", i)}, std::string(kStatus),
                                          {.type = kube::PatchType::kMerge}, "status"));
    }
    TY_RETURN_IF_ERROR(load.CreateAll(TfJobs(), ns, std::move(bodies)));
    for (const auto& answer : load.api().Do(std::move(ends))) TY_RETURN_IF_ERROR(answer);
  }
  return absl::OkStatus();
}

// The share of a core that the operator takes while nothing happens, in percent.
absl::StatusOr<double> IdleCpu(const OperatorProcess& process, absl::Duration window) {
  TY_ASSIGN_OR_RETURN(const absl::Duration before, process.CpuTime());
  const SteadyTime begin = OperatorNow();
  ::usleep(static_cast<useconds_t>(absl::ToInt64Microseconds(window)));
  TY_ASSIGN_OR_RETURN(const absl::Duration after, process.CpuTime());
  return 100 * absl::FDivDuration(after - before, OperatorNow() - begin);
}

class LargeCluster {
 public:
  static absl::StatusOr<std::unique_ptr<LargeCluster>> Start(const Settings& settings) {
    auto large = std::make_unique<LargeCluster>();
    std::vector<std::string> flags = kClusterFlags;
    flags.emplace_back("--no-operator");
    TY_ASSIGN_OR_RETURN(large->cluster,
                        LocalCluster::Start(settings.trainyard, settings.folder + "/large", flags));
    TY_ASSIGN_OR_RETURN(large->load, JobLoad::Connect(large->cluster->kubeconfig()));
    TY_RETURN_IF_ERROR(large->load->InstallKinds());
    TY_ASSIGN_OR_RETURN(OperatorProcess process,
                        OperatorProcess::Start(settings.trainyard, large->cluster->kubeconfig(),
                                               settings.folder + "/large-operator.log"));
    large->process.emplace(std::move(process));
    return large;
  }

  // So many jobs, all of whose pods run.
  absl::Status Fill(const std::string& ns, const Shape& shape) {
    TY_RETURN_IF_ERROR(load->MakeNamespace(ns));
    TY_ASSIGN_OR_RETURN(kubelet, InstantKubelet::Start(load->kubeconfig(), ns));
    TY_RETURN_IF_ERROR(SubmitJobs(*load, ns, shape));
    return AwaitCount([this] { return kubelet->started(); }, shape.objects() / 2);
  }

  std::unique_ptr<LocalCluster> cluster;
  std::unique_ptr<JobLoad> load;
  std::optional<OperatorProcess> process;
  std::unique_ptr<InstantKubelet> kubelet;
};

void CostRows(const Settings& settings, std::vector<Row>& rows) {
  const Shape full = settings.quick ? Shape{3, 2} : Shape{1000, 10};
  const int finished = settings.quick ? 5 : 10'000;
  auto large = LargeCluster::Start(settings);
  absl::Status ready = large.ok() ? (*large)->Fill("full", full) : large.status();
  Row memory{
      .name = StrCat("operator: memory with ", full.jobs, " jobs and ", full.jobs * full.workers, " pods"),
      .unit = "MiB",
      .most_figure = 40};
  if (ready.ok() && !settings.quick) ::sleep(12);  // until what only the burst needed has been given back
  Add(rows, std::move(memory), ready.ok() ? (*large)->process->ResidentMiB() : ready);

  Row recovery{.name = StrCat("operator: failure to replacement, p99 with ", full.jobs,
                              " jobs, beyond the server's own time"),
               .unit = "ms",
               .most_figure = 20};
  const auto recovered = ready.ok() ? MeasureRecovery(settings, *(*large)->load, "full", full.jobs) : ready;
  Add(rows, std::move(recovery),
      recovered.ok() ? absl::StatusOr<double>(recovered->p99 - recovered->own_p50) : recovered.status());

  if (ready.ok()) ready = (*large)->load->MakeNamespace("old");
  if (ready.ok()) ready = MakeFinished(*(*large)->load, "old", finished);
  if (ready.ok() && !settings.quick) ::sleep(5);  // what this has stirred up settles
  Row idle{.name = StrCat("operator: CPU with ", finished, " finished and ", full.jobs, " quiet jobs"),
           .unit = "% of a core",
           .most_figure = 0.5};
  Add(rows, std::move(idle),
      ready.ok() ? IdleCpu(*(*large)->process, settings.quick ? absl::Milliseconds(200) : absl::Seconds(60))
                 : ready);
}

// ---- the plan

double PlanLargeJob(int pods) {
  job::World world(job::Workers(pods, job::RestartPolicy::kExitCode));
  world.Settle();
  world.RunAll();
  world.Settle();
  world.End(world.view.pods.front(), 137);
  std::vector<double> times;
  for (int i = 0; i < 20; ++i) {
    const SteadyTime begin = OperatorNow();
    const job::JobPlan plan = world.Plan();
    times.push_back(absl::ToDoubleMilliseconds(OperatorNow() - begin));
    if (plan.status == world.view.status) return -1;  // it has overlooked the failure
  }
  return Quantile(times, 0.5);
}

}  // namespace

void OperatorRows(const Settings& settings, std::vector<Row>& rows) {
  const int large = settings.quick ? 100 : 10'000;
  Add(rows,
      {.name = StrCat("operator: PlanJob for a job of ", large, " pods"), .unit = "ms", .most_figure = 10},
      PlanLargeJob(large));
  const Shape shape = settings.quick ? Shape{2, 2} : Shape{100, 10};
  Add(rows,
      {.name =
           StrCat("operator: ", shape.jobs, " jobs x ", shape.workers, " pods, all pods and services made"),
       .unit = "s",
       .most_figure = 0.8},
      MakeOnEmbedded(settings, shape));
  CostRows(settings, rows);
}

}  // namespace trainyard::bench
