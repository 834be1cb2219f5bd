// How fast AITrainingJobs come to run, and how soon they run again when a process of theirs is killed.
#include "operator/aijob.h"

#include <dirent.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "base/document.h"
#include "base/status.h"
#include "base/text.h"
#include "bench/job_load.h"
#include "bench/local_cluster.h"
#include "bench/report.h"
#include "kube/curl_transport.h"
#include "kube/informer.h"
#include "kube/kubeconfig.h"
#include "operator/operator.h"

namespace trainyard::bench {
namespace {

using kube::Resource;

constexpr std::string_view kContainer = "aitj-main";
constexpr absl::Duration kAijobPatience = absl::Minutes(2);

SteadyTime Now() { return Clock::System().Steady(); }

const Resource& AiJobs() {
  static const ops::AiJobKind kind;
  return kind.resource();
}

struct RoleShape {
  std::string name;
  int replicas = 1;
  std::string scope = "Pod";
};

// Without a command it is for the kubelet that only says that pods run.
Document AiJob(std::string_view name, const std::vector<RoleShape>& roles, std::string_view command = "") {
  Object replicas;
  for (const RoleShape& role : roles) {
    Object container{{"name", kContainer},
                     {"image", "none"},
                     {"ports", Array{Object{{"name", "aitj-2222"}, {"containerPort", 2222}}}}};
    Object spec{{"terminationGracePeriodSeconds", 1}};
    if (command.empty()) {
      spec["schedulerName"] = "nobody";
    } else {
      container["command"] = Array{"/bin/sh", "-c", command};
    }
    spec["containers"] = Array{std::move(container)};
    replicas[role.name] = Object{{"replicas", role.replicas},
                                 {"restartPolicy", "Always"},
                                 {"restartScope", role.scope},
                                 {"template", Object{{"spec", std::move(spec)}}}};
  }
  return Object{{"apiVersion", AiJobs().ApiVersion()},
                {"kind", AiJobs().kind},
                {"metadata", Object{{"name", name}}},
                {"spec", Object{{"replicaSpecs", std::move(replicas)}}}};
}

// Jobs as a watch tells of them.
struct SeenJob {
  kube::ObjectMeta meta;
  std::string phase;
};
class JobWatch {
 public:
  JobWatch(kube::Transport& transport, const std::string& ns)
      : api_(transport, Clock::System(), IdSource::Random()),
        jobs_(api_, Clock::System(), IdSource::Random(), {.resource = AiJobs(), .ns = ns},
              [](std::string json) -> absl::StatusOr<SeenJob> {
                TY_ASSIGN_OR_RETURN(const Document job, ParseJson(json));
                SeenJob seen{.phase = std::string(StringAt(job, {"status", "phase"}))};
                TY_ASSIGN_OR_RETURN(seen.meta, kube::ParseObjectMeta(std::move(json)));
                return seen;
              }) {
    jobs_.Start();
  }
  // Those that have a phase, or that one.
  std::int64_t Count(std::string_view phase = "") const {
    const auto jobs = jobs_.cache().List();
    return std::ranges::count_if(
        jobs, [&](const auto& job) { return phase.empty() ? !job->phase.empty() : job->phase == phase; });
  }

 private:
  kube::Api api_;
  kube::Informer<SeenJob> jobs_;
};

// ---- how fast all is made

absl::StatusOr<double> MakeLargeJob(const Settings& settings, int replicas) {
  TY_ASSIGN_OR_RETURN(const auto cluster, LocalCluster::Start(settings.trainyard, settings.folder + "/aijob",
                                                              {"--capacity", "pods=0"}));
  TY_ASSIGN_OR_RETURN(const auto load, JobLoad::Connect(cluster->kubeconfig()));
  TY_RETURN_IF_ERROR(load->InstallKinds());
  std::vector<double> times;
  for (int round = 0; round < settings.rounds; ++round) {
    const std::string ns = StrCat("round-", round);
    TY_RETURN_IF_ERROR(load->MakeNamespace(ns));
    const ObjectCounter services(load->transport(), Resource::Services(), ns);
    const ObjectCounter pods(load->transport(), Resource::Pods(), ns);
    const JobWatch jobs(load->transport(), ns);
    const auto count = [&] { return services.count() + pods.count() + jobs.Count(); };
    const SteadyTime begin = Now();
    TY_RETURN_IF_ERROR(
        load->CreateAll(AiJobs(), ns, {trainyard::PrintJson(AiJob("large", {{"trainer", replicas}}))}));
    TY_RETURN_IF_ERROR(AwaitCount(count, 2 * replicas + 1));
    times.push_back(absl::ToDoubleSeconds(Now() - begin));
    TY_RETURN_IF_ERROR(load->DeleteAll(AiJobs(), ns));
  }
  return Quantile(times, 0.5);
}

// Counts the lists of nodes that go through it.
class NodeListCounter final : public kube::Transport {
 public:
  explicit NodeListCounter(kube::Transport& inner) : inner_(inner) {}
  std::vector<absl::StatusOr<kube::Response>> DoAll(std::vector<kube::Request> requests) override {
    for (const kube::Request& request : requests) {
      const std::string_view path = std::string_view(request.target).substr(0, request.target.find('?'));
      lists_ += request.method == "GET" && path == "/api/v1/nodes" ? 1 : 0;
    }
    return inner_.DoAll(std::move(requests));
  }
  absl::StatusOr<kube::OpenedResponse> Open(kube::Request request) override {
    return inner_.Open(std::move(request));
  }
  std::string Server() const override { return inner_.Server(); }
  int lists() const { return lists_; }

