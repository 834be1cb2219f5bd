#include "master/pods/teller.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/document.h"
#include "base/log.h"
#include "base/text.h"
#include "kube/error.h"

namespace trainyard::master {
namespace {

constexpr std::size_t kMostMembers = 256;  // that are told of one by one

absl::Status WriteProgress(kube::Api& api, const TellerOptions& options, const std::string& text) {
  const std::string name = ProgressName(options.job);
  const Object data{{kProgressKey, text}};
  const absl::Status written = api.Patch(kube::Resource::ConfigMaps(), {options.ns, name},
                                         PrintJson(Object{{"data", data}}), {.type = kube::PatchType::kMerge})
                                   .status();
  if (!kube::IsNotFound(written)) return written;
  const Object owner{{"apiVersion", "v1"}, {"kind", "Pod"}, {"name", options.pod}, {"uid", options.pod_uid}};
  return api
      .Create(kube::Resource::ConfigMaps(), options.ns,
              PrintJson(Object{{"apiVersion", "v1"},
                               {"kind", "ConfigMap"},
                               {"metadata", Object{{"name", name},
                                                   {"labels", Object{{kElasticJobLabel, options.job}}},
                                                   {"ownerReferences", Array{owner}}}},
                               {"data", data}}))
      .status();
}

// Of several roles.
PodsReport Together(PodsReport one, PodsReport other) {
  one.target += other.target;
  one.running += other.running;
  one.restarts += other.restarts;
  one.last.insert(one.last.end(), other.last.begin(), other.last.end());
  std::ranges::stable_sort(one.last, {}, &Restart::time);
  if (one.waiting.empty()) one.waiting = std::move(other.waiting);
  return one;
}

}  // namespace

std::string ProgressName(std::string_view job) { return StrCat(job, "-progress"); }

std::string PrintMetrics(const Progress& progress) {
  std::string line;
  const auto add = [&](std::string_view name, double value) {
    StrAppend(line, line.empty() ? "" : " ", name, "=", fmt::format("{:.6g}", value));
  };
  if (progress.loss) add("loss", *progress.loss);
  for (const tasks::Metric& metric : progress.metrics) add(metric.name, metric.value);
  return line;
}

std::string PrintProgress(const Progress& progress, const PodsReport& pods) {
  Object metrics;
  for (const tasks::Metric& metric : progress.metrics) metrics[metric.name] = NumberDocument(metric.value);
  Array restarts;
  for (const Restart& restart : pods.last) {
    restarts.push_back(Object{{"time", absl::FormatTime(restart.time, absl::UTCTimeZone())},
                              {"role", Name(restart.role)},
                              {"index", restart.index},
                              {"pod", restart.pod},
                              {"cause", restart.cause}});
  }
  Object members;  // as the view of a job names them
  for (const WorkerProgress& member : progress.members) {
    if (members.size() == kMostMembers) break;
    members[StrCat(Name(PodRole::kWorker), "-", member.index)] =
        Object{{"records", member.records}, {"version", member.version}};
  }
  Object object{
      {"phase", Name(progress.phase)},
      {"reason", progress.reason},
      {"epoch", progress.epoch},
      {"epochs", progress.epochs},
      {"records", progress.records},
      {"epochRecords", progress.epoch_records},
      {"totalRecords", progress.total_records},
      {"version", progress.version},
      {"metrics", std::move(metrics)},
      {"evaluated", progress.evaluated},
      {"workers", progress.workers},
      {"pservers", progress.pservers},
      {"wantedWorkers", pods.target},
      {"restarts", pods.restarts},
      {"lastRestarts", std::move(restarts)},
      {"members", std::move(members)},
      {"checkpoint", progress.checkpoint},
      {"waiting", !pods.waiting.empty() && progress.workers == 0 ? pods.waiting : progress.waiting}};
  if (progress.loss) object["loss"] = NumberDocument(*progress.loss);
  if (progress.nonfinite > 0) {
    object["nonFinite"] = progress.nonfinite;
    object["lastNonFinite"] = progress.last_nonfinite;
  }
  return PrintJson(object);
}

ProgressTeller::ProgressTeller(kube::Api& api, Master& master, std::vector<PodKeeper*> keepers,
                               Options options)
    : api_(api),
      master_(master),
      keepers_(std::move(keepers)),
      options_(std::move(options)),
      pace_(Clock::System().Steady()),
      thread_([this] { Run(); }) {}

ProgressTeller::~ProgressTeller() {
  {
    const MutexLock lock(mu_);
    stopping_ = true;
    changed_.SignalAll();
  }
  thread_.join();
  Tell(/*last=*/true);
}

void ProgressTeller::Run() {
  for (;;) {
    Tell(/*last=*/false);
    const SteadyTime deadline = Clock::System().Steady() + options_.every;
    const MutexLock lock(mu_);
    while (!stopping_ && changed_.WaitUntil(mu_, deadline)) {
    }
    if (stopping_) return;
  }
}

void ProgressTeller::Tell(bool last) {
  PodsReport pods;
  for (PodKeeper* const keeper : keepers_) pods = Together(std::move(pods), keeper->Report());
  const Progress progress = master_.GetProgress();
  LogMetrics(progress, last);
  std::string text = PrintProgress(progress, pods);
  if (text == told_) return;
  // Training does not wait for those who watch it.
  if (const absl::Status written = WriteProgress(api_, options_, text); !written.ok()) {
    log::Debug("progress could not be told", {{"error", written}});
    return;
  }
  told_ = std::move(text);
}

// The log is what the dashboard has its plots of: the ConfigMap has only how it is now.
void ProgressTeller::LogMetrics(const Progress& progress, bool last) {
  std::string line = PrintMetrics(progress);
  if (line.empty() || (progress.version == logged_version_ && line == logged_)) return;
  if (!pace_.Take(Clock::System().Steady()) && !last) return;
  log::Info(line,
            {{"epoch", progress.epoch}, {"records", progress.total_records}, {"version", progress.version}});
  logged_ = std::move(line);
  logged_version_ = progress.version;
}

absl::Status TellFailure(kube::Api& api, const TellerOptions& options, const std::string& reason) {
  Progress progress;
  progress.phase = Phase::kFailed;
  progress.reason = reason;
  return WriteProgress(api, options, PrintProgress(progress, {}));
}

}  // namespace trainyard::master
