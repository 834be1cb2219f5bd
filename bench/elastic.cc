// The elastic master: how fast it is over losses, and what they cost.
#include <dirent.h>
#include <signal.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/cord.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/mutex.h"
#include "base/process.h"
#include "base/status.h"
#include "base/text.h"
#include "bench/graph.h"
#include "bench/local_cluster.h"
#include "bench/report.h"
#include "client/elastic_job.h"
#include "master/rpc/link.h"
#include "master/spec.h"
#include "ps/rpc/channel.h"
#include "ps/rpc/message.pb.h"
#include "ps/rpc/server.h"
#include "tasks/queue.h"

namespace trainyard::bench {
namespace {

constexpr std::size_t kElasticMostFile = std::size_t{16} << 20;
constexpr absl::Duration kElasticPatience = absl::Seconds(60);

// Processes of a job's pods, by their pods' names.
std::map<std::string, pid_t> FindProcesses(const std::string& job, std::string_view word) {
  std::map<std::string, pid_t> found;
  DIR* const all = ::opendir("/proc");
  while (const dirent* const entry = all == nullptr ? nullptr : ::readdir(all)) {
    const auto pid = ParseNumber<pid_t>(entry->d_name);
    if (!pid) continue;
    const auto command = ReadFile(StrCat("/proc/", *pid, "/cmdline"), kElasticMostFile);
    if (!command.ok() || command->find(StrCat("trainyard", '\0', word)) == std::string::npos) continue;
    const auto environment = ReadFile(StrCat("/proc/", *pid, "/environ"), kElasticMostFile);
    if (!environment.ok()) continue;
    const std::string key = "TRAINYARD_POD_NAME=";
    const std::size_t at = environment->find(key + job + "-");
    if (at == std::string::npos) continue;
    const std::string pod =
        environment->substr(at + key.size(), environment->find('\0', at) - at - key.size());
    found[pod] = std::max(found[pod], *pid);  // of a master and who keeps it, the master
  }
  if (all != nullptr) ::closedir(all);
  return found;
}

// Lines of the master's log, with their times.
struct LogLine {
  absl::Time time;
  std::string text;
};

class BenchJob {
 public:
  static absl::StatusOr<std::unique_ptr<BenchJob>> Submit(client::Cluster& cluster, master::JobSpec spec) {
    std::unique_ptr<BenchJob> made(new BenchJob(cluster, spec.name));
    TY_ASSIGN_OR_RETURN(made->job_, client::ElasticJob::Submit(cluster, {.spec = std::move(spec)}));
    return made;
  }
  ~BenchJob() { job_->Delete().IgnoreError(); }

  absl::StatusOr<std::vector<LogLine>> Log() {
    TY_ASSIGN_OR_RETURN(const std::string text,
                        cluster_.api().Do(kube::Operation{
                            .request = {.target = kube::ResourcePath(kube::Resource::Pods(), cluster_.ns(),
                                                                     StrCat(name_, "-master-0"), "log")}}));
    std::vector<LogLine> lines;
    for (const std::string_view line : Split(std::string_view(text), '\n')) {
      LogLine one{.text = std::string(line)};
      if (absl::ParseTime(absl::RFC3339_full, std::string(line.substr(0, line.find(' '))), &one.time,
                          nullptr))
        lines.push_back(std::move(one));
    }
    return lines;
  }
  // The first so many lines with the words, at or after a time.
  absl::StatusOr<absl::Time> Await(std::string_view words, absl::Time after, int count = 1) {
    const SteadyTime deadline = Clock::System().Steady() + kElasticPatience;
    for (;;) {
      const auto lines = Log();
      int found = 0;
      if (lines.ok()) {
        for (const LogLine& line : *lines) {
          if (line.time >= after && line.text.find(words) != std::string::npos && ++found == count)
            return line.time;
        }
      }
      if (Clock::System().Steady() > deadline)
        return absl::DeadlineExceededError(
            StrCat(name_, ": '", words, "' came ", found, " times of ", count));
      absl::SleepFor(absl::Milliseconds(20));
    }
  }
  absl::StatusOr<job::Progress> AwaitEnd(absl::Duration timeout) {
    const SteadyTime deadline = Clock::System().Steady() + timeout;
    while (Clock::System().Steady() < deadline) {
      client::ElasticNews news = job_->Await(absl::Milliseconds(50));
      if (!news.progress) continue;
      if (news.progress->phase == job::WorkPhase::kComplete) return *std::move(news.progress);
      if (news.progress->phase == job::WorkPhase::kFailed) return absl::InternalError(news.progress->reason);
    }
    return absl::DeadlineExceededError(StrCat(name_, " does not end"));
  }
  const std::string& name() const { return name_; }

