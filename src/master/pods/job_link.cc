#include "master/pods/job_link.h"

#include <signal.h>

#include <algorithm>

#include <fmt/format.h>

#include "base/ids.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "kube/error.h"
#include "kube/pod_end.h"

namespace trainyard::master {
namespace {

constexpr std::string_view kManager = "trainyard-master";
constexpr std::string_view kJobLabel = "TrainingJobName";
constexpr std::string_view kGroupLabel = "TrainingJobReplicaName";
constexpr std::string_view kIndexLabel = "TrainingJobReplicaIndex";
constexpr std::size_t kMostMembers = 256;  // that a report lists one by one
constexpr int kMostFailures = 10;          // in a row, where the job names no limit
constexpr absl::Duration kBetweenTries = absl::Milliseconds(100);
constexpr int kSignalCode = 128;
constexpr double kRateMemory = 0.6;

absl::Status WriteProgress(kube::Api& api, const JobLink::Options& options, const Object& progress) {
  const Object object{
      {"apiVersion", options.resource.ApiVersion()},
      {"kind", options.resource.kind},
      {"metadata", Object{{"name", options.spec.name}, {"namespace", options.ns}, {"uid", options.uid}}},
      {"status", Object{{"progress", progress}}}};
  return api
      .Patch(options.resource, {options.ns, options.spec.name}, PrintJson(object),
             {.type = kube::PatchType::kApply, .field_manager = std::string(kManager), .force = true},
             "status")
      .status();
}

bool IsLive(const kube::CompactPod& pod) { return !pod.IsFinished() && !pod.IsBeingDeleted(); }

}  // namespace

std::string PrintMetrics(const Progress& progress) {
  std::string line;
  const auto add = [&](std::string_view name, double value) {
    StrAppend(line, line.empty() ? "" : " ", name, "=", fmt::format("{:.6g}", value));
  };
  if (progress.loss) add("loss", *progress.loss);
  for (const tasks::Metric& metric : progress.metrics) add(metric.name, metric.value);
  return line;
}

std::string Summarize(const Progress& progress) {
  std::string line;
  if (progress.phase == Phase::kTraining) {
    line = StrCat("epoch ", progress.epoch, "/", progress.epochs);
  } else {
    line = std::string(Name(progress.phase));
    line.front() = static_cast<char>(line.front() - 'A' + 'a');
  }
  if (progress.loss) line += fmt::format(", loss {:.4f}", *progress.loss);
  for (const tasks::Metric& metric : progress.metrics)
    line += fmt::format(", {} {:.4f}", metric.name, metric.value);
  return line;
}

std::optional<double> Rates::See(const std::string& who, std::int64_t records, SteadyTime now) {
  const auto [known, is_new] = known_.try_emplace(who, Known{.records = records, .at = now});
  Known& last = known->second;
  const double seconds = absl::ToDoubleSeconds(now - last.at);
  if (is_new || seconds <= 0) return last.rate;
  if (records < last.records) {  // another process has come, or the job went back to a checkpoint
    last.rate.reset();
  } else {
    const double rate = static_cast<double>(records - last.records) / seconds;
    last.rate = last.rate ? kRateMemory * *last.rate + (1 - kRateMemory) * rate : rate;
  }
  last.records = records;
  last.at = now;
  return last.rate;
}

Object PrintProgress(const Progress& progress, std::string_view waiting, Rates& rates, SteadyTime now) {
  Object metrics;
  for (const tasks::Metric& metric : progress.metrics) metrics[metric.name] = NumberDocument(metric.value);
  Object members;  // as the view of a job names them
  for (const WorkerProgress& member : progress.members) {
    if (members.size() == kMostMembers) break;
    const std::string name = StrCat(kWorkerGroup, "-", member.index);
    Object& one = members[name].emplace_object();
    one = {{"records", member.records}, {"version", member.version}};
    if (const auto rate = rates.See(name, member.records, now)) one["rate"] = *rate;
  }
  Object object{{"phase", Name(progress.phase)},
                {"summary", Summarize(progress)},
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
                {"members", std::move(members)},
                {"checkpoint", progress.checkpoint},
                {"waiting", progress.workers == 0 && !waiting.empty() ? waiting : progress.waiting}};
  if (const auto rate = rates.See("", progress.total_records, now)) object["rate"] = *rate;
  if (progress.loss) object["loss"] = NumberDocument(*progress.loss);
  if (progress.nonfinite > 0) {
    object["nonFinite"] = progress.nonfinite;
    object["lastNonFinite"] = progress.last_nonfinite;
  }
  return object;
}

Object StartPatch(const JobSpec& spec) {
  Object group{{"replicas", spec.workers}};
  if (spec.min_workers < spec.max_workers) {
    group["edlPolicy"] = "Auto";
    group["minReplicas"] = spec.min_workers;
    group["maxReplicas"] = spec.max_workers;
  }
  return {{"spec", Object{{"replicaSpecs", Object{{kWorkerGroup, std::move(group)}}}}}};
}

bool FailureCounts::IsOwnFault(const kube::CompactPod& pod) {
  if (pod.phase != kube::PodPhase::kFailed || !pod.reason.empty() ||
      pod.disruption.status == kube::ConditionStatus::kTrue)
    return false;
  for (const kube::ContainerStatus& container : pod.containers) {
    if (container.state.kind != kube::ContainerState::Kind::kTerminated || container.state.exit_code == 0)
      continue;
    // A program that takes too much memory will take it again.
    if (container.state.reason.view() == "OOMKilled") return true;
    const int signal = container.state.signal != 0 ? container.state.signal
                                                   : std::max(0, container.state.exit_code - kSignalCode);
    return signal != SIGKILL && signal != SIGTERM;
  }
  return false;
}

JobLink::JobLink(kube::Api& api, Master& master, Options options)
    : api_(api),
      master_(master),
      options_(std::move(options)),
      pods_(api, Clock::System(), IdSource::Random(),
            {.resource = kube::Resource::Pods(),
             .ns = options_.ns,
             .label_selector = StrCat(kJobLabel, "=", options_.spec.name)},
            [](std::string json) { return kube::ParsePod(std::move(json)); }),
      pace_(Clock::System().Steady()) {
  pods_.OnChange([this](const kube::Change<kube::CompactPod>& change) { Hear(change); });
  pods_.Start();
  thread_ = std::thread([this] { Run(); });
}

JobLink::~JobLink() {
  {
    const MutexLock lock(mu_);
    stopping_ = true;
    changed_.SignalAll();
  }
  thread_.join();
  pods_.Stop();
  Report(/*last=*/true);
}

void JobLink::Run() {
  for (;;) {
    if (!started_) {
      const absl::Status started = StartWorkers();
      started_ = started.ok();
      if (!started_) log::Warn("the workers could not be started", {{"error", started}});
    }
    ForgetFailures();
    Report(/*last=*/false);
    const SteadyTime deadline = Clock::System().Steady() + (started_ ? options_.every : kBetweenTries);
    const MutexLock lock(mu_);
    while (!stopping_ && changed_.WaitUntil(mu_, deadline)) {
    }
    if (stopping_) return;
  }
}

absl::Status JobLink::StartWorkers() {
  const kube::ObjectKey key{options_.ns, options_.spec.name};
  TY_ASSIGN_OR_RETURN(const std::string text, api_.Get(options_.resource, key));
  TY_ASSIGN_OR_RETURN(const Document job, ParseJson(text));
  const std::string_view uid = StringAt(job, {"metadata", "uid"});
  if (uid != options_.uid) {
    master_.Fail(StrCat("another job has taken the name ", options_.spec.name));
    return absl::OkStatus();
  }
  // A master before this one may have done it, and somebody may have changed the size since.
  if (IntAt(job, {"spec", "replicaSpecs", kWorkerGroup, "replicas"}).value_or(0) > 0) return absl::OkStatus();
  Object patch = StartPatch(options_.spec);
  patch["metadata"] = Object{{"uid", uid}};
  return api_.Patch(options_.resource, key, PrintJson(patch), {}).status();
}

FailureCounts::Member JobLink::MemberOf(const kube::CompactPod& pod) const {
  if (!pod.meta.controller || pod.meta.controller->uid.view() != options_.uid) return {};
  const std::string_view group = pod.meta.labels.Get(kGroupLabel);
  const auto index = ParseNumber<int>(pod.meta.labels.Get(kIndexLabel));
  if ((group != kWorkerGroup && group != kPserverGroup) || !index) return {};
  return {std::string(group), *index};
}

void JobLink::Hear(const kube::Change<kube::CompactPod>& change) {
  const auto& [before, after] = change;
  CountPods();
  if (after != nullptr && after->phase == kube::PodPhase::kFailed) HearOfEnd(*after);
  const bool gone = before != nullptr && (after == nullptr || after->meta.uid != before->meta.uid);
  if (!gone) return;
  HearOfEnd(*before);
  const MutexLock lock(mu_);
  ended_.erase(std::string(before->meta.uid));
}

void JobLink::HearOfEnd(const kube::CompactPod& pod) {
  const FailureCounts::Member member = MemberOf(pod);
  const auto& [group, index] = member;
  if (group.empty()) return;
  int failures = 0;
  {
    const MutexLock lock(mu_);
    if (!ended_.insert(std::string(pod.meta.uid)).second) return;
    if (FailureCounts::IsOwnFault(pod)) failures = failures_.Add(member);
  }
  if (group == kWorkerGroup) {
    master_.WorkerIsGone(index, std::string(pod.meta.name));
  } else {
    master_.PserverIsGone(index, std::string(pod.meta.name));
  }
  const int most = options_.spec.most_restarts > 0 ? options_.spec.most_restarts : kMostFailures;
  if (failures >= most) {
    master_.Fail(StrCat(group, " ", index, " failed ", failures, " times in a row, the last time ",
                        pod.meta.name, " ", kube::DescribeEnd(pod)));
  }
}

// How many pods are there that have not ended: the master waits for them at the end of the job.
void JobLink::CountPods() {
  std::map<std::string, int> live{{std::string(kWorkerGroup), 0}, {std::string(kPserverGroup), 0}};
  for (const auto& pod : pods_.cache().List()) {
    const FailureCounts::Member member = MemberOf(*pod);
    if (!member.first.empty() && IsLive(*pod)) ++live[member.first];
  }
  for (const auto& [group, count] : live) master_.ExpectPods(group, count);
}

void JobLink::ForgetFailures() {
  const std::vector<WorkerView> workers = master_.GetWorkers();
  const std::vector<int> pservers = master_.GetPservers();
  const MutexLock lock(mu_);
  for (const WorkerView& worker : workers) {
    if (worker.connected && worker.takes_part) failures_.Forget({std::string(kWorkerGroup), worker.index});
  }
  for (const int index : pservers) failures_.Forget({std::string(kPserverGroup), index});
}

std::string JobLink::FindWaiting() const {
  for (const auto& pod : pods_.cache().List()) {
    const auto [group, index] = MemberOf(*pod);
    if (group.empty() || !IsLive(*pod) || pod->phase != kube::PodPhase::kPending || pod->unscheduled.empty())
      continue;
    return StrCat("room for ", group, " ", index, ": ", pod->unscheduled.view());
  }
  return "";
}

void JobLink::Report(bool last) {
  const Progress progress = master_.GetProgress();
  LogMetrics(progress, last);
  Object report = PrintProgress(progress, FindWaiting(), rates_, Clock::System().Steady());
  if (report == reported_) return;
  // Training does not wait for those who watch it.
  if (const absl::Status written = WriteProgress(api_, options_, report); !written.ok()) {
    log::Debug("the progress could not be written", {{"error", written}});
    return;
  }
  reported_ = std::move(report);
}

// The log is what the dashboard plots: the status has only how it is now.
void JobLink::LogMetrics(const Progress& progress, bool last) {
  std::string line = PrintMetrics(progress);
  if (line.empty() || (progress.version == logged_version_ && line == logged_)) return;
  if (!pace_.Take(Clock::System().Steady()) && !last) return;
  log::Info(line,
            {{"epoch", progress.epoch}, {"records", progress.total_records}, {"version", progress.version}});
  logged_ = std::move(line);
  logged_version_ = progress.version;
}

absl::Status ReportFailure(kube::Api& api, const JobLink::Options& options, const std::string& reason) {
  Progress progress;
  progress.phase = Phase::kFailed;
  progress.reason = reason;
  Rates rates;
  return WriteProgress(api, options, PrintProgress(progress, "", rates, SteadyTime()));
}

}  // namespace trainyard::master
