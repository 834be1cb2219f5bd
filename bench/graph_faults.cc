// How long training stands still when one of its processes is killed, on the embedded cluster.
#include <dirent.h>
#include <signal.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/files.h"
#include "base/status.h"
#include "base/text.h"
#include "bench/graph.h"
#include "bench/local_cluster.h"
#include "client/cluster.h"
#include "client/graph_jobs.h"

namespace trainyard::bench {
namespace {

constexpr std::int64_t kGraphFaultsBatch = 64;
constexpr std::int64_t kCheckpointEvery = 100;
constexpr std::int64_t kBefore = 150;  // steps until something is killed
constexpr std::size_t kGraphFaultsMostFile = std::size_t{1} << 20;
constexpr absl::Duration kGraphFaultsPatience = absl::Seconds(60);
constexpr absl::Duration kAfter = absl::Seconds(4);  // how long it is watched

struct Fault {
  std::string name;
  std::string graph;  // who is killed
  graph::SyncMode mode = graph::SyncMode::kSync;
  double most = 1;  // seconds
};

// The process of a pod, by what its environment says.
std::optional<pid_t> FindProcess(const std::string& pod) {
  std::optional<pid_t> found;
  DIR* const all = ::opendir("/proc");
  while (const dirent* const entry = all == nullptr ? nullptr : ::readdir(all)) {
    const auto pid = ParseNumber<pid_t>(entry->d_name);
    if (!pid) continue;
    const auto command = ReadFile(StrCat("/proc/", *pid, "/cmdline"), kGraphFaultsMostFile);
    if (!command.ok() || command->find("graph-worker") == std::string::npos) continue;
    const auto environment = ReadFile(StrCat("/proc/", *pid, "/environ"), kGraphFaultsMostFile);
    if (environment.ok() && environment->find(StrCat("TRAINYARD_POD_NAME=", pod, '\0')) != std::string::npos)
      found = *pid;
  }
  if (all != nullptr) ::closedir(all);
  return found;
}

class FaultyJob {
 public:
  explicit FaultyJob(const LocalCluster& cluster) : options_{.kubeconfig = cluster.kubeconfig()} {}

  // The longest time between two steps of trainer-0 after the kill, in seconds.
  absl::StatusOr<double> Pause(const Digits& digits, const Fault& fault, const std::string& name) {
    TY_ASSIGN_OR_RETURN(const graph::Programs programs, MakeMlp(digits, kGraphFaultsBatch, /*output=*/1));
    TY_ASSIGN_OR_RETURN(
        graph::Graphs graphs,
        graph::Transpile(programs, {.trainers = 2, .passes = 1000000, .pservers = 2, .mode = fault.mode}));
    TY_ASSIGN_OR_RETURN(const auto jobs, client::GraphJobs::Open(options_));
    TY_ASSIGN_OR_RETURN(const auto job, jobs->InitJob(name, {.checkpoint_every = kCheckpointEvery}));
    TY_ASSIGN_OR_RETURN(client::Workers* const trainers, job->AddWorkers(std::move(graphs.trainers), {}));
    TY_ASSIGN_OR_RETURN(client::Workers* const pservers, job->AddWorkers(std::move(graphs.pservers), {}));
    TY_RETURN_IF_ERROR(pservers->Start());
    TY_RETURN_IF_ERROR(trainers->Start());
    TY_ASSIGN_OR_RETURN(const auto outputs, trainers->Get({}));
    for (std::int64_t step = 0; step < kBefore;) {
      TY_ASSIGN_OR_RETURN(const client::GraphOutput output, outputs->Next(kGraphFaultsPatience));
      step = std::max(step, output.step);
    }
    const std::optional<pid_t> victim = FindProcess(StrCat(name, "-", fault.graph));
    if (!victim) return absl::NotFoundError(StrCat("no process runs ", fault.graph));
    const absl::Time killed = Clock::System().Now();
    if (::kill(*victim, SIGKILL) != 0) return ErrnoStatus(errno, StrCat("cannot kill ", fault.graph));
    absl::SleepFor(kAfter);
    TY_ASSIGN_OR_RETURN(const double pause, LongestPause(name, killed));
    TY_RETURN_IF_ERROR(job->Stop());
    return pause;
  }

 private:
  absl::StatusOr<double> LongestPause(const std::string& name, absl::Time since) {
    TY_ASSIGN_OR_RETURN(const auto cluster, client::Cluster::Open(options_));
    TY_ASSIGN_OR_RETURN(const auto store, cluster->FindStore());
    const ps::JobKeys keys{StrCat("default/", name)};
    TY_ASSIGN_OR_RETURN(const kv::RangeResult found,
                        store->Range({.range = kv::KeyRange::Prefix(keys.Outputs("trainer-0"))}));
    absl::Duration longest;
    absl::Time last = since;
    for (const kv::KeyValue& kv : found.kvs) {
      TY_ASSIGN_OR_RETURN(const ps::Output output, ps::DecodeOutput(kv.value));
      if (output.time < since) continue;
      longest = std::max(longest, output.time - last);
      last = output.time;
    }
    longest =
        std::max(longest, Clock::System().Now() - last - absl::Milliseconds(500));  // what is not written yet
    return absl::ToDoubleSeconds(longest);
  }

  const client::ClusterOptions options_;
};

}  // namespace

void GraphFaultRows(const Settings& settings, std::vector<Row>& rows) {
  const Fault faults[] = {
      {.name = "a pserver is killed, checkpoint every 100 steps", .graph = "pserver-1", .most = 1},
      {.name = "a trainer is killed, sync", .graph = "trainer-1", .most = 2},
      {.name = "a trainer is killed, async",
       .graph = "trainer-1",
       .mode = graph::SyncMode::kAsync,
       .most = 0.5},
  };
  const auto cluster = LocalCluster::Start(settings.trainyard, settings.folder + "/graph-cluster");
  const auto digits = WriteDigits(settings.folder + "/fault-digits", 64 * kGraphFaultsBatch);
  for (std::size_t i = 0; i < std::size(faults); ++i) {
    std::vector<double> pauses;
    absl::Status status = cluster.ok() ? digits.status() : cluster.status();
    for (int round = 0; status.ok() && round < (settings.quick ? 1 : 3); ++round) {
      const absl::StatusOr<double> pause =
          FaultyJob(**cluster).Pause(*digits, faults[i], StrCat("fault-", i, "-", round));
      status = pause.status();
      if (pause.ok()) pauses.push_back(*pause);
    }
    Add(rows,
        {.name = StrCat("graph: training stands still when ", faults[i].name),
         .unit = "s",
         .most_figure = faults[i].most},
        status.ok() ? absl::StatusOr<double>(Median(pauses)) : status);
  }
}

}  // namespace trainyard::bench
