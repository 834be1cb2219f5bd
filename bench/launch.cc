// The launcher: how fast scripts run in all members, first and after a loss, and what a launcher of many
// tasks takes.
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "base/clock.h"
#include "base/document.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/status.h"
#include "base/text.h"
#include "bench/local_cluster.h"
#include "bench/report.h"
#include "http/calls.h"
#include "launch/task.h"

namespace trainyard::bench {
namespace {

constexpr absl::Duration kLaunchPatience = absl::Seconds(120);
constexpr absl::Duration kLookEvery = absl::Milliseconds(2);
constexpr int kLaunchWorkers = 4;
constexpr std::size_t kLaunchMostFile = std::size_t{4} << 20;
constexpr std::string_view kAddress = "127.0.0.1:37897";

// Says when each attempt began, in a file of its own, and waits for its end.
constexpr std::string_view kScript = R"(import os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
path = os.path.join(os.environ["RUNS"], "%s-%s" % (os.environ["TRAINYARD_MEMBER"], os.environ["TRAINYARD_ATTEMPT"]))
with open(path + ".part", "w") as file:
    file.write("%d" % (time.time() * 1e6))
os.rename(path + ".part", path)
while True:
    signal.pause()
)";
constexpr std::string_view kIdleScript = "#!/bin/sh\nexec sleep 1000000\n";

// The script's process, by what its environment says: its own number is another one, inside the pod.
std::optional<pid_t> FindScript(const std::string& task, const std::string& member) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const auto pid = ParseNumber<pid_t>(entry.path().filename().string());
    const auto environment =
        pid ? ReadFile(entry.path().string() + "/environ", kLaunchMostFile) : absl::NotFoundError("");
    if (!environment.ok()) continue;
    const bool own = environment->find(StrCat("TRAINYARD_TASK=", task, '\0')) != std::string::npos &&
                     environment->find(StrCat("TRAINYARD_MEMBER=", member, '\0')) != std::string::npos;
    if (own) return pid;
  }
  return std::nullopt;
}

class LauncherBench {
 public:
  static absl::StatusOr<std::unique_ptr<LauncherBench>> Start(const Settings& settings) {
    std::unique_ptr<LauncherBench> made(new LauncherBench(settings.folder + "/launch-image"));
    std::filesystem::create_directories(made->image_);
    TY_RETURN_IF_ERROR(ReplaceFile(made->image_ + "/exec.py", kScript, 0644, Durability::kProcess));
    TY_RETURN_IF_ERROR(ReplaceFile(made->image_ + "/idle", kIdleScript, 0755, Durability::kProcess));
    TY_ASSIGN_OR_RETURN(made->cluster_,
                        LocalCluster::Start(settings.trainyard, settings.folder + "/launch-home",
                                            {"--capacity", "cpu=64,memory=64Gi,pods=1000"}));
    TY_ASSIGN_OR_RETURN(made->calls_, http::Calls::Start());
    TY_ASSIGN_OR_RETURN(made->launcher_, Child::Spawn({.argv = {settings.trainyard, "launcher",
                                                                "--kubeconfig", made->cluster_->kubeconfig(),
                                                                "--listen", std::string(kAddress)}}));
    TY_RETURN_IF_ERROR(made->AwaitTrue([&] { return made->Ask("GET", "/healthz").ok(); }, "the launcher"));
    return made;
  }

  absl::Status Create(launch::TaskSpec spec) {
    spec.image = image_;
    spec.env["RUNS"] = RunsOf(spec.name);
    std::filesystem::remove_all(RunsOf(spec.name));
    std::filesystem::create_directories(RunsOf(spec.name));
    return Ask("POST", "/tasks", launch::Print(spec)).status();
  }
  absl::Status Delete(const std::string& task) { return Ask("DELETE", StrCat("/tasks/", task)).status(); }

  // When the last member has begun that attempt.
  absl::StatusOr<absl::Time> AwaitAttempt(const std::string& task, int attempt) {
    absl::Time last;
    TY_RETURN_IF_ERROR(AwaitTrue(
        [&] {
          last = absl::InfinitePast();
          for (int i = 0; i < kLaunchWorkers; ++i) {
            const auto text = ReadFile(StrCat(RunsOf(task), "/worker-", i, "-", attempt), 100);
            if (!text.ok()) return false;
            last = std::max(last, absl::FromUnixMicros(ParseNumber<std::int64_t>(*text).value_or(0)));
          }
          return true;
        },
        StrCat("attempt ", attempt, " of ", task)));
    return last;
  }
  absl::Status AwaitRunning(int tasks) {
    return AwaitTrue(
        [&] {
          const auto answer = Ask("GET", "/tasks");
          const Array* const list = answer.ok() ? ArrayAt(*answer, {"tasks"}) : nullptr;
          return list != nullptr && std::ranges::count_if(*list, [](const Document& task) {
                                      return StringAt(task, {"phase"}) == "Running";
                                    }) == tasks;
        },
        StrCat(tasks, " tasks to run"));
  }
  absl::StatusOr<double> MemoryMiB() const { return ResidentMiB(launcher_->pid()); }

