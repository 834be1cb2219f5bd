// A model's way to a pserver and back against the same bytes over a bare socket.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "base/text.h"
#include "bench/graph.h"
#include "ps/registry.h"
#include "ps/rpc/places.h"
#include "ps/trainer_peers.h"

namespace trainyard::bench {
namespace {

constexpr std::size_t kChunk = std::size_t{4} << 20;  // of one call, as of one message of ours
constexpr int kParameters = 4;
constexpr absl::Duration kGraphTrafficPatience = absl::Seconds(20);
constexpr double kCpuUnit = 4 << 20;  // bytes each way that the pserver's processor time is told for

bool ReadAll(int fd, char* to, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t got = ::read(fd, to, std::min(bytes, kChunk));
    if (got <= 0) return false;
    to += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

bool WriteAll(int fd, const char* from, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t put = ::write(fd, from, std::min(bytes, kChunk));
    if (put <= 0) return false;
    from += put;
    bytes -= static_cast<std::size_t>(put);
  }
  return true;
}

// A process that takes so many bytes and then gives as many, again and again.
class RawPeer {
 public:
  explicit RawPeer(std::size_t bytes) : memory_(bytes, 'x') {}
  RawPeer(const RawPeer&) = delete;
  RawPeer& operator=(const RawPeer&) = delete;
  ~RawPeer() {
    socket_ = Fd();
    if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
  }

  absl::Status Start() {
    const Fd listening(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(address);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    if (::bind(listening.get(), generic, size) != 0 || ::listen(listening.get(), 1) != 0 ||
        ::getsockname(listening.get(), generic, &size) != 0)
      return ErrnoStatus(errno, "cannot listen on loopback");
    pid_ = ::fork();
    if (pid_ < 0) return ErrnoStatus(errno, "cannot fork");
    if (pid_ == 0) Serve(listening.get());
    socket_ = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(socket_.get(), generic, size) != 0) return ErrnoStatus(errno, "cannot connect to loopback");
    return absl::OkStatus();
  }

  absl::Status ThereAndBack() {
    if (WriteAll(socket_.get(), memory_.data(), memory_.size()) &&
        ReadAll(socket_.get(), memory_.data(), memory_.size()))
      return absl::OkStatus();
    return absl::UnavailableError("the other end of a bare socket is gone");
  }
  absl::Duration CpuTime() const { return CpuTimeOf(pid_).value_or(absl::ZeroDuration()); }

 private:
  // The child's whole life. It has only this thread of all that there were, so it makes nothing new.
  [[noreturn]] void Serve(int listening) {
    const int fd = ::accept(listening, nullptr, nullptr);
    while (ReadAll(fd, memory_.data(), memory_.size()) && WriteAll(fd, memory_.data(), memory_.size())) {
    }
    ::_exit(0);
  }

  std::string memory_;
  pid_t pid_ = -1;
  Fd socket_;
};

// A pserver as a process of its own, and a trainer here that sends gradients and takes parameters as the
// operators of its graph do.
class PushAndPull {
 public:
  absl::Status Start(const Settings& settings, std::int64_t side) {
    TY_ASSIGN_OR_RETURN(processes_, GraphProcesses::Make(settings, "traffic"));
    graph::Builder net("traffic");
    graph::Ref last = net.Read({.sources = {"nowhere.csv"}, .fields = {{.name = "x", .item = {side}}}})[0];
    for (int i = 0; i < kParameters; ++i) last = net.Fc(last, side, {.with_bias = false});
    net.Minimize(net.Mean(last), {.update = graph::Sgd(), .rate = 0.01});
    TY_ASSIGN_OR_RETURN(const graph::Programs programs, net.Finish());
    TY_ASSIGN_OR_RETURN(const graph::Graphs graphs, graph::Transpile(programs, {}));
    trainer_ = graphs.trainers[0];
    for (const auto& [name, pserver] : trainer_.send_var_graph_map)
      gradients_[name] = graph::Tensor(graph::DataType::kFloat32, {side, side});
    for (const auto& [name, pserver] : trainer_.recv_var_graph_map)
      parameters_[name] = graph::Tensor(graph::DataType::kFloat32, {side, side});
    TY_RETURN_IF_ERROR(processes_->Submit(graphs));
    TY_RETURN_IF_ERROR(processes_->Start(kPserver));
    registry_ =
        std::make_unique<ps::Registry>(processes_->store(), processes_->keys(), ps::Registry::Listener{});
    TY_RETURN_IF_ERROR(registry_->Start());
    if (!registry_->WaitFor(kPserver, 0, kGraphTrafficPatience))
      return processes_->Await(kPserver, absl::ZeroDuration());
    peers_ = std::make_unique<ps::TrainerPeers>(
        *registry_, ps::TrainerIdentity{.graph = trainer_.id, .incarnation = 1},
        [this](ps::wire::ContributeRequest& request) {
          *request.mutable_used() = ps::ToWire(ps::Share{.places = {{peers_->step(), peers_->step() + 1}}});
        });
    TY_ASSIGN_OR_RETURN(const ps::TrainerPeers::Place place, peers_->Join(kRecords));
    return place.share.places.empty() ? peers_->NextShare().status() : absl::OkStatus();
  }

