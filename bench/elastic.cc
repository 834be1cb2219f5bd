// The elastic master: how many tasks it deals, what they cost, and how fast it is over losses.
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
#include "master/program_file.h"
#include "master/rpc/link.h"
#include "master/spec.h"
#include "ps/rpc/channel.h"
#include "ps/rpc/message.pb.h"
#include "ps/rpc/server.h"
#include "tasks/queue.h"

namespace trainyard::bench {
namespace {

constexpr int kWorkers = 32;
constexpr std::size_t kMostFile = std::size_t{16} << 20;
constexpr absl::Duration kPatience = absl::Seconds(60);

// ---- The queue in memory

// Every task is leased before the first is finished: as many as there can be at once.
void QueueRows(const Settings& settings, std::vector<Row>& rows) {
  const std::int64_t count = settings.quick ? 100'000 : 10'000'000;
  const double before = ResidentMiB(::getpid()).value_or(0);
  tasks::Queue queue;
  queue.Apply(tasks::Begin{.kind = tasks::Kind::kTraining,
                           .options = {.records = count, .records_per_task = 1, .seed = 7}});
  const SteadyTime begun = Clock::System().Steady();
  for (std::int64_t i = 0; i < count; ++i)
    queue.Apply(tasks::Lease{static_cast<tasks::WorkerIndex>(i % kWorkers)});
  const double held = ResidentMiB(::getpid()).value_or(0);
  for (std::int64_t i = 0; i < count; ++i)
    queue.Apply(tasks::Finish{static_cast<tasks::WorkerIndex>(i % kWorkers), i + 1, {}});
  const double seconds = absl::ToDoubleSeconds(Clock::System().Steady() - begun);
  Row row{.name = "elastic: queue commands, all tasks leased at once", .unit = "/s", .least_figure = 2e6};
  Add(rows, row,
      queue.IsOver() ? absl::StatusOr<double>(2.0 * static_cast<double>(count) / seconds)
                     : absl::InternalError("tasks are left"));
  Row memory{.name = "elastic: memory of a task that is leased", .unit = "B", .most_figure = 100};
  Add(rows, memory, (held - before) * (1 << 20) / static_cast<double>(count));
}

// ---- Tasks over gRPC

// One byte for each record.
absl::Status WriteBytes(const std::string& path, std::int64_t records) {
  std::string bytes = {0, 0, 8, 1};
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(records >> shift));
  bytes.append(static_cast<std::size_t>(records), '\0');
  return ReplaceFile(path, bytes, 0644, Durability::kProcess);
}

// Asks without a pause, as many at once as there are links.
class TaskLoad {
 public:
  absl::Status Connect(const std::string& address) {
    for (int i = 0; i < kWorkers; ++i) {
      TY_ASSIGN_OR_RETURN(auto link, master::Link::Connect({.address = address,
                                                            .worker = i,
                                                            .incarnation = i + 1,
                                                            .pod = "bench",
                                                            .patience = kPatience}));
      links_.push_back(std::move(link));
    }
    return absl::OkStatus();
  }
  ~TaskLoad() {
    stopping_ = true;
    for (const auto& link : links_) link->Stop();
    links_.clear();
  }
  void Start() {
    for (const auto& link : links_) Ask(*link, 0);
  }
  std::int64_t done() const { return done_; }

 private:
  // Reports the task before, and wants the next: one message, one answer.
  void Ask(master::Link& link, std::int64_t finished) {
    master::wire::Request request;
    if (finished > 0) request.mutable_next()->add_reports()->set_task(finished);
    request.mutable_next()->set_wants(true);
    link.Start(std::move(request), {}, [this, &link](const absl::StatusOr<master::Reply>& reply) {
      if (!reply.ok() || stopping_ || reply->head.given().verdict() != master::wire::Given::kTask) return;
      ++done_;
      Ask(link, reply->head.given().task().id());
    });
  }