 private:
  explicit LauncherBench(std::string image) : image_(std::move(image)) {}
  std::string RunsOf(const std::string& task) const { return StrCat(image_, "/runs-", task); }

  absl::StatusOr<Document> Ask(std::string method, const std::string& path, std::string body = "") {
    absl::StatusOr<http::Answer> answer = std::move(calls_
                                                        ->DoAll({{.method = std::move(method),
                                                                  .url = StrCat("http://", kAddress, path),
                                                                  .body = std::move(body)}})
                                                        .front());
    TY_RETURN_IF_ERROR(answer);
    if (answer->code / 100 != 2) return absl::InternalError(http::ErrorOf(*answer));
    return path == "/healthz" ? Document() : ParseJson(answer->body);
  }

  absl::Status AwaitTrue(const std::function<bool()>& condition, const std::string& what) {
    const SteadyTime deadline = Clock::System().Steady() + kLaunchPatience;
    while (!condition()) {
      if (Clock::System().Steady() > deadline)
        return absl::DeadlineExceededError(StrCat("timed out waiting for ", what));
      if (launcher_->Wait(absl::ZeroDuration()).ok())
        return absl::UnavailableError("the launcher has exited; its output is above");
      absl::SleepFor(kLookEvery);
    }
    return absl::OkStatus();
  }

  const std::string image_;
  std::unique_ptr<LocalCluster> cluster_;
  std::unique_ptr<http::Calls> calls_;
  std::optional<Child> launcher_;  // ends before the cluster
};

// Milliseconds to the first attempt of all, and to the second after one was killed.
absl::StatusOr<std::pair<double, double>> MeasureStarts(LauncherBench& bench, int rounds) {
  std::vector<double> first;
  std::vector<double> second;
  for (int round = 0; round < rounds; ++round) {
    const std::string name = StrCat("starts-", round);
    const absl::Time made = absl::Now();
    TY_RETURN_IF_ERROR(
        bench.Create({.name = name, .workers = kLaunchWorkers, .command = {"/usr/bin/python3", "exec.py"}}));
    TY_ASSIGN_OR_RETURN(const absl::Time begun, bench.AwaitAttempt(name, 1));
    first.push_back(absl::ToDoubleMilliseconds(begun - made));
    absl::SleepFor(absl::Milliseconds(300));
    const std::optional<pid_t> script = FindScript(name, "worker-1");
    if (!script) return absl::NotFoundError("no script runs");
    const absl::Time killed = absl::Now();
    ::kill(*script, SIGKILL);
    TY_ASSIGN_OR_RETURN(const absl::Time again, bench.AwaitAttempt(name, 2));
    second.push_back(absl::ToDoubleMilliseconds(again - killed));
    TY_RETURN_IF_ERROR(bench.Delete(name));
    absl::SleepFor(absl::Milliseconds(300));
  }
  return std::pair(Median(first), Median(second));
}

absl::StatusOr<double> MeasureMemory(LauncherBench& bench, int tasks) {
  for (int i = 0; i < tasks; ++i)
    TY_RETURN_IF_ERROR(
        bench.Create({.name = StrCat("many-", i), .workers = kLaunchWorkers, .script = "idle"}));
  TY_RETURN_IF_ERROR(bench.AwaitRunning(tasks));
  return bench.MemoryMiB();
}

}  // namespace

void LaunchRows(const Settings& settings, std::vector<Row>& rows) {
  const auto bench = LauncherBench::Start(settings);
  if (!bench.ok()) return Add(rows, {.name = "launch", .least_figure = 0}, bench.status());
  const auto starts = MeasureStarts(**bench, settings.quick ? 1 : settings.rounds);
  Add(rows, {.name = "launch: 4 workers, the script running in all", .unit = "ms", .most_figure = 300},
      starts.ok() ? absl::StatusOr<double>(starts->first) : starts.status());
  Add(rows, {.name = "launch: one of 4 killed, all running again", .unit = "ms", .most_figure = 500},
      starts.ok() ? absl::StatusOr<double>(starts->second) : starts.status());
  const int tasks = settings.quick ? 3 : 100;
  Add(rows,
      {.name = StrCat("launch: memory of a launcher of ", tasks, " tasks x 4"),
       .unit = "MiB",
       .most_figure = 50},
      MeasureMemory(**bench, tasks));
}

}  // namespace trainyard::bench