 private:
  kube::Transport& inner_;
  std::atomic<int> lists_ = 0;
};

struct ManyJobs {
  double until_running = 0;  // seconds, from the submission
  int node_lists = 0;
};

absl::StatusOr<ManyJobs> RunManyJobs(const Settings& settings, int jobs) {
  TY_ASSIGN_OR_RETURN(const auto cluster, LocalCluster::Start(settings.trainyard, settings.folder + "/aijobs",
                                                              {"--capacity", "pods=0", "--no-operator"}));
  TY_ASSIGN_OR_RETURN(const auto load, JobLoad::Connect(cluster->kubeconfig()));
  TY_RETURN_IF_ERROR(load->InstallKinds());
  TY_ASSIGN_OR_RETURN(kube::ClusterConfig config, kube::LoadConfig({.path = cluster->kubeconfig()}));
  TY_ASSIGN_OR_RETURN(const auto transport, kube::NewCurlTransport(std::move(config)));
  NodeListCounter counter(*transport);
  TY_ASSIGN_OR_RETURN(const auto running, ops::Operator::Start(counter, Clock::System(), {}));
  TY_RETURN_IF_ERROR(running->WaitForSync(kAijobPatience));
  std::vector<double> times;
  for (int round = 0; round < settings.rounds; ++round) {
    const std::string ns = StrCat("many-", round);
    TY_RETURN_IF_ERROR(load->MakeNamespace(ns));
    const JobWatch watch(load->transport(), ns);
    TY_ASSIGN_OR_RETURN(const auto kubelet, InstantKubelet::Start(load->kubeconfig(), ns, kContainer));
    std::vector<std::string> bodies;
    bodies.reserve(static_cast<std::size_t>(jobs));
    for (int i = 0; i < jobs; ++i)
      bodies.push_back(trainyard::PrintJson(AiJob(StrCat("job-", i), {{"trainer", 2}, {"pserver", 2}})));
    const SteadyTime begin = Now();
    TY_RETURN_IF_ERROR(load->CreateAll(AiJobs(), ns, std::move(bodies)));
    TY_RETURN_IF_ERROR(AwaitCount([&] { return watch.Count("Running"); }, jobs));
    times.push_back(absl::ToDoubleSeconds(Now() - begin));
    TY_RETURN_IF_ERROR(load->DeleteAll(AiJobs(), ns));
  }
  return ManyJobs{.until_running = Quantile(times, 0.5), .node_lists = counter.lists()};
}

// ---- real processes that are killed

// Of a process with that in its environment; 0: there is none.
pid_t FindProcess(const std::string& variable, const std::string& job) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc"), ::closedir);
  while (const dirent* entry = folder == nullptr ? nullptr : ::readdir(folder.get())) {
    const auto pid = ParseNumber<pid_t>(entry->d_name);
    if (!pid) continue;
    std::ifstream file(StrCat("/proc/", *pid, "/environ"));
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    const std::string between = std::string(1, '\0') + text;
    const auto has = [&](const std::string& what) {
      return between.find(std::string(1, '\0') + what + std::string(1, '\0')) != std::string::npos;
    };
    if (!has(variable) || !has("TRAININGJOB_NAME=" + job)) continue;
    std::ifstream name_file(StrCat("/proc/", *pid, "/comm"));
    std::string name;
    std::getline(name_file, name);
    if (name == "sleep") return *pid;
  }
  return 0;
}

// A running job of real processes, and what is seen of its pods.
class RealJob {
 public:
  static absl::StatusOr<std::unique_ptr<RealJob>> Start(const Settings& settings, const std::string& name,
                                                        int replicas, const std::string& scope) {
    auto job = std::make_unique<RealJob>();
    job->name_ = name;
    job->replicas_ = replicas;
    TY_ASSIGN_OR_RETURN(job->cluster_, LocalCluster::Start(settings.trainyard, settings.folder + "/" + name,
                                                           {"--capacity", StrCat("pods=", replicas + 10)}));
    TY_ASSIGN_OR_RETURN(job->load_, JobLoad::Connect(job->cluster_->kubeconfig()));
    TY_RETURN_IF_ERROR(job->load_->InstallKinds());
    job->pods_.emplace(job->load_->api(), Clock::System(), IdSource::Random(),
                       kube::WatcherOptions{.resource = Resource::Pods(), .ns = "default"},
                       [](std::string json) { return kube::ParsePod(std::move(json)); });
    job->pods_->Start();
    TY_RETURN_IF_ERROR(job->load_->CreateAll(
        AiJobs(), "default",
        {trainyard::PrintJson(AiJob(name, {{"trainer", replicas, scope}}, "exec sleep 10000"))}));
    TY_RETURN_IF_ERROR(AwaitCount([&] { return job->CountRunning({}); }, replicas));
    return job;
  }

