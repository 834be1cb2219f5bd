#include "reconcile/controller.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/cleanup/cleanup.h"
#include "base/document.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "job/telling.h"

namespace trainyard::reconcile {
namespace {

// How long a job whose objects cannot be made waits at most before it is tried again: quota may be freed at
// any time, and nobody tells.
constexpr kube::BackoffPolicy kBackoff = {.first = absl::Milliseconds(100), .most = absl::Seconds(30)};
// A write that lost against another's: the watch will tell, and this is in case that it does not.
constexpr absl::Duration kAfterConflict = absl::Seconds(1);

std::string Join(const std::vector<std::string>& parts, std::size_t most) {
  std::string out;
  for (std::size_t i = 0; i < std::min(parts.size(), most); ++i) StrAppend(out, i == 0 ? "" : "; ", parts[i]);
  if (parts.size() > most) StrAppend(out, "; and ", parts.size() - most, " more");
  return out;
}

bool Creates(const job::JobPlan& plan) {
  return std::ranges::any_of(plan.actions(), [](const job::Action& action) {
    return std::holds_alternative<job::CreatePod>(action) ||
           std::holds_alternative<job::CreateService>(action) ||
           std::holds_alternative<job::WriteMembers>(action);
  });
}

// A pod behind a gate waits for what its gang waits for.
void TellGang(job::GangView gang, job::JobView& view) {
  for (job::PodView& pod : view.pods) {
    if (pod.gated && !gang.waits.empty()) pod.waits = gang.waits;
  }
  view.gang = std::move(gang);
}

// What follows a job's status that could not be stored, or is not as it was seen.
kube::Outcome OutcomeOf(const absl::Status& status) {
  if (kube::IsNotFound(status)) return kube::Done();  // it was deleted
  if (kube::IsConflict(status)) return kube::Again{kAfterConflict};
  return kube::Failed{.status = Annotate(status, "the status could not be stored")};
}

// "2 pods and 1 service"; one of them may be none.
std::string CountOf(int pods, int services) {
  std::string text;
  if (pods > 0) StrAppend(text, pods, pods == 1 ? " pod" : " pods");
  if (services > 0)
    StrAppend(text, pods > 0 ? " and " : "", services, services == 1 ? " service" : " services");
  return text;
}

}  // namespace

// One time of working: its queue and its threads.
struct Controller::Work {
  Work(Controller& controller, std::uint64_t seed)
      : queue(controller.clock_, IdSource(seed), kBackoff),
        runner(queue, controller.clock_,
               [&controller](const kube::ObjectKey& key) { return controller.Reconcile(key); },
               {.name = controller.kind_.resource().kind,
                .workers = controller.options_.workers,
                .on_pass = [&controller](const kube::PassReport& report) {
                  controller.meter_.Waited(report.late);
                  controller.meter_.Passed(report.took, std::holds_alternative<kube::Failed>(report.outcome));
                }}) {}
  kube::WorkQueue queue;
  kube::Runner runner;
};

Controller::Controller(kube::Api& api, Clock& clock, const Kind& kind, Surroundings& surroundings,
                       kube::EventRecorder& events, PassMeter& meter, ControllerOptions options)
    : api_(api),
      clock_(clock),
      kind_(kind),
      events_(events),
      meter_(meter),
      options_(std::move(options)),
      pacing_(options_.pacing),
      seeds_(options_.seed ? IdSource(*options_.seed) : IdSource::Random()),
      caches_(api, clock, kind, surroundings,
              {.ns = options_.ns, .seed = options_.seed, .gang = options_.policies.gang},
              [this](const kube::ObjectKey& key, Caches::News news) { Wake(key, news); }),
      historian_(api, clock, kind) {}

Controller::~Controller() { Stop(); }

void Controller::Start() { caches_.Start(); }

void Controller::Stop() {
  StopWork();
  caches_.Stop();
}

void Controller::StartWork() {
  auto work = std::make_shared<Work>(*this, seeds_.Next());
  {
    MutexLock lock(mu_);
    if (work_ != nullptr) return;
    work_ = work;
  }
  for (const auto& job : caches_.ListJobs()) work->queue.Add(job->meta.Key());
  work->runner.Start();
}

void Controller::StopWork() {
  std::shared_ptr<Work> work;
  {
    MutexLock lock(mu_);
    work = std::exchange(work_, nullptr);
  }
  if (work != nullptr) work->runner.Stop(kube::WorkQueue::Rest::kDrop);
}

bool Controller::Step() {
  std::shared_ptr<Work> work = CurrentWork();
  if (work == nullptr) {
    work = std::make_shared<Work>(*this, seeds_.Next());
    MutexLock lock(mu_);
    work_ = work;
  }
  const bool came = caches_.Step();
  if (!caches_.HasSynced()) return came;
  return work->runner.RunOne(clock_.Steady()) || came;
}

SteadyTime Controller::NextTime() {
  const std::shared_ptr<Work> work = CurrentWork();
  return work == nullptr ? SteadyTime::Never() : work->queue.NextTime();
}

std::shared_ptr<Controller::Work> Controller::CurrentWork() const {
  MutexLock lock(mu_);
  return work_;
}

void Controller::Wake(const kube::ObjectKey& key, Caches::News news) {
  if (news == Caches::News::kOwnWrite) {
    MutexLock lock(mu_);
    if (!behind_.contains(key)) return;
  }
  if (const auto work = CurrentWork()) work->queue.Add(key);
}

kube::WorkQueue::Counts Controller::CountQueue() const {
  const auto work = CurrentWork();
  return work == nullptr ? kube::WorkQueue::Counts() : work->queue.Count();
}

std::map<std::string, int> Controller::CountJobs() const {
  std::map<std::string, int> counts{{"New", 0}};
  for (const job::State state : job::StatesOf(kind_.telling()))
    counts[std::string(job::StateName(kind_.telling(), state))] = 0;
  for (const auto& job : caches_.ListJobs()) {
    const job::Condition* current = job->status.Current();
    ++counts[current == nullptr ? "New" : std::string(job::StateName(kind_.telling(), current->type))];
  }
  return counts;
}

kube::Pass Controller::Reconcile(const kube::ObjectKey& key) {
  const auto job = caches_.FindJob(key);
  if (job == nullptr) {
    pacing_.Forget(key);
    MutexLock lock(mu_);
    behind_.erase(key);
    return {.outcome = kube::Done()};
  }
  {
    MutexLock lock(mu_);
    behind_.insert(key);  // before it is asked: what comes in between must not be missed
  }
  const auto verdict = caches_.Check(key);
  for (const std::string& write : verdict.given_up) {
    log::Warn("a write was not seen in time", {{"job", key.Str()}, {"write", write}});
  }
  if (!verdict.caught_up) return {.outcome = kube::Again{verdict.wait}};
  {
    MutexLock lock(mu_);
    behind_.erase(key);
  }
  return PassOver(key, *job);
}

kube::Pass Controller::PassOver(const kube::ObjectKey& key, const CompactJob& job) {
  const absl::Time now = clock_.Now();
  job::JobView view = caches_.Observe(job);
  view.policies = options_.policies;
  if (options_.find_targets) view.targets = options_.find_targets(view.uid);
  if (options_.find_gang) TellGang(options_.find_gang(view.uid), view);
  job::JobPlan plan = Plan(view, now);
  const bool lives = !job.status.IsFinished() && !view.leaving;
  const bool due = lives && pacing_.TakeRecord(key, now);
  const Urgency urgency = UrgencyOf(job.status, plan.status);
  Stored stored{.version = job.meta.resource_version, .status = job.status};
  const std::vector<kube::GonePod> gone = historian_.Collect(view, plan, caches_, now);
  const absl::StatusOr<ActResult> carried = CarryOut(job, plan, urgency, now, stored);
  historian_.Store(job, gone);
  if (!carried.ok()) return {.outcome = OutcomeOf(carried.status())};
  const ActResult& acted = *carried;
  kube::Pass pass{.outcome = kube::Done(), .actions = Join(acted.done, 3)};
  if (!acted.ok()) {
    view.trouble = Join(acted.errors, 2);
    plan = Plan(view, now);
  }
  Count(plan, acted);
  const bool changed = !(plan.status == stored.status);
  const absl::Duration hold = changed && acted.ok() ? pacing_.Hold(key, urgency, now) : absl::ZeroDuration();
  if ((changed && hold <= absl::ZeroDuration()) || due) {
    const absl::Status status = Store(job, plan.status, now, stored);
    if (!status.ok()) {
      pass.outcome = OutcomeOf(status);
      return pass;
    }
  }
  if (hold > absl::ZeroDuration()) plan.events.clear();  // told when it is stored
  Tell(job, plan, acted);
  if (!acted.ok()) {
    pass.outcome = kube::Failed{.status = absl::UnavailableError(view.trouble)};
    return pass;
  }
  absl::Duration next = plan.wake_after.value_or(absl::InfiniteDuration());
  if (hold > absl::ZeroDuration()) next = std::min(next, hold);
  if (lives && !plan.status.IsFinished()) {
    const bool quiet = plan.status == job.status && plan.actions().empty();
    next = std::min(next, pacing_.NextRound(key, now, !quiet));
  }
  if (next < absl::InfiniteDuration()) pass.outcome = kube::Again{next};
  return pass;
}

absl::StatusOr<ActResult> Controller::CarryOut(const CompactJob& job, const job::JobPlan& plan,
                                               Urgency urgency, absl::Time now, Stored& stored) {
  if (!Creates(plan)) return Act(api_, caches_, kind_, job, plan.actions());
  pacing_.BeginCreating();
  const absl::Cleanup created = [this] { pacing_.EndCreating(); };
  // Watches may be behind each other: pods that are seen to be gone may have gone because the job has ended,
  // which is not seen yet. What is made is made for a job that is known to be as it is seen.
  TY_RETURN_IF_ERROR(urgency == Urgency::kNow ? Store(job, plan.status, now, stored) : CheckFresh(job));
  return Act(api_, caches_, kind_, job, plan.actions());
}

job::JobPlan Controller::Plan(const job::JobView& view, absl::Time now) {
  const SteadyTime begun = clock_.Steady();
  job::JobPlan plan = job::PlanJob(view, now);
  meter_.Planned(clock_.Steady() - begun);
  return plan;
}

absl::Status Controller::CheckFresh(const CompactJob& job) {
  TY_ASSIGN_OR_RETURN(const kube::ObjectMeta meta, ReadMeta(api_, kind_.resource(), job.meta.Key()));
  if (meta.uid == job.meta.uid && meta.resource_version == job.meta.resource_version) return absl::OkStatus();
  return kube::ToStatus({.code = 409, .reason = "Conflict", .message = "the job has changed"});
}

absl::Status Controller::Store(const CompactJob& job, job::JobStatus status, absl::Time now, Stored& stored) {
  const kube::ObjectKey key = job.meta.Key();
  stored.status = status;
  status.last_reconcile_time = absl::FromUnixSeconds(absl::ToUnixSeconds(now));
  const Object object{{"apiVersion", kind_.resource().ApiVersion()},
                      {"kind", kind_.resource().kind},
                      {"metadata", Object{{"name", key.name},
                                          {"namespace", key.ns},
                                          {"uid", job.meta.uid},
                                          {"resourceVersion", stored.version}}},
                      {"status", kind_.PrintStatus(job, status)}};
  TY_ASSIGN_OR_RETURN(
      std::string answer,
      api_.Do(kube::ForMetadata(kube::UpdateOperation(kind_.resource(), key, PrintJson(object), "status"))));
  TY_ASSIGN_OR_RETURN(kube::ObjectMeta meta, kube::ParseObjectMeta(std::move(answer)));
  caches_.job_writes().ExpectVersion(key, key, meta.resource_version);
  stored.version = std::move(meta.resource_version);
  pacing_.NoteStored(key, now);
  return absl::OkStatus();
}

void Controller::Tell(const CompactJob& job, const job::JobPlan& plan, const ActResult& acted) {
  const kube::ObjectReference reference{.api_version = kind_.resource().ApiVersion(),
                                        .kind = kind_.resource().kind,
                                        .key = job.meta.Key(),
                                        .uid = job.meta.uid,
                                        .resource_version = job.meta.resource_version};
  const auto tell = [&](bool warning, std::string_view reason, std::string_view message) {
    events_.Record(reference, warning ? kube::EventType::kWarning : kube::EventType::kNormal, reason,
                   message);
  };
  // One line for all of a pass: a thousand pods are no thousand events.
  if (acted.pods_created + acted.services_created > 0) {
    tell(false, "SuccessfulCreate", StrCat("made ", CountOf(acted.pods_created, acted.services_created)));
  }
  if (acted.pods_deleted + acted.services_deleted > 0) {
    tell(false, "SuccessfulDelete", StrCat("deleted ", CountOf(acted.pods_deleted, acted.services_deleted)));
  }
  for (const std::string& error : acted.errors) tell(true, "FailedCreate", error);
  for (const job::Event& event : plan.events) tell(event.warning, event.reason, event.message);
}

void Controller::Count(const job::JobPlan& plan, const ActResult& acted) {
  meter_.PodsCreated(acted.pods_created);
  meter_.PodsDeleted(acted.pods_deleted);
  meter_.ServicesCreated(acted.services_created);
  meter_.ServicesDeleted(acted.services_deleted);
  for (const job::Restart& restart : plan.restarts) meter_.Restarted(restart.role, restart.cause);
}

}  // namespace trainyard::reconcile
