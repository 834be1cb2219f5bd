#include "node/pod_worker.h"

#include <signal.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/log.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::node {
namespace {

// What no event announces (a folder of the machine that appears) is looked at again so often.
constexpr absl::Duration kSyncAgain = absl::Seconds(2);
constexpr absl::Duration kWriteAgain = absl::Milliseconds(500);

bool IsOwnCondition(std::string_view type) {
  return type == "Ready" || type == "ContainersReady" || type == "Initialized" || type == "PodScheduled";
}

std::int64_t VersionOf(const Document& object) {
  return ParseNumber<std::int64_t>(StringAt(object, {"metadata", "resourceVersion"})).value_or(0);
}

// Somebody else has changed what is ours to say.
bool Disagrees(const PodStatus& ours, const PodStatus& theirs) {
  if (ours.phase != theirs.phase) return true;
  return std::ranges::any_of(ours.conditions, [&](const Condition& condition) {
    const Condition* other = theirs.FindCondition(condition.type);
    return other == nullptr || other->status != condition.status;
  });
}

}  // namespace

PodWorker::PodWorker(NodeContext& context, Document pod, PodSpec spec, const std::string& saved_address)
    : context_(context),
      pod_(std::move(pod)),
      spec_(std::move(spec)),
      folder_(context.options.home, spec_.uid),
      record_(NewRecord(spec_)),
      api_status_(ParsePodStatus(pod_)),
      refusal_(FindRefusal(spec_, context.machine)) {
  status_ = api_status_;
  if (spec_.host_network) {
    address_ = kHostIp;
    return;
  }
  for (const std::string& known : {saved_address, api_status_.pod_ip}) {
    if (!known.empty() && context_.addresses.Take(spec_.uid, known)) {
      address_ = known;
      return;
    }
  }
  address_ = context_.addresses.Allocate(spec_.uid).value_or("");
}

PodWorker::~PodWorker() {
  if (timer_ != 0) context_.loop.Cancel(timer_);
}

PlanTime PodWorker::Now() const { return {.wall = context_.clock.Now(), .steady = context_.clock.Steady()}; }

PodFacts PodWorker::MakeFacts() const {
  PodFacts facts{.pod_ip = address_, .host_ip = std::string(kHostIp)};
  if (const auto node = context_.allocatable.find(spec_.node); node != context_.allocatable.end()) {
    facts.allocatable = node->second;
  }
  return facts;
}

void PodWorker::Tell(const EventNote& note) {
  if (context_.options.events == nullptr) return;
  EventObject object{.ns = spec_.ns, .name = spec_.name, .uid = spec_.uid, .node = spec_.node};
  if (!note.container.empty()) {
    const bool init = std::ranges::count(spec_.init_containers, note.container, &ContainerSpec::name) > 0;
    object.field_path = StrCat(init ? "spec.initContainers{" : "spec.containers{", note.container, "}");
  }
  context_.options.events->Record(object, note);
}

// ---- what is known

void PodWorker::Update(Document pod, PodSpec spec) {
  pod_ = std::move(pod);
  // What was started by the old spec stays as it is; all but the image and the end is immutable anyway.
  const bool described = spec.labels != spec_.labels || spec.annotations != spec_.annotations;
  spec_ = std::move(spec);
  api_status_ = ParsePodStatus(pod_);
  if (described && client_ != nullptr) (void)RefreshVolumes();  // they are files of a downward volume
  if (written_ && !writing_ && VersionOf(pod_) > written_version_ && Disagrees(*written_, api_status_)) {
    written_.reset();
    context_.write_soon(*this);
  }
  context_.plan_soon(*this);
}

void PodWorker::NoteGone() {
  gone_ = true;
  context_.plan_soon(*this);
}

void PodWorker::Freeze(bool frozen) {
  if (frozen_ == frozen) return;
  frozen_ = frozen;
  if (frozen) return;
  // Others have spoken for it meanwhile.
  written_.reset();
  context_.plan_soon(*this);
  context_.write_soon(*this);
}

void PodWorker::NoteObjects() {
  if (client_ != nullptr) {
    const absl::Status refreshed = RefreshVolumes();
    if (!refreshed.ok() && !absl::IsNotFound(refreshed)) {
      Tell({.warning = true, .reason = "FailedMount", .message = std::string(Message(refreshed))});
    }
  }
  context_.plan_soon(*this);
}

void PodWorker::NoteNames() {
  if (client_ != nullptr || start_ != nullptr) WriteHosts();
}

std::string PodWorker::FindVolumeProblem() {
  const SandboxState sandbox = record_.sandbox.state;
  if (sandbox != SandboxState::kNone && sandbox != SandboxState::kFailed) return "";
  if (const auto planned = PlanVolumes(spec_, context_.objects, MakeFacts(), context_.options.token);
      !planned.ok()) {
    return std::string(Message(planned.status()));
  }
  return std::string(Message(CheckHostPaths(spec_)));
}

