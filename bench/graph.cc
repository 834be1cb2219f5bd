// Training of graphs against what the machine can do: rows of several files, and what these share.
#include "bench/graph.h"

#include <time.h>

#include <filesystem>
#include <utility>

#include "base/clock.h"
#include "base/files.h"
#include "base/ids.h"
#include "base/status.h"
#include "base/text.h"
#include "graph/kernel/random.h"
#include "kv/memory_store.h"
#include "ps/job.h"

namespace trainyard::bench {
namespace {

constexpr std::int64_t kPixels = 784;
constexpr std::int64_t kLayers[] = {128, 64, 10};
constexpr double kPattern = 0.1;  // of what a pixel is
constexpr std::int64_t kNoCheckpoints = 1000000000;
constexpr std::size_t kMostLog = std::size_t{1} << 20;

// IDX: two zeros, the type of unsigned bytes, the count of dims, each dim from its highest byte on.
std::string IdxHead(const std::vector<std::int64_t>& dims) {
  std::string head = {0, 0, 8, static_cast<char>(dims.size())};
  for (const std::int64_t dim : dims) {
    for (int shift = 24; shift >= 0; shift -= 8) head.push_back(static_cast<char>(dim >> shift));
  }
  return head;
}

absl::Duration Read(clockid_t clock) {
  timespec used{};
  ::clock_gettime(clock, &used);
  return absl::DurationFromTimespec(used);
}

}  // namespace

absl::Duration OwnCpuTime() { return Read(CLOCK_PROCESS_CPUTIME_ID); }

absl::StatusOr<absl::Duration> CpuTimeOf(pid_t process) {
  clockid_t clock{};
  if (::clock_getcpuclockid(process, &clock) != 0)
    return absl::NotFoundError(StrCat("process ", process, " has ended"));
  return Read(clock);
}

absl::StatusOr<Digits> WriteDigits(const std::string& folder, std::int64_t count) {
  Digits digits{.images = folder + "/images.idx3-ubyte", .labels = folder + "/labels.idx1-ubyte"};
  std::filesystem::create_directories(folder);
  std::string labels(static_cast<std::size_t>(count), '\0');
  for (std::size_t i = 0; i < labels.size(); ++i)
    labels[i] = static_cast<char>(graph::UniformAt(2, 0, i) * 10);
  // Each digit has a pattern, and noise hides most of it.
  std::string images(static_cast<std::size_t>(count * kPixels), '\0');
  for (std::size_t i = 0; i < images.size(); ++i) {
    const auto digit = static_cast<std::size_t>(labels[i / kPixels]);
    const double pattern = graph::UniformAt(3, 0, digit * kPixels + i % kPixels);
    images[i] = static_cast<char>((pattern * kPattern + graph::UniformAt(1, 0, i) * (1 - kPattern)) * 255);
  }
  for (const auto& [path, bytes] : {std::pair(digits.images, IdxHead({count, 28, 28}) + images),
                                    std::pair(digits.labels, IdxHead({count}) + labels)}) {
    TY_RETURN_IF_ERROR(ReplaceFile(path, bytes, 0644, Durability::kProcess));
  }
  return digits;
}

absl::StatusOr<graph::Programs> MakeMlp(const Digits& digits, std::int64_t batch, std::int64_t output) {
  graph::Builder net("mlp", {.seed = 5});
  const std::vector<graph::Ref> fields =
      net.Read({.sources = {digits.images, digits.labels},
                .format = "idx",
                .batch_size = batch,
                .fields = {{.name = "image", .item = {kPixels}, .source = 0, .scale = 1.0 / 255},
                           {.name = "label", .item = {1}, .type = graph::DataType::kInt64, .source = 1}}});
  const graph::Ref first = net.Fc(fields[0], kLayers[0], {.activation = "relu"});
  const graph::Ref second = net.Fc(first, kLayers[1], {.activation = "relu"});
  const graph::Ref scores = net.Fc(second, kLayers[2]);
  const graph::Ref loss = net.Mean(net.SoftmaxWithCrossEntropy(scores, fields[1]));
  if (output > 0) net.Output({loss}, output);
  if (output == kAccuracy) net.Output({net.Accuracy(scores, fields[1])});
  net.Minimize(loss, {.update = graph::Sgd(), .rate = 0.01});
  return net.Finish();
}

double MlpArithmetic() {
  const double first = 2.0 * kPixels * kLayers[0];
  const double others = 2.0 * (kLayers[0] * kLayers[1] + kLayers[1] * kLayers[2]);
  // Forward, the weights' gradients, and the inputs' gradients but for the first layer's.
  return 2 * first + 3 * others;
}

absl::StatusOr<std::unique_ptr<LocalTraining>> LocalTraining::Make(const graph::Programs& programs,
                                                                   int threads) {
  auto made = std::make_unique<LocalTraining>();
  made->services_.seed = programs.main.seed;
  TY_RETURN_IF_ERROR(graph::RunOnce(programs.startup, made->scope_, made->services_));
  TY_ASSIGN_OR_RETURN(made->block_,
                      graph::PreparedBlock::Make(programs.main, 0, made->scope_, {.threads = threads}));
  for (const graph::Op& op : programs.main.main().ops) {
    if (op.type != "read") continue;
    TY_ASSIGN_OR_RETURN(made->batches_, ps::RecordBatches::Open(op));
  }
  if (made->batches_ == nullptr) return absl::InvalidArgumentError("the program reads nothing");
  made->batches_->AssignAll();
  made->services_.batches = made->batches_.get();
  return made;
}

absl::Status LocalTraining::Step() {
  const absl::Status run = block_->Run(services_);
  return absl::IsOutOfRange(run) ? block_->Run(services_) : run;  // the next pass
}

GraphProcesses::GraphProcesses(const Settings& settings, const std::string& name)
    : trainyard_(settings.trainyard),
      folder_(StrCat(settings.folder, "/", name)),
      keys_{StrCat("default/", name)},
      store_(kv::NewMemoryStore(Clock::System())) {}

absl::StatusOr<std::unique_ptr<GraphProcesses>> GraphProcesses::Make(const Settings& settings,
                                                                     const std::string& name) {
  std::unique_ptr<GraphProcesses> made(new GraphProcesses(settings, name));
  std::filesystem::create_directories(made->folder_);
  TY_ASSIGN_OR_RETURN(made->server_, kv::EtcdServer::Start(*made->store_, {}));
  return made;
}

absl::Status GraphProcesses::Submit(const graph::Graphs& graphs) {
  IdSource ids(1);
  return ps::CreateJob(*store_, ids, keys_, {.graphs = graphs, .checkpoint_every = kNoCheckpoints});
}

absl::Status GraphProcesses::Start(const std::string& graph) {
  TY_ASSIGN_OR_RETURN(
      Child child,
      // A graph would wait for its store for ever: it goes with this process, however that ends.
      Child::Spawn({.argv = {"setpriv", "--pdeathsig", "KILL", trainyard_, "graph-worker", "--store",
                             StrCat("etcd://", server_->address()), "--job", keys_.job, "--graph", graph,
                             "--checkpoint-dir", folder_},
                    .stdout_path = LogOf(graph),
                    .stderr_path = LogOf(graph)}));
  processes_.insert_or_assign(graph, std::move(child));
  return absl::OkStatus();
}

absl::StatusOr<absl::Duration> GraphProcesses::CpuTime(const std::string& graph) const {
  return CpuTimeOf(processes_.find(graph)->second.pid());
}

absl::Status GraphProcesses::Await(const std::string& graph, absl::Duration timeout) {
  TY_ASSIGN_OR_RETURN(const ExitStatus ended, processes_.find(graph)->second.Wait(timeout));
  if (ended == ExitStatus(Exited{0})) return absl::OkStatus();
  const absl::StatusOr<std::string> log = ReadFile(LogOf(graph), kMostLog);
  return absl::InternalError(StrCat(graph, " ", PrintExit(ended), ": ", log.ok() ? *log : ""));
}

void GraphRows(const Settings& settings, std::vector<Row>& rows) {
  GraphTrafficRows(settings, rows);
  GraphComputeRows(settings, rows);
  GraphJobRows(settings, rows);
  GraphFaultRows(settings, rows);
}

}  // namespace trainyard::bench