  std::set<std::string> Uids() const {
    std::set<std::string> uids;
    for (const auto& pod : pods_->cache().List()) uids.insert(pod->meta.uid);
    return uids;
  }
  // Pods that run and are none of those.
  std::int64_t CountRunning(const std::set<std::string>& others) const {
    const auto pods = pods_->cache().List();
    return std::ranges::count_if(pods, [&](const auto& pod) {
      return pod->phase == kube::PodPhase::kRunning && !pod->meta.deletion_time &&
             !others.contains(pod->meta.uid);
    });
  }
  // Until so many others run, in seconds.
  absl::StatusOr<double> KillAndAwait(int index, int others) {
    const pid_t victim = FindProcess(StrCat("TRAININGJOB_REPLICA_INDEX=", index), name_);
    if (victim == 0) return absl::NotFoundError("the process is not found");
    const std::set<std::string> before = Uids();
    const SteadyTime begin = Now();
    if (::kill(victim, SIGKILL) != 0) return absl::InternalError("the process cannot be killed");
    TY_RETURN_IF_ERROR(AwaitCount([&] { return CountRunning(before); }, others));
    return absl::ToDoubleSeconds(Now() - begin);
  }

 private:
  std::string name_;
  int replicas_ = 0;
  std::unique_ptr<LocalCluster> cluster_;
  std::unique_ptr<JobLoad> load_;
  std::optional<kube::Informer<kube::CompactPod>> pods_;
};

absl::StatusOr<double> ReplaceOne(const Settings& settings) {
  const int replicas = settings.quick ? 2 : 30;
  TY_ASSIGN_OR_RETURN(const auto job, RealJob::Start(settings, "replaced", replicas, "Pod"));
  std::vector<double> times;
  for (int index = 0; index < replicas; ++index) {  // each for the first time, so that nobody waits
    TY_ASSIGN_OR_RETURN(const double time, job->KillAndAwait(index, 1));
    times.push_back(time * 1000);
  }
  return Quantile(times, 0.5);
}

absl::StatusOr<double> RestartAll(const Settings& settings, int pods) {
  TY_ASSIGN_OR_RETURN(const auto job, RealJob::Start(settings, "restarted", pods, "All"));
  return job->KillAndAwait(pods / 2, pods);
}

}  // namespace

void AiJobRows(const Settings& settings, std::vector<Row>& rows) {
  const int replicas = settings.quick ? 3 : 100;
  Add(rows,
      {.name = StrCat("aitrainingjob: 1 job x ", replicas, " replicas, all made and the first status shown"),
       .unit = "s",
       .most_figure = 0.5},
      MakeLargeJob(settings, replicas));
  const int jobs = settings.quick ? 2 : 20;
  const auto many = RunManyJobs(settings, jobs);
  Add(rows,
      {.name = StrCat("aitrainingjob: ", jobs, " jobs x 2 types, submitted until all are Running"),
       .unit = "s",
       .most_figure = 1},
      many.ok() ? absl::StatusOr<double>(many->until_running) : many.status());
  Add(rows, {.name = "aitrainingjob: lists of nodes during that", .unit = "lists", .most_figure = 1},
      many.ok() ? absl::StatusOr<double>(many->node_lists) : many.status());
  Add(rows,
      {.name = "aitrainingjob: kill -9 of a process until another runs, p50",
       .unit = "ms",
       .most_figure = 50},
      ReplaceOne(settings));
  const int pods = settings.quick ? 4 : 200;
  Add(rows,
      {.name = StrCat("aitrainingjob: kill -9 of one until all ", pods, " run again, scope All"),
       .unit = "s",
       .most_figure = 5},
      RestartAll(settings, pods));
}

}  // namespace trainyard::bench
