#include "master/pods/job_link.h"

#include <signal.h>

#include <algorithm>
#include <iterator>
#include <set>

#include <fmt/format.h>

#include "base/ids.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "job/job_status.h"
#include "job/names.h"
#include "kube/error.h"
#include "kube/pod_end.h"

namespace trainyard::master {
namespace {

constexpr std::string_view kManager = "trainyard-master";
constexpr std::size_t kMostMembers = 256;  // that a report lists one by one
constexpr int kMostFailures = 10;          // in a row, where the job names no limit
constexpr absl::Duration kBetweenTries = absl::Milliseconds(100);
constexpr int kSignalCode = 128;
constexpr double kRateMemory = 0.6;

absl::Status WriteProgress(kube::Api& api, const JobLink::Options& options, const job::Progress& progress) {
  const Object object{
      {"apiVersion", options.resource.ApiVersion()},
      {"kind", options.resource.kind},
      {"metadata", Object{{"name", options.spec.name}, {"namespace", options.ns}, {"uid", options.uid}}},
      {"status", Object{{"progress", job::PrintProgress(progress)}}}};
  return api
      .Patch(options.resource, {options.ns, options.spec.name}, PrintJson(object),
             {.type = kube::PatchType::kApply, .field_manager = std::string(kManager), .force = true},
             "status")
      .status();
}

bool IsLive(const kube::CompactPod& pod) { return !pod.IsFinished() && !pod.IsBeingDeleted(); }
bool HasFailed(const kube::CompactPod& pod) { return pod.phase == kube::PodPhase::kFailed; }

}  // namespace

std::string PrintMetrics(const job::Progress& progress) {
  std::string line;
  const auto add = [&](std::string_view name, double value) {
    StrAppend(line, line.empty() ? "" : " ", name, "=", fmt::format("{:.6g}", value));
  };
  if (progress.loss) add("loss", *progress.loss);
  for (const job::Metric& metric : progress.metrics) add(metric.name, metric.value);
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

void CompleteProgress(job::Progress& progress, std::string_view waiting, Rates& rates, SteadyTime now) {
  while (progress.members.size() > kMostMembers) progress.members.erase(std::prev(progress.members.end()));
  for (auto& [id, member] : progress.members) member.rate = rates.See(Print(id), member.records, now);
  progress.rate = rates.See("", progress.total_records, now);
  if (progress.workers == 0 && !waiting.empty()) progress.waiting = waiting;
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

absl::StatusOr<kube::CompactPod> ParseMemberPod(std::string json) {
  return kube::ParsePod(std::move(json), {.annotations = {std::string(job::kAttemptAnnotation)}});
}

int FailureCounts::AttemptOf(const kube::CompactPod& pod) {
  const int attempt = ParseNumber<int>(pod.meta.annotations.Get(job::kAttemptAnnotation)).value_or(0);
  return std::clamp(attempt, 0, job::kMostAttempts);
}

int FailureCounts::SettledOf(const Member& member, int attempt) const {
  const auto group = settled_.find(member.first);
  if (group == settled_.end()) return -1;
  const auto known = group->second.find(member.second);
  return known == group->second.end() || known->second > attempt ? -1 : known->second;
}

void FailureCounts::Settle(const Member& member, int attempt) {
  if (attempt >= 0) settled_[member.first][member.second] = attempt;
}

void FailureCounts::Excuse(const Member& member, int attempt) {
  Settle(member, std::min(SettledOf(member, attempt) + 1, attempt));
}

JobLink::JobLink(kube::Api& api, Clock& clock, Master& master, Options options)
    : api_(api),
      clock_(clock),
      master_(master),
      options_(std::move(options)),
      pods_(api, clock, options_.seed ? IdSource(*options_.seed) : IdSource::Random(),
            {.resource = kube::Resource::Pods(),
             .ns = options_.ns,
             .label_selector = StrCat(job::kJobNameLabel, "=", options_.spec.name)},
            ParseMemberPod),
      pace_(clock.Steady()),
      next_(clock.Steady()),
      alarm_(clock.NewAlarm()) {
  pods_.OnChange([this](const kube::Change<kube::CompactPod>& change) { Hear(change); });
}

void JobLink::Start() {
  threaded_ = true;
  thread_ = std::thread([this] { Run(); });
}

bool JobLink::Step() {
  const bool came = read_ && pods_.StepNow();
  const bool due = clock_.Steady() >= next_;
  if (due) next_ = Look();
  return due || came;
}

JobLink::~JobLink() {
  {
    const MutexLock lock(mu_);
    stopping_ = true;
  }
  alarm_->Notify();
  if (thread_.joinable()) thread_.join();
  Report(/*last=*/true);
  pods_.Stop();
}

void JobLink::Run() {
  for (;;) {
    alarm_->WaitUntil(Look());
    const MutexLock lock(mu_);
    if (stopping_) return;
  }
}

absl::StatusOr<Document> JobLink::ReadJob() {
  TY_ASSIGN_OR_RETURN(const std::string text, api_.Get(options_.resource, {options_.ns, options_.spec.name}));
  TY_ASSIGN_OR_RETURN(Document job, ParseJson(text));
  if (read_) return job;
  const Document* const progress = Find(job, {"status", "progress"});
  if (progress != nullptr && StringAt(job, {"metadata", "uid"}) == options_.uid) {
    const MutexLock lock(mu_);
    failures_ = FailureCounts(job::ParseProgress(job::Reporter::kMaster, *progress).settled);
  }
  read_ = true;
  if (threaded_) pods_.Start();
  return job;
}

SteadyTime JobLink::Look() {
  if (!started_) {
    const absl::Status started = StartWorkers();
    started_ = started.ok();
    if (!started_) log::Warn("the workers could not be started", {{"error", started}});
  }
  SettleAttempts();
  ReplaceLost();
  Report(/*last=*/false);
  return clock_.Steady() + (started_ ? options_.every : kBetweenTries);
}

absl::Status JobLink::StartWorkers() {
  TY_ASSIGN_OR_RETURN(const Document job, ReadJob());
  const std::string_view uid = StringAt(job, {"metadata", "uid"});
  if (uid != options_.uid) {
    master_.Fail(StrCat("another job has taken the name ", options_.spec.name));
    return absl::OkStatus();
  }
  // A master before this one may have done it, and somebody may have changed the size since.
  if (IntAt(job, {"spec", "replicaSpecs", kWorkerGroup, "replicas"}).value_or(0) > 0) return absl::OkStatus();
  Object patch = StartPatch(options_.spec);
  patch["metadata"] = Object{{"uid", uid}};
  return api_.Patch(options_.resource, {options_.ns, options_.spec.name}, PrintJson(patch), {}).status();
}

FailureCounts::Member JobLink::MemberOf(const kube::CompactPod& pod) const {
  if (!pod.meta.controller || pod.meta.controller->uid.view() != options_.uid) return {};
  const std::string_view group = pod.meta.labels.Get(job::kRoleLabel);
  const auto index = ParseNumber<int>(pod.meta.labels.Get(job::kIndexLabel));
  if ((group != kWorkerGroup && group != kPserverGroup) || !index) return {};
  return {std::string(group), *index};
}

void JobLink::Hear(const kube::Change<kube::CompactPod>& change) {
  const auto& [before, after] = change;
  CountPods();
  const bool gone = before != nullptr && (after == nullptr || after->meta.uid != before->meta.uid);
  const bool known = before != nullptr && HasFailed(*before);
  if (gone && !known) HearOfEnd(*before);
  if (after != nullptr && HasFailed(*after) && (gone || !known)) HearOfEnd(*after);
}

void JobLink::HearOfEnd(const kube::CompactPod& pod) {
  const FailureCounts::Member member = MemberOf(pod);
  const auto& [group, index] = member;
  if (group.empty()) return;
  const int attempt = FailureCounts::AttemptOf(pod);
  int failures = 0;
  {
    const MutexLock lock(mu_);
    if (FailureCounts::IsOwnFault(pod)) {
      failures = failures_.InARow(member, attempt);
    } else {
      failures_.Excuse(member, attempt);
    }
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

void JobLink::SettleAttempts() {
  std::set<FailureCounts::Member> working;
  for (const WorkerView& worker : master_.GetWorkers()) {
    if (worker.connected && worker.takes_part) working.emplace(kWorkerGroup, worker.index);
  }
  for (const PserverView& pserver : master_.GetPservers()) {
    if (pserver.works) working.emplace(kPserverGroup, pserver.index);
  }
  for (const auto& pod : pods_.cache().List()) {
    const FailureCounts::Member member = MemberOf(*pod);
    if (!IsLive(*pod) || !working.contains(member)) continue;
    const MutexLock lock(mu_);
    failures_.Settle(member, FailureCounts::AttemptOf(*pod) - 1);
  }
}

// While there is work. Before and after it, processes may be gone for good reasons.
void JobLink::ReplaceLost() {
  const Phase phase = master_.GetProgress().phase;
  if (phase != Phase::kTraining && phase != Phase::kEvaluating && phase != Phase::kPredicting) return;
  std::map<FailureCounts::Member, std::int64_t> streams;
  for (const WorkerView& worker : master_.GetWorkers()) {
    if (worker.connected) streams[{std::string(kWorkerGroup), worker.index}] = worker.incarnation;
  }
  for (const PserverView& pserver : master_.GetPservers())
    streams[{std::string(kPserverGroup), pserver.index}] = pserver.incarnation;
  std::vector<PodSight> sights;
  std::map<std::string, std::string> names;  // by uid
  for (const auto& pod : pods_.cache().List()) {
    const FailureCounts::Member member = MemberOf(*pod);
    if (member.first.empty() || !IsLive(*pod) || pod->phase != kube::PodPhase::kRunning) continue;
    const auto stream = streams.find(member);
    sights.push_back({.name = pod->meta.name,
                      .uid = pod->meta.uid,
                      .incarnation = stream == streams.end() ? 0 : stream->second,
                      .pserver = member.first == kPserverGroup});
    names.emplace(pod->meta.uid, pod->meta.name);
  }
  for (const std::string& uid : streams_.Look(sights, clock_.Steady())) {
    const std::string& pod = names.at(uid);
    log::Warn("asks for another pod, as this one runs and its process does not answer", {{"pod", pod}});
    const absl::Status asked = api_.Do(kube::EvictOperation({options_.ns, pod}, uid)).status();
    if (!asked.ok()) log::Warn("the pod is not replaced", {{"pod", pod}, {"error", asked}});
  }
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
  job::Progress report = master_.GetProgress();
  LogMetrics(report, last);
  CompleteProgress(report, FindWaiting(), rates_, clock_.Steady());
  if (!read_ && !ReadJob().ok()) return;  // what the master before this one settled must not be lost
  {
    const MutexLock lock(mu_);
    report.settled = failures_.settled();
  }
  if (report == reported_) return;
  // Training does not wait for those who watch it.
  if (const absl::Status written = WriteProgress(api_, options_, report); !written.ok()) {
    log::Debug("the progress could not be written", {{"error", written}});
    return;
  }
  reported_ = std::move(report);
}

// The log is what the dashboard plots: the status has only how it is now.
void JobLink::LogMetrics(const job::Progress& progress, bool last) {
  std::string line = PrintMetrics(progress);
  if (line.empty() || (progress.version == logged_version_ && line == logged_)) return;
  if (!pace_.Take(clock_.Steady()) && !last) return;
  log::Info(line,
            {{"epoch", progress.epoch}, {"records", progress.total_records}, {"version", progress.version}});
  logged_ = std::move(line);
  logged_version_ = progress.version;
}

absl::Status ReportFailure(kube::Api& api, const JobLink::Options& options, const std::string& reason) {
  return WriteProgress(api, options, {.phase = Phase::kFailed, .reason = reason});
}

}  // namespace trainyard::master
