// The command line as people feel it: how long they wait for a page, and for a list of a thousand jobs.
#include <utility>

#include "base/clock.h"
#include "base/process.h"
#include "base/status.h"
#include "base/text.h"
#include "bench/job_load.h"
#include "bench/local_cluster.h"
#include "bench/report.h"
#include "kube/api.h"

namespace trainyard::bench {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(30);
constexpr int kJobs = 1000;

// From the start of the process to its end, in milliseconds.
absl::StatusOr<double> TimeOf(const std::vector<std::string>& argv, const std::string& out) {
  const SteadyTime begun = Clock::System().Steady();
  TY_ASSIGN_OR_RETURN(Child child, Child::Spawn({.argv = argv, .stdout_path = out, .stderr_path = out}));
  TY_ASSIGN_OR_RETURN(const ExitStatus exit, child.Wait(kPatience));
  if (exit != ExitStatus(Exited{.code = 0}))
    return absl::InternalError(StrCat(argv[1], ": ", PrintExit(exit)));
  return absl::ToDoubleMilliseconds(Clock::System().Steady() - begun);
}

// The median of both in turns: the program, and one that does nothing.
void AddTime(const Settings& settings, std::vector<Row>& rows, Row row,
             const std::vector<std::string>& argv) {
  const std::string out = settings.folder + "/face.out";
  absl::Status failed;
  const auto time = [&](const std::vector<std::string>& what) {
    const auto took = TimeOf(what, out);
    failed.Update(took.status());
    return took.value_or(0);
  };
  const Pair pair =
      Alternate(settings.quick ? 1 : 15, [&] { return time(argv); }, [&] { return time({"true", "true"}); });
  row.unit = "ms";
  row.limit_name = "a process that does nothing";
  row.limit = pair.limit;
  Add(rows, std::move(row), failed.ok() ? absl::StatusOr<double>(pair.figure) : failed);
}

absl::StatusOr<std::unique_ptr<LocalCluster>> ClusterOfJobs(const Settings& settings) {
  TY_ASSIGN_OR_RETURN(auto cluster,
                      LocalCluster::Start(settings.trainyard, settings.folder + "/face", {"--no-operator"}));
  TY_ASSIGN_OR_RETURN(const auto load, JobLoad::Connect(cluster->kubeconfig()));
  TY_RETURN_IF_ERROR(load->InstallKinds());
  std::vector<std::string> jobs;
  for (int i = 0; i < (settings.quick ? 10 : kJobs); ++i) jobs.push_back(JobBody(StrCat("job-", i), 4));
  TY_RETURN_IF_ERROR(load->CreateAll(TfJobs(), "default", std::move(jobs)));
  return cluster;
}

}  // namespace

void FaceRows(const Settings& settings, std::vector<Row>& rows) {
  AddTime(settings, rows, {.name = "face: trainyard --help", .most_figure = 20},
          {settings.trainyard, "--help"});
  AddTime(settings, rows, {.name = "face: trainyard version", .most_figure = 20},
          {settings.trainyard, "version"});
  Row list{.name = "face: trainyard get, 1,000 jobs", .most_figure = 100};
  const auto cluster = ClusterOfJobs(settings);
  if (!cluster.ok()) return Add(rows, std::move(list), cluster.status());
  AddTime(settings, rows, std::move(list),
          {settings.trainyard, "get", "--kubeconfig", (*cluster)->kubeconfig()});
}

}  // namespace trainyard::bench
