// How fast the embedded cluster turns pods into processes.
#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/status.h"
#include "base/text.h"
#include "bench/https_load.h"
#include "bench/local_cluster.h"
#include "bench/report.h"

namespace trainyard::bench {
namespace {

constexpr std::string_view kBenchPods = "/api/v1/namespaces/default/pods";
constexpr int kPatienceMs = 15000;

std::string BenchPodBody(std::string_view name, std::string_view script) {
  return StrCat(
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")", name,
      R"("},"spec":{"restartPolicy":"Never","terminationGracePeriodSeconds":0,"containers":[{"name":"main","image":"none",)"
      R"("command":["/bin/sh","-c",")",
      script, R"("]}]}})");
}

// A folder where pods leave a sign that they run.
class Signs {
 public:
  absl::Status Open(std::string folder) {
    folder_ = std::move(folder);
    std::filesystem::create_directories(folder_);
    watch_ = Fd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    if (!watch_.valid() || ::inotify_add_watch(watch_.get(), folder_.c_str(), IN_CREATE) < 0) {
      return ErrnoStatus(errno, StrCat("cannot watch ", folder_));
    }
    return absl::OkStatus();
  }
  // What a shell runs to leave one.
  std::string Script(std::string_view name) const { return StrCat(": > ", folder_, "/", name); }
  // When the next one was left.
  absl::StatusOr<SteadyTime> Await() const {
    pollfd ready{.fd = watch_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, kPatienceMs) != 1) return absl::DeadlineExceededError("the pod has not run");
    const SteadyTime now = Clock::System().Steady();
    std::array<char, 4096> ignored;
    while (::read(watch_.get(), ignored.data(), ignored.size()) > 0) {
    }
    return now;
  }

 private:
  std::string folder_;
  Fd watch_;
};

// How long `kubectl apply` takes, or with `dry_run` what it takes without the pod: all but the last step is
// the same.
class Kubectl {
 public:
  Kubectl(const LocalCluster& cluster, std::string folder) : cluster_(cluster), folder_(std::move(folder)) {}

  absl::StatusOr<Child> Apply(const std::string& manifest, bool dry_run) const {
    const std::string file = folder_ + "/pod.json";
    std::ofstream(file) << manifest;
    std::vector<std::string> argv = {
        "kubectl", "--kubeconfig", cluster_.kubeconfig(), "--cache-dir", folder_ + "/cache", "apply", "-f",
        file};
    if (dry_run) argv.emplace_back("--dry-run=server");
    return Child::Spawn({.argv = std::move(argv),
                         .stdout_path = folder_ + "/kubectl.log",
                         .stderr_path = folder_ + "/kubectl.log"});
  }

 private:
  const LocalCluster& cluster_;
  const std::string folder_;
};

absl::Status AwaitSuccess(Child& kubectl, const std::string& folder) {
  TY_ASSIGN_OR_RETURN(const ExitStatus ended, kubectl.Wait(absl::Milliseconds(kPatienceMs)));
  if (ended == ExitStatus(Exited{0})) return absl::OkStatus();
  return absl::InternalError(StrCat("kubectl ", PrintExit(ended), "; see ", folder, "/kubectl.log"));
}

absl::StatusOr<double> ApplyToProcess(const Settings& settings, const LocalCluster& cluster) {
  const std::string folder = settings.folder + "/apply";
  Signs signs;
  TY_RETURN_IF_ERROR(signs.Open(folder + "/signs"));
  const Kubectl kubectl(cluster, folder);
  std::vector<double> whole;
  std::vector<double> own;
  const int samples = settings.quick ? 1 : 4 * settings.rounds;
  for (int i = -1; i < samples; ++i) {  // the first fills kubectl's cache
    const std::string manifest = BenchPodBody(StrCat("apply-", i + 1), signs.Script(StrCat("apply-", i + 1)));
    SteadyTime begin = Clock::System().Steady();
    TY_ASSIGN_OR_RETURN(Child dry, kubectl.Apply(manifest, /*dry_run=*/true));
    TY_RETURN_IF_ERROR(AwaitSuccess(dry, folder));
    const SteadyTime ended = Clock::System().Steady();
    if (i >= 0) own.push_back(absl::ToDoubleMilliseconds(ended - begin));
    begin = Clock::System().Steady();
    TY_ASSIGN_OR_RETURN(Child wet, kubectl.Apply(manifest, /*dry_run=*/false));
    TY_ASSIGN_OR_RETURN(const SteadyTime runs, signs.Await());
    if (i >= 0) whole.push_back(absl::ToDoubleMilliseconds(runs - begin));
    TY_RETURN_IF_ERROR(AwaitSuccess(wet, folder));
  }
  return Quantile(whole, 0.5) - Quantile(own, 0.5);
}