std::map<std::string, Problem> PodWorker::FindProblems() {
  std::map<std::string, Problem> problems;
  if (status_.terminal()) return problems;
  for (const auto* list : {&spec_.init_containers, &spec_.containers}) {
    for (const ContainerSpec& container : *list) {
      const ContainerRecord& known = *record_.Find(spec_, container.name);
      if (known.active()) continue;
      auto plan = PlanLaunch(MakeLaunchInput(container, known.run.attempt + 1));
      if (auto* problem = std::get_if<Problem>(&plan)) problems.emplace(container.name, std::move(*problem));
    }
  }
  return problems;
}

PodView PodWorker::MakeView() {
  PodStatus status = status_;
  if (api_status_.terminal() && !status.terminal()) {
    status.phase = api_status_.phase;
    status.reason = api_status_.reason;
    status.message = api_status_.message;
  }
  // Conditions of others count for readiness gates.
  std::erase_if(status.conditions,
                [](const Condition& condition) { return !IsOwnCondition(condition.type); });
  for (const Condition& condition : api_status_.conditions) {
    if (!IsOwnCondition(condition.type)) status.conditions.push_back(condition);
  }
  std::string volume_problem = FindVolumeProblem();
  std::map<std::string, Problem> problems = FindProblems();
  return {.spec = spec_,
          .record = record_,
          .status = std::move(status),
          .gone = gone_,
          .refusal = refusal_,
          .volume_problem = std::move(volume_problem),
          .problems = std::move(problems),
          .host_ip = std::string(kHostIp),
          .pod_ip = address_,
          .back_off = context_.options.back_off};
}

void PodWorker::Reconcile() {
  if (frozen_ || over_) return;
  PodView view = MakeView();
  const bool waits = !view.volume_problem.empty() || !view.problems.empty();
  const PlanTime now = Now();
  PodPlan plan = PlanPod(std::move(view), now);
  record_ = std::move(plan.record);
  status_ = std::move(plan.status);
  planned_ = true;
  if (written_ != status_) context_.write_soon(*this);
  if (timer_ != 0) context_.loop.Cancel(timer_);
  timer_ = 0;
  const SteadyTime wake = waits ? std::min(plan.wake, now.steady + kSyncAgain) : plan.wake;
  if (wake != SteadyTime::Never()) {
    timer_ = context_.loop.At(wake, [this] {
      timer_ = 0;
      context_.plan_soon(*this);
    });
  }
  for (const EventNote& note : plan.events) Tell(note);
  for (const PodAction& action : plan.actions) {
    log::Debug("pod", {{"pod", StrCat(spec_.ns, "/", spec_.name)}, {"action", PrintAction(action)}});
    std::visit([this](const auto& one) { Do(one); }, action);
  }
}

// ---- writes

std::optional<kube::Operation> PodWorker::NextWrite() {
  if (frozen_ || over_ || writing_ || deleting_ || !planned_) return std::nullopt;
  const kube::ObjectKey key{.ns = spec_.ns, .name = spec_.name};
  if (!gone_ && written_ != status_) {
    writing_ = status_;
    // Conditions of others are theirs, and stay.
    Document patch = Object{{"metadata", Object{{"uid", spec_.uid}}}, {"status", ToDocument(status_)}};
    return kube::PatchOperation(kube::Resource::Pods(), key, PrintJson(patch),
                                {.type = kube::PatchType::kStrategic}, "status");
  }
  if (!finishing_) return std::nullopt;
  if (gone_) {
    over_ = true;
    return std::nullopt;
  }
  deleting_ = true;
  return kube::DeleteOperation(kube::Resource::Pods(), key, {.grace_seconds = 0, .uid = spec_.uid});
}

void PodWorker::NoteWritten(const absl::StatusOr<std::string>& answer) {
  const bool was_delete = std::exchange(deleting_, false);
  const std::optional<PodStatus> sent = std::exchange(writing_, std::nullopt);
  write_after_ = SteadyTime();
  if (answer.ok()) {
    if (was_delete) {
      over_ = true;
    } else {
      written_ = sent;
      const auto object = ParseJson(*answer);
      if (object.ok()) written_version_ = VersionOf(*object);
    }
  } else if (kube::IsNotFound(answer.status()) || (was_delete && kube::IsConflict(answer.status()))) {
    // It exists no more, or another has its name.
    gone_ = true;
    context_.plan_soon(*this);
  } else {
    log::Debug("cannot write a pod; trying again",
               {{"pod", StrCat(spec_.ns, "/", spec_.name)}, {"error", answer.status()}});
    write_after_ = context_.clock.Steady() + kWriteAgain;
  }
  context_.write_soon(*this);
}

}  // namespace trainyard::node