 private:
  BenchJob(client::Cluster& cluster, std::string name) : cluster_(cluster), name_(std::move(name)) {}
  client::Cluster& cluster_;
  const std::string name_;
  std::unique_ptr<client::ElasticJob> job_;
};

master::JobSpec DigitsJob(const std::string& name, const Digits& digits, const graph::Programs& programs) {
  return {.name = name,
          .program = EncodeBase64(master::EncodePrograms(programs)),
          .training_data = {digits.images, digits.labels},
          .data_format = "idx",
          .epochs = 100000};
}

// Milliseconds from the kill of a worker to the two that matter.
absl::StatusOr<std::pair<double, double>> KillWorker(client::Cluster& cluster, master::JobSpec spec) {
  TY_ASSIGN_OR_RETURN(const auto job, BenchJob::Submit(cluster, std::move(spec)));
  TY_RETURN_IF_ERROR(job->Await("a worker takes part", absl::InfinitePast(), 2));
  std::vector<double> taken;
  std::vector<double> back;
  for (int i = 0; i < 5; ++i) {
    absl::SleepFor(
        absl::Milliseconds(1500));  // one that is killed as soon as it begins waits before it is restarted
    const auto processes = FindProcesses(job->name(), "worker");
    if (processes.empty()) return absl::NotFoundError("no worker runs");
    const absl::Time killed = absl::Now();
    ::kill(processes.begin()->second, SIGKILL);
    TY_ASSIGN_OR_RETURN(const absl::Time over, job->Await("what a lost worker had is taken over", killed));
    TY_ASSIGN_OR_RETURN(const absl::Time again, job->Await("a worker takes part", killed));
    taken.push_back(absl::ToDoubleMilliseconds(over - killed));
    back.push_back(absl::ToDoubleMilliseconds(again - killed));
  }
  return std::pair(Median(taken), Median(back));
}

absl::StatusOr<double> KillMaster(client::Cluster& cluster, master::JobSpec spec) {
  TY_ASSIGN_OR_RETURN(const auto job, BenchJob::Submit(cluster, std::move(spec)));
  TY_RETURN_IF_ERROR(job->Await("a worker takes part", absl::InfinitePast(), 2));
  std::vector<double> back;
  for (int i = 0; i < 3; ++i) {
    absl::SleepFor(absl::Milliseconds(2500));  // a checkpoint is there
    const auto processes = FindProcesses(job->name(), "master");
    if (processes.empty()) return absl::NotFoundError("no master runs");
    const absl::Time killed = absl::Now();
    ::kill(processes.begin()->second, SIGKILL);
    TY_ASSIGN_OR_RETURN(const absl::Time again, job->Await("a worker takes part", killed));
    back.push_back(absl::ToDoubleSeconds(again - killed));
  }
  return Median(back);
}

absl::StatusOr<double> KillMany(client::Cluster& cluster, master::JobSpec spec, int many) {
  spec.workers = spec.max_workers = many;
  TY_ASSIGN_OR_RETURN(const auto job, BenchJob::Submit(cluster, std::move(spec)));
  TY_RETURN_IF_ERROR(job->Await("a worker takes part", absl::InfinitePast(), many));
  const auto processes = FindProcesses(job->name(), "worker");
  if (static_cast<int>(processes.size()) != many)
    return absl::InternalError(StrCat(processes.size(), " workers run"));
  const absl::Time killed = absl::Now();
  for (const auto& [pod, pid] : processes) ::kill(pid, SIGKILL);
  TY_ASSIGN_OR_RETURN(const absl::Time again, job->Await("a worker takes part", killed, many));
  return absl::ToDoubleSeconds(again - killed);
}

struct Trained {
  double seconds = 0;
  double accuracy = 0;
};

// A whole job, with a worker killed every five seconds, or undisturbed.
absl::StatusOr<Trained> TrainDigits(client::Cluster& cluster, const master::JobSpec& spec, bool kill) {
  TY_ASSIGN_OR_RETURN(const auto job, BenchJob::Submit(cluster, spec));
  TY_ASSIGN_OR_RETURN(const absl::Time begun, job->Await("a worker takes part", absl::InfinitePast()));
  std::atomic<bool> over = false;
  std::thread killer([&] {
    for (int ticks = 1; kill && !over; ++ticks) {
      absl::SleepFor(absl::Milliseconds(100));
      if (ticks % 50 != 0) continue;
      const auto processes = FindProcesses(job->name(), "worker");
      if (!processes.empty()) ::kill(processes.begin()->second, SIGKILL);
    }
  });
  const auto ended = job->AwaitEnd(absl::Minutes(5));
  over = true;
  killer.join();
  TY_RETURN_IF_ERROR(ended);
  const std::int64_t records = ended->total_records;
  const std::int64_t wanted = spec.epochs * 60000;
  if (records != wanted) return absl::InternalError(StrCat(records, " records were counted, not ", wanted));
  TY_ASSIGN_OR_RETURN(const absl::Time complete, job->Await("the job is complete", begun));
  if (ended->metrics.size() != 1) return absl::InternalError("the job has no accuracy");
  return Trained{.seconds = absl::ToDoubleSeconds(complete - begun),
                 .accuracy = ended->metrics.front().value};
}

void AddDisturbedRows(const Settings& settings, client::Cluster& cluster, master::JobSpec spec,
                      std::vector<Row>& rows) {
  spec.epochs = settings.quick ? 2 : 14;
  spec.validation_data = spec.training_data;
  const auto steady = TrainDigits(cluster, spec, false);
  spec.name = "disturbed";
  const auto disturbed = TrainDigits(cluster, spec, true);
  const absl::Status failed = steady.ok() ? disturbed.status() : steady.status();
  const double records = static_cast<double>(spec.epochs) * 60000;
  Row rate{.name = "elastic: records, one of 2 workers killed every 5 s",
           .unit = "/s",
           .limit_name = "undisturbed",
           .limit = steady.ok() ? records / steady->seconds : 0,
           .least_ratio = 0.85};
  Add(rows, rate, failed.ok() ? absl::StatusOr<double>(records / disturbed->seconds) : failed);
  Row accuracy{.name = "elastic: accuracy, one of 2 workers killed every 5 s",
               .limit_name = "undisturbed",
               .limit = steady.ok() ? steady->accuracy : 0,
               .least_ratio = 0.99};
  Add(rows, accuracy, failed.ok() ? absl::StatusOr<double>(disturbed->accuracy) : failed);
}

absl::Status AddLossRows(const Settings& settings, std::vector<Row>& rows) {
  TY_ASSIGN_OR_RETURN(const auto local,
                      LocalCluster::Start(settings.trainyard, settings.folder + "/elastic-home",
                                          {"--capacity", "cpu=64,memory=64Gi"}));
  TY_ASSIGN_OR_RETURN(const auto cluster, client::Cluster::Open({.kubeconfig = local->kubeconfig()}));
  TY_ASSIGN_OR_RETURN(const Digits digits, WriteDigits(settings.folder + "/elastic-digits", 60000));
  TY_ASSIGN_OR_RETURN(const graph::Programs programs, MakeMlp(digits, 64, kAccuracy));
  const auto job = [&](const std::string& name) { return DigitsJob(name, digits, programs); };
  const auto worker = KillWorker(*cluster, job("kill-worker"));
  Add(rows, {.name = "elastic: worker killed, its tasks held by another", .unit = "ms", .most_figure = 100},
      worker.ok() ? absl::StatusOr<double>(worker->first) : worker.status());
  Add(rows, {.name = "elastic: worker killed, a new one training", .unit = "ms", .most_figure = 500},
      worker.ok() ? absl::StatusOr<double>(worker->second) : worker.status());
  Add(rows, {.name = "elastic: master killed, training goes on", .unit = "s", .most_figure = 1},
      KillMaster(*cluster, job("kill-master")));
  const int many = settings.quick ? 5 : 30;
  Add(rows,
      {.name = StrCat("elastic: ", many, " workers killed at once, all working again"),
       .unit = "s",
       .most_figure = 3},
      KillMany(*cluster, job("kill-many"), many));
  AddDisturbedRows(settings, *cluster, job("steady"), rows);
  return absl::OkStatus();
}

}  // namespace

void ElasticRows(const Settings& settings, std::vector<Row>& rows) {
  if (const absl::Status added = AddLossRows(settings, rows); !added.ok())
    Add(rows, {.name = "elastic: losses", .least_figure = 0}, added);
}

}  // namespace trainyard::bench