absl::StatusOr<double> CreateToProcess(const Settings& settings, const LocalCluster& cluster) {
  Signs signs;
  TY_RETURN_IF_ERROR(signs.Open(settings.folder + "/create-signs"));
  TY_ASSIGN_OR_RETURN(const auto client, HttpsLoad::Connect(cluster.target(), 1));
  std::vector<double> times;
  const int samples = settings.quick ? 2 : 20 * settings.rounds;
  for (int i = 0; i < samples; ++i) {
    const std::string body = BenchPodBody(StrCat("create-", i), signs.Script(StrCat("create-", i)));
    const SteadyTime begin = Clock::System().Steady();
    TY_ASSIGN_OR_RETURN(const HttpsAnswer answer, client->Ask(0, "POST", kBenchPods, body));
    if (answer.code != 201)
      return absl::InternalError(StrCat("a create was answered with ", answer.code, ": ", answer.body));
    TY_ASSIGN_OR_RETURN(const SteadyTime runs, signs.Await());
    times.push_back(absl::ToDoubleMilliseconds(runs - begin));
  }
  return Quantile(times, 0.5);
}

// The name of the pod that an event shows as running; empty: it does not.
std::string_view RunningPod(std::string_view event) {
  constexpr std::string_view kName = "\"name\":\"many-";
  if (event.find("\"phase\":\"Running\"") == std::string_view::npos) return "";
  const std::size_t at = event.find(kName);
  if (at == std::string_view::npos) return "";
  const std::size_t begin = at + kName.size();
  return event.substr(begin, event.find('"', begin) - begin);
}

absl::StatusOr<double> ManyPods(const LocalCluster& cluster, int pods) {
  constexpr int kClients = 16;
  TY_ASSIGN_OR_RETURN(const auto load, HttpsLoad::Connect(cluster.target(), kClients + 1));
  std::set<std::string, std::less<>> running;
  absl::Status refused;
  int next = 0;
  const auto send = [&](int connection) {
    if (next < pods)
      load->Send(connection, "POST", kBenchPods, BenchPodBody(StrCat("many-", next++), "exec sleep 1000"));
  };
  load->on_line = [&](int, std::string_view line) {
    if (const std::string_view name = RunningPod(line); !name.empty()) running.emplace(name);
  };
  load->on_answer = [&](int connection, const HttpsAnswer& answer) {
    if (answer.code != 201)
      refused = absl::InternalError(StrCat("a create was answered with ", answer.code, ": ", answer.body));
    send(connection);
  };
  load->Stream(kClients, StrCat(kBenchPods, "?watch=true"));
  TY_RETURN_IF_ERROR(load->TurnUntil([&] { return load->streams() == 1; }, absl::Seconds(10)));
  const SteadyTime begin = Clock::System().Steady();
  for (int i = 0; i < kClients; ++i) send(i);
  const absl::Status done =
      load->TurnUntil([&] { return !refused.ok() || std::ssize(running) == pods; }, absl::Seconds(60));
  TY_RETURN_IF_ERROR(refused);
  if (!done.ok()) return Annotate(done, StrCat(running.size(), " of ", pods, " pods run"));
  return absl::ToDoubleSeconds(Clock::System().Steady() - begin);
}

}  // namespace

void PodRows(const Settings& settings, std::vector<Row>& rows) {
  const auto cluster = LocalCluster::Start(settings.trainyard, settings.folder + "/pods",
                                           {"--capacity", "cpu=64,memory=64Gi,pods=1000"});
  const auto measure = [&](Row row, const std::function<absl::StatusOr<double>()>& figure) {
    Add(rows, std::move(row), cluster.ok() ? figure() : cluster.status());
  };
  const int pods = settings.quick ? 5 : 200;
  measure({.name = "pods: create to process, p50", .unit = "ms", .most_figure = 50},
          [&] { return CreateToProcess(settings, **cluster); });
  measure({.name = "pods: kubectl apply to process, beyond kubectl's own time, p50",
           .unit = "ms",
           .most_figure = 50},
          [&] { return ApplyToProcess(settings, **cluster); });
  measure({.name = StrCat("pods: ", pods, " one-process pods all Running"), .unit = "s", .most_figure = 3},
          [&] { return ManyPods(**cluster, pods); });
}

}  // namespace trainyard::bench
