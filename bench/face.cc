// What people see, as they feel it: how long they wait for a page of help, for a list of a thousand jobs, and
// for the dashboard.
#include <optional>
#include <sstream>
#include <utility>

#include "base/clock.h"
#include "base/files.h"
#include "base/process.h"
#include "base/status.h"
#include "base/text.h"
#include "bench/job_load.h"
#include "bench/local_cluster.h"
#include "bench/report.h"
#include "kube/api.h"

namespace trainyard::bench {
namespace {

constexpr absl::Duration kFacePatience = absl::Seconds(30);
constexpr absl::Duration kBrowserPatience = absl::Minutes(5);  // what drives it may have to be fetched
constexpr std::size_t kMostBytes = std::size_t{1} << 16;
constexpr int kJobs = 1000;

// From the start of the process to its end, in milliseconds.
absl::StatusOr<double> TimeOf(const std::vector<std::string>& argv, const std::string& out) {
  const SteadyTime begun = Clock::System().Steady();
  TY_ASSIGN_OR_RETURN(Child child, Child::Spawn({.argv = argv, .stdout_path = out, .stderr_path = out}));
  TY_ASSIGN_OR_RETURN(const ExitStatus exit, child.Wait(kFacePatience));
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

constexpr int kNoBrowser = 3;

// The dashboard's first jobs in a real Chromium, beside a blank page in the same one. No row where there is
// none.
void AddFirstPaint(const Settings& settings, std::vector<Row>& rows, const LocalCluster& cluster) {
  Row row{.name = "face: the dashboard's first paint in Chromium, 1,000 jobs",
          .unit = "ms",
          .limit_name = "a blank page",
          .most_figure = 500};
  const std::string out = settings.folder + "/first_paint.out";
  const auto measure = [&]() -> absl::StatusOr<std::optional<Pair>> {
    TY_ASSIGN_OR_RETURN(const std::string url, ReadFile(cluster.home() + "/dashboard", kMostBytes));
    TY_ASSIGN_OR_RETURN(
        Child child,
        Child::Spawn({.argv = {TRAINYARD_FIRST_PAINT, settings.trainyard, url, settings.quick ? "1" : "7"},
                      .stdout_path = out,
                      .stderr_path = out}));
    TY_ASSIGN_OR_RETURN(const ExitStatus exit, child.Wait(kBrowserPatience));
    if (exit == ExitStatus(Exited{.code = kNoBrowser})) return std::nullopt;
    TY_ASSIGN_OR_RETURN(const std::string text, ReadFile(out, kMostBytes));
    Pair pair;
    if (exit != ExitStatus(Exited{.code = 0}) || !(std::istringstream(text) >> pair.figure >> pair.limit))
      return absl::InternalError(StrCat("Chromium: ", PrintExit(exit), ": ", text));
    return pair;
  };
  const auto measured = measure();
  if (measured.ok() && !*measured) return;
  if (measured.ok()) row.limit = (*measured)->limit;
  Add(rows, std::move(row), measured.ok() ? absl::StatusOr<double>((*measured)->figure) : measured.status());
}

absl::StatusOr<std::unique_ptr<LocalCluster>> ClusterOfJobs(const Settings& settings) {
  TY_ASSIGN_OR_RETURN(auto cluster,
                      LocalCluster::Start(settings.trainyard, settings.folder + "/face", {"--no-operator"}));
  TY_ASSIGN_OR_RETURN(const auto load, JobLoad::Connect(cluster->kubeconfig()));
  TY_RETURN_IF_ERROR(load->InstallKinds());
  const int count = settings.quick ? 10 : kJobs;
  std::vector<std::string> jobs;
  jobs.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) jobs.push_back(JobBody(StrCat("job-", i), 4));
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
  AddFirstPaint(settings, rows, **cluster);
}

}  // namespace trainyard::bench