  std::vector<std::unique_ptr<master::Link>> links_;
  std::atomic<std::int64_t> done_ = 0;
  std::atomic<bool> stopping_ = false;
};

// Calls that do nothing, through the same library, as many at once.
absl::StatusOr<double> BareCalls(absl::Duration time) {
  TY_ASSIGN_OR_RETURN(const auto server, ps::RpcServer::Start({}, [](std::unique_ptr<ps::Exchange> exchange) {
                        exchange->Reply(ps::wire::TransferReply());
                      }));
  const std::string address = StrCat("127.0.0.1:", server->port());
  std::vector<std::unique_ptr<ps::Channel>> channels;
  channels.reserve(kWorkers);
  for (int i = 0; i < kWorkers; ++i) channels.push_back(std::make_unique<ps::Channel>(address, ""));
  return Rate(kWorkers, time, [&](int thread) {
    ps::wire::TransferReply reply;
    channels[static_cast<std::size_t>(thread)]
        ->Call("Nothing", ps::wire::TransferRequest(), kPatience, reply)
        .IgnoreError();
  });
}

struct TaskFigures {
  double rate = 0;
  double cpu_us = 0;
};

absl::StatusOr<TaskFigures> MeasureTasks(const Settings& settings) {
  const std::string folder = settings.folder + "/elastic-tasks";
  std::filesystem::create_directories(folder);
  TY_RETURN_IF_ERROR(WriteBytes(folder + "/records", 40'000'000));
  master::JobSpec spec{.name = "bench",
                       .id = "1",
                       .training_data = {folder + "/records"},
                       .minibatch = 1,
                       .minibatches_per_task = 8,
                       .tasks_only = true};
  TY_RETURN_IF_ERROR(ReplaceFile(folder + "/job.json", master::Print(spec), 0644, Durability::kProcess));
  const std::string log = folder + "/log";
  TY_ASSIGN_OR_RETURN(
      Child child,
      Child::Spawn({.argv = {"setpriv", "--pdeathsig", "KILL", settings.trainyard, "master", "--job-file",
                             folder + "/job.json", "--state-dir", folder, "--no-pods", "--once", "--listen",
                             "127.0.0.1:0", "--log-level", "info"},
                    .stdout_path = log,
                    .stderr_path = log}));
  std::string port;
  const SteadyTime deadline = Clock::System().Steady() + kPatience;
  while (port.empty()) {
    const auto text = ReadFile(log, kMostFile);
    if (text.ok()) {
      const std::size_t at = text->find(" port=");
      if (at != std::string::npos) port = text->substr(at + 6, text->find(' ', at + 6) - at - 6);
    }
    if (Clock::System().Steady() > deadline)
      return absl::DeadlineExceededError(StrCat("the master did not start: ", text.ok() ? *text : ""));
    absl::SleepFor(absl::Milliseconds(10));
  }
  TaskLoad load;
  TY_RETURN_IF_ERROR(load.Connect(StrCat("127.0.0.1:", port)));
  load.Start();
  absl::SleepFor(absl::Milliseconds(300));
  TY_ASSIGN_OR_RETURN(const absl::Duration cpu, CpuTimeOf(child.pid()));
  const std::int64_t before = load.done();
  const SteadyTime begun = Clock::System().Steady();
  absl::SleepFor(settings.quick ? absl::Milliseconds(200) : absl::Seconds(5));
  const auto tasks = static_cast<double>(load.done() - before);
  const double seconds = absl::ToDoubleSeconds(Clock::System().Steady() - begun);
  TY_ASSIGN_OR_RETURN(const absl::Duration cpu_after, CpuTimeOf(child.pid()));
  return TaskFigures{tasks / seconds, absl::ToDoubleMicroseconds(cpu_after - cpu) / tasks};
}

void TaskRows(const Settings& settings, std::vector<Row>& rows) {
  const absl::StatusOr<TaskFigures> figures = MeasureTasks(settings);
  const absl::StatusOr<double> bare = BareCalls(settings.time);
  Row rate{.name = "elastic: tasks, durable, 32 workers",
           .unit = "/s",
           .limit_name = "bare calls",
           .limit = bare.value_or(0),
           .least_figure = 15000};
  Add(rows, rate, figures.ok() ? absl::StatusOr<double>(figures->rate) : figures.status());
  Row cpu{.name = "elastic: the master's processor time for a task", .unit = "us", .most_figure = 60};
  Add(rows, cpu, figures.ok() ? absl::StatusOr<double>(figures->cpu_us) : figures.status());
}

// ---- Losses, on the embedded cluster

// Processes of a job's pods, by their pods' names.
std::map<std::string, pid_t> FindProcesses(const std::string& job, std::string_view word) {
  std::map<std::string, pid_t> found;
  DIR* const all = ::opendir("/proc");
  while (const dirent* const entry = all == nullptr ? nullptr : ::readdir(all)) {
    const auto pid = ParseNumber<pid_t>(entry->d_name);
    if (!pid) continue;
    const auto command = ReadFile(StrCat("/proc/", *pid, "/cmdline"), kMostFile);
    if (!command.ok() || command->find(StrCat("trainyard", '\0', word)) == std::string::npos) continue;
    const auto environment = ReadFile(StrCat("/proc/", *pid, "/environ"), kMostFile);
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
                                                                     client::MasterName(name_), "log")}}));
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
    const SteadyTime deadline = Clock::System().Steady() + kPatience;
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
  absl::StatusOr<Document> AwaitEnd(absl::Duration timeout) {
    const SteadyTime deadline = Clock::System().Steady() + timeout;
    while (Clock::System().Steady() < deadline) {
      client::ElasticNews news = job_->Await(absl::Milliseconds(50));
      const std::string_view phase = StringAt(news.progress, {"phase"});
      if (phase == "Complete") return std::move(news.progress);
      if (phase == "Failed") return absl::InternalError(std::string(StringAt(news.progress, {"reason"})));
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

absl::Time Now() { return absl::Now(); }

// Milliseconds from the kill of a worker to the two that matter.
absl::StatusOr<std::pair<double, double>> KillWorker(client::Cluster& cluster, master::JobSpec spec) {
  TY_ASSIGN_OR_RETURN(const auto job, BenchJob::Submit(cluster, std::move(spec)));
  TY_RETURN_IF_ERROR(job->Await("a worker takes part", absl::InfinitePast(), 2));
  std::vector<double> taken;
  std::vector<double> back;
  for (int i = 0; i < 5; ++i) {
    absl::SleepFor(absl::Milliseconds(500));
    const auto processes = FindProcesses(job->name(), "worker");
    if (processes.empty()) return absl::NotFoundError("no worker runs");
    const absl::Time killed = Now();
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
    const absl::Time killed = Now();
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
  const absl::Time killed = Now();
  for (const auto& [pod, pid] : processes) ::kill(pid, SIGKILL);
  TY_ASSIGN_OR_RETURN(const absl::Time again, job->Await("a worker takes part", killed, many));
  return absl::ToDoubleSeconds(again - killed);
}

// Seconds that a job takes, with a worker killed every five, or undisturbed.
absl::StatusOr<double> TrainDigits(client::Cluster& cluster, const master::JobSpec& spec, bool kill) {
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
  const std::int64_t records = IntAt(*ended, {"totalRecords"}).value_or(0);
  const std::int64_t wanted = spec.epochs * 60000;
  if (records != wanted) return absl::InternalError(StrCat(records, " records were counted, not ", wanted));
  TY_ASSIGN_OR_RETURN(const absl::Time complete, job->Await("the job is complete", begun));
  return absl::ToDoubleSeconds(complete - begun);
}

absl::Status AddLossRows(const Settings& settings, std::vector<Row>& rows) {
  TY_ASSIGN_OR_RETURN(const auto local,
                      LocalCluster::Start(settings.trainyard, settings.folder + "/elastic-home",
                                          {"--capacity", "cpu=64,memory=64Gi"}));
  TY_ASSIGN_OR_RETURN(const auto cluster, client::Cluster::Open({.kubeconfig = local->kubeconfig()}));
  TY_ASSIGN_OR_RETURN(const Digits digits, WriteDigits(settings.folder + "/elastic-digits", 60000));
  TY_ASSIGN_OR_RETURN(const graph::Programs programs, MakeMlp(digits, 64));
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
  master::JobSpec spec = job("steady");
  spec.epochs = settings.quick ? 2 : 14;
  const auto steady = TrainDigits(*cluster, spec, false);
  spec.name = "disturbed";
  const auto disturbed = TrainDigits(*cluster, spec, true);
  const double records = static_cast<double>(spec.epochs) * 60000;
  Add(rows,
      {.name = "elastic: records, one of 2 workers killed every 5 s",
       .unit = "/s",
       .limit_name = "undisturbed",
       .limit = steady.ok() ? records / *steady : 0,
       .least_ratio = 0.85},
      disturbed.ok() ? steady.ok() ? absl::StatusOr<double>(records / *disturbed) : steady.status()
                     : disturbed.status());
  return absl::OkStatus();
}

}  // namespace

void ElasticRows(const Settings& settings, std::vector<Row>& rows) {
  QueueRows(settings, rows);
  TaskRows(settings, rows);
  if (const absl::Status added = AddLossRows(settings, rows); !added.ok())
    Add(rows, {.name = "elastic: losses", .least_figure = 0}, added);
}

}  // namespace trainyard::bench
