// The master of elastic jobs as a dealer of tasks: how many a second, and what one costs.
#include <atomic>
#include <deque>
#include <filesystem>
#include <memory>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/status.h"
#include "base/text.h"
#include "bench/graph.h"
#include "bench/local_cluster.h"
#include "bench/report.h"
#include "grpcpp/client_context.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "master/spec.h"
#include "master/wire.pb.h"
#include "ps/rpc/channel.h"
#include "ps/rpc/frame.h"
#include "ps/rpc/message.pb.h"
#include "ps/rpc/server.h"
#include "ps/rpc/wire_options.h"
#include "tasks/queue.h"

namespace trainyard::bench {
namespace {

constexpr int kTaskWorkers = 32;
constexpr std::size_t kTasksMostFile = std::size_t{16} << 20;
constexpr absl::Duration kTasksPatience = absl::Seconds(60);

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
    queue.Apply(tasks::Lease{static_cast<tasks::WorkerIndex>(i % kTaskWorkers)});
  const double held = ResidentMiB(::getpid()).value_or(0);
  for (std::int64_t i = 0; i < count; ++i)
    queue.Apply(tasks::Finish{static_cast<tasks::WorkerIndex>(i % kTaskWorkers), i + 1, {}});
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

// Workers that do nothing but ask. They have a connection each, as processes have, and one thread in all, so
// that the machine is the master's and not theirs.
class TaskLoad {
 public:
  ~TaskLoad() {
    for (Worker& worker : workers_) worker.context.TryCancel();
    if (thread_.joinable()) thread_.join();
  }

  void Start(const std::string& address) {
    for (int i = 0; i < kTaskWorkers; ++i) {
      Worker& worker = workers_.emplace_back();
      worker.index = i;
      grpc::ChannelArguments arguments;
      ps::Tune(arguments);
      worker.stub = std::make_unique<grpc::GenericStub>(
          grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
      worker.context.set_wait_for_ready(true);
      worker.stream = worker.stub->PrepareCall(&worker.context, "/trainyard.master/Session", &queue_);
      worker.stream->StartCall(&worker.started);
    }
    thread_ = std::thread([this] { Run(); });
  }
  std::int64_t done() const { return done_; }

 private:
  struct Worker;
  struct Event {
    enum What { kStarted, kRead, kWritten } what;
    Worker* worker;
  };
  struct Worker {
    int index = 0;
    std::unique_ptr<grpc::GenericStub> stub;
    grpc::ClientContext context;
    std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream;
    grpc::ByteBuffer answer;
    std::uint64_t number = 0;
    Event started{Event::kStarted, this};
    Event read{Event::kRead, this};
    Event written{Event::kWritten, this};
  };

  // Until every stream has ended.
  void Run() {
    void* tag = nullptr;
    bool ok = false;
    int under_way = kTaskWorkers;
    while (under_way > 0 && queue_.Next(&tag, &ok)) {
      --under_way;
      if (!ok) continue;
      const Event& event = *static_cast<Event*>(tag);
      Worker& worker = *event.worker;
      if (event.what == Event::kWritten) continue;
      if (event.what == Event::kStarted) {
        Greet(worker);
      } else if (!Take(worker)) {
        continue;
      }
      worker.stream->Read(&worker.answer, &worker.read);
      under_way += 2;
    }
    queue_.Shutdown();
    while (queue_.Next(&tag, &ok)) {
    }
  }

  static void Greet(Worker& worker) {
    master::wire::Request request;
    request.mutable_hello()->set_worker(worker.index);
    request.mutable_hello()->set_incarnation(worker.index + 1);
    request.mutable_hello()->set_pod("bench");
    worker.stream->Write(ps::Pack(request), &worker.written);
  }

  // Reports the task before, and wants the next: one message, one answer. False: there is nothing more.
  bool Take(Worker& worker) {
    ps::Unpacked message;
    master::wire::Answer answer;
    if (!ps::Unpacked::Parse(worker.answer, message).ok() || !message.Head(answer) || answer.code() != 0)
      return false;
    master::wire::Request request;
    request.set_number(++worker.number);
    if (!answer.has_welcome()) {
      if (answer.given().verdict() != master::wire::Given::kTask) return false;
      ++done_;
      request.mutable_next()->add_reports()->set_task(answer.given().task().id());
    }
    request.mutable_next()->set_wants(true);
    worker.stream->Write(ps::Pack(request), &worker.written);
    return true;
  }

  grpc::CompletionQueue queue_;
  std::deque<Worker> workers_;
  std::thread thread_;
  std::atomic<std::int64_t> done_ = 0;
};

// Calls that do nothing, through the same library, as many at once.
absl::StatusOr<double> BareCalls(absl::Duration time) {
  TY_ASSIGN_OR_RETURN(const auto server, ps::RpcServer::Start({}, [](std::unique_ptr<ps::Exchange> exchange) {
                        exchange->Reply(ps::wire::TransferReply());
                      }));
  const std::string address = StrCat("127.0.0.1:", server->port());
  std::vector<std::unique_ptr<ps::Channel>> channels;
  channels.reserve(kTaskWorkers);
  for (int i = 0; i < kTaskWorkers; ++i) channels.push_back(std::make_unique<ps::Channel>(address, ""));
  return Rate(kTaskWorkers, time, [&](int thread) {
    ps::wire::TransferReply reply;
    channels[static_cast<std::size_t>(thread)]
        ->Call("Nothing", ps::wire::TransferRequest(), kTasksPatience, reply)
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
  TY_ASSIGN_OR_RETURN(Child child,
                      Child::Spawn({.argv = {"setpriv", "--pdeathsig", "KILL", settings.trainyard, "master",
                                             "--job-file", folder + "/job.json", "--state-dir", folder,
                                             "--no-pods", "--listen", "127.0.0.1:0", "--log-level", "info"},
                                    .stdout_path = log,
                                    .stderr_path = log}));
  std::string port;
  const SteadyTime deadline = Clock::System().Steady() + kTasksPatience;
  while (port.empty()) {
    const auto text = ReadFile(log, kTasksMostFile);
    if (text.ok()) {
      const std::size_t at = text->find(" port=");
      if (at != std::string::npos) port = text->substr(at + 6, text->find(' ', at + 6) - at - 6);
    }
    if (Clock::System().Steady() > deadline)
      return absl::DeadlineExceededError(StrCat("the master did not start: ", text.ok() ? *text : ""));
    absl::SleepFor(absl::Milliseconds(10));
  }
  TaskLoad load;
  load.Start(StrCat("127.0.0.1:", port));
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

void AnswerRows(const Settings& settings, std::vector<Row>& rows) {
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

}  // namespace

void TaskRows(const Settings& settings, std::vector<Row>& rows) {
  QueueRows(settings, rows);
  AnswerRows(settings, rows);
}

}  // namespace trainyard::bench