  absl::Status Step() {
    for (const auto& [name, pserver] : trainer_.send_var_graph_map)
      TY_RETURN_IF_ERROR(peers_->Send(pserver, name, gradients_[name]));
    TY_RETURN_IF_ERROR(peers_->SendBarrier({kPserver}));
    for (const auto& [name, pserver] : trainer_.recv_var_graph_map)
      TY_RETURN_IF_ERROR(peers_->Receive(pserver, name, parameters_[name]));
    return peers_->FetchBarrier({kPserver});
  }
  absl::Duration CpuTime() const { return processes_->CpuTime(kPserver).value_or(absl::ZeroDuration()); }

 private:
  static constexpr const char* kPserver = "pserver-0";
  static constexpr std::int64_t kRecords = 1 << 20;  // one for each step, and never all

  std::unique_ptr<GraphProcesses> processes_;
  graph::Graph trainer_;
  std::map<std::string, graph::Tensor> gradients_;
  std::map<std::string, graph::Tensor> parameters_;
  std::unique_ptr<ps::Registry> registry_;
  std::unique_ptr<ps::TrainerPeers> peers_;
};

struct Traffic {
  Pair rate;  // MiB/s, both ways together
  Pair cpu;   // ms of the other side for kCpuUnit there and back
};

absl::StatusOr<Traffic> MeasureTraffic(const Settings& settings) {
  const std::int64_t side = settings.quick ? 512 : 2048;
  const int steps = settings.quick ? 2 : 4;
  const auto bytes = static_cast<double>(side * side * 4 * kParameters);
  RawPeer raw(static_cast<std::size_t>(bytes));
  TY_RETURN_IF_ERROR(raw.Start());
  PushAndPull ours;
  TY_RETURN_IF_ERROR(ours.Start(settings, side));
  absl::Status failed;
  std::vector<double> cpus[2];
  const auto measure = [&](auto& peer, auto step, std::vector<double>& cpu) {
    const absl::Duration cpu_begin = peer.CpuTime();
    const SteadyTime begin = Clock::System().Steady();
    for (int i = 0; i < steps && failed.ok(); ++i) failed = (peer.*step)();
    const absl::Duration took = Clock::System().Steady() - begin;
    cpu.push_back(absl::ToDoubleMilliseconds(peer.CpuTime() - cpu_begin) / (steps * bytes / kCpuUnit));
    return 2 * steps * bytes / (1 << 20) / absl::ToDoubleSeconds(took);
  };
  const auto of_ours = [&] { return measure(ours, &PushAndPull::Step, cpus[0]); };
  const auto of_raw = [&] { return measure(raw, &RawPeer::ThereAndBack, cpus[1]); };
  of_ours();  // memory is touched for the first time
  of_raw();
  for (std::vector<double>& cpu : cpus) cpu.clear();
  Traffic traffic{.rate = Alternate(3 * settings.rounds, of_ours, of_raw)};
  TY_RETURN_IF_ERROR(failed);
  traffic.cpu = {.figure = Median(cpus[0]), .limit = Median(cpus[1])};
  return traffic;
}

}  // namespace

void GraphTrafficRows(const Settings& settings, std::vector<Row>& rows) {
  const absl::StatusOr<Traffic> traffic = MeasureTraffic(settings);
  const auto add = [&](Row row, Pair Traffic::* pair) {
    if (traffic.ok()) row.limit = ((*traffic).*pair).limit;
    Add(rows, std::move(row),
        traffic.ok() ? absl::StatusOr<double>(((*traffic).*pair).figure) : traffic.status());
  };
  add({.name = "graph: push and pull of a model, one trainer, loopback",
       .unit = "MiB/s",
       .limit_name = "bare TCP, the same bytes",
       .least_ratio = 0.75},
      &Traffic::rate);
  add({.name = "graph: pserver's processor time for 4 MiB pushed and pulled",
       .unit = "ms",
       .limit_name = "bare TCP's",
       .most_figure = 3},
      &Traffic::cpu);
}

}  // namespace trainyard::bench
