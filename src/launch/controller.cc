#include "launch/controller.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/access.h"
#include "base/base64.h"
#include "base/document.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "kube/error.h"
#include "kube/pod_end.h"

namespace trainyard::launch {
namespace {

constexpr absl::Duration kUntilSynced = absl::Milliseconds(20);
constexpr absl::Duration kDoubleCheck = absl::Seconds(30);
constexpr int kCancelTries = 5;
constexpr absl::Duration kSeenWithin = absl::Seconds(2);
constexpr absl::Duration kBetweenWrites = absl::Milliseconds(300);
constexpr std::size_t kMostReason = 500;

kube::ObjectReference Reference(const StoredTask& task) {
  return {.api_version = "v1", .kind = "ConfigMap", .key = task.meta.Key(), .uid = task.meta.uid};
}

kube::ObjectKey KeyOfPod(const kube::CompactPod& pod) {
  return {std::string(pod.meta.ns.view()), ConfigName(pod.meta.labels.Get(kTaskLabel))};
}

SeenPod Seen(const kube::CompactPod& pod, int launch) {
  SeenPod seen{.name = pod.meta.name,
               .uid = pod.meta.uid,
               .launch = launch,
               .ip = pod.pod_ip,
               .node = std::string(pod.node.view()),
               .running = pod.phase == kube::PodPhase::kRunning,
               .ended = pod.IsFinished() || pod.IsBeingDeleted(),
               .deleting = pod.IsBeingDeleted() && !pod.IsFinished()};
  if (pod.IsFinished()) {
    seen.cause = kube::DescribeEnd(pod);
  } else if (pod.IsBeingDeleted()) {
    seen.cause = "was deleted";
  }
  for (const auto* const containers : {&pod.init_containers, &pod.containers}) {
    for (const kube::ContainerStatus& container : *containers) {
      const bool stuck = container.state.kind == kube::ContainerState::Kind::kWaiting &&
                         !container.state.reason.empty() &&
                         container.state.reason.view() != "PodInitializing" &&
                         container.state.reason.view() != "ContainerCreating";
      if (stuck && seen.waiting.empty())
        seen.waiting = StrCat(container.state.reason.view(), container.state.message.empty() ? "" : ": ",
                              container.state.message);
    }
  }
  if (pod.phase == kube::PodPhase::kPending && pod.scheduled.status == kube::ConditionStatus::kFalse)
    seen.unscheduled = pod.unscheduled.empty() ? "no node has room" : std::string(pod.unscheduled.view());
  return seen;
}

}  // namespace

absl::StatusOr<StoredTask> ParseStoredTask(std::string json) {
  TY_ASSIGN_OR_RETURN(const Document object, ParseJson(json));
  StoredTask task;
  TY_ASSIGN_OR_RETURN(task.meta, kube::ParseObjectMeta(std::move(json)));
  const auto spec = ParseTaskSpec(StringAt(object, {"data", kSpecKey}));
  const auto status = ParseTaskStatus(StringAt(object, {"data", kStatusKey}));
  if (spec.ok()) task.spec = *spec;
  if (status.ok()) task.status = *status;
  const absl::Status valid = spec.ok() ? Validate(*spec) : spec.status();  // anybody may edit a ConfigMap
  if (!valid.ok() || !status.ok()) task.wrong = Message(valid.ok() ? status.status() : valid);
  return task;
}

Controller::Controller(kube::Api& api, HttpCalls& calls, ControllerOptions options)
    : api_(api),
      calls_(calls),
      options_(std::move(options)),
      queue_(Clock::System(), IdSource::Random()),
      events_(api, Clock::System(), IdSource::Random(), {.component = "trainyard-launcher"}),
      history_(api.transport(), Clock::System()),
      agents_(calls, [this](const kube::ObjectKey& key) { queue_.Add(key); }),
      tasks_(api, Clock::System(), IdSource::Random(),
             {.resource = kube::Resource::ConfigMaps(),
              .ns = options_.ns,
              .label_selector = std::string(kTaskLabel)},
             ParseStoredTask),
      pods_(
          api, Clock::System(), IdSource::Random(),
          {.resource = kube::Resource::Pods(), .ns = options_.ns, .label_selector = std::string(kTaskLabel)},
          [](std::string json) { return kube::ParsePod(std::move(json)); }),
      pods_by_task_(pods_.AddIndex(kube::IndexByLabel<kube::CompactPod>(std::string(kTaskLabel)))),
      runner_(queue_, Clock::System(), [this](const kube::ObjectKey& key) { return PassOver(key); },
              {.name = "tasks", .workers = options_.workers}) {
  tasks_.OnChange([this](const kube::Change<StoredTask>& change) { Changed(change.Any().meta.Key()); });
  pods_.OnChange([this](const kube::Change<kube::CompactPod>& change) { Changed(KeyOfPod(change.Any())); });
}

Controller::~Controller() {
  tasks_.Stop();
  pods_.Stop();
  runner_.Stop(kube::WorkQueue::Rest::kDrop);
  events_.Stop();
}

void Controller::Start() {
  events_.Start();
  tasks_.Start();
  pods_.Start();
  runner_.Start();
}

absl::Status Controller::WaitForSync(absl::Duration timeout) {
  TY_RETURN_IF_ERROR(tasks_.WaitForSync(timeout));
  return pods_.WaitForSync(timeout);
}

void Controller::Changed(const kube::ObjectKey& key) {
  queue_.Add(key);
  const MutexLock lock(mu_);
  ++changes_;
  changed_.SignalAll();
}

std::uint64_t Controller::AwaitChange(std::uint64_t seen, absl::Duration timeout) {
  const SteadyTime deadline = Clock::System().Steady() + timeout;
  const MutexLock lock(mu_);
  while (changes_ == seen && changed_.WaitUntil(mu_, deadline)) {
  }
  return changes_;
}

// ---- What clients want

absl::Status Controller::Create(const TaskSpec& spec) {
  TY_RETURN_IF_ERROR(Validate(spec));
  TaskStatus status{.reason = "it is new", .since = Clock::System().Now(), .created = Clock::System().Now()};
  const absl::Status made =
      api_.Create(kube::Resource::ConfigMaps(), options_.ns, PrintJson(TaskConfig(options_.ns, spec, status)))
          .status();
  if (kube::IsAlreadyExists(made))
    return absl::AlreadyExistsError(StrCat("there is a task ", spec.name,
                                           " already: choose another --task, or `trainyard launch delete ",
                                           spec.name, "`"));
  TY_RETURN_IF_ERROR(made);
  // Whoever made it may ask for it at once.
  const SteadyTime deadline = Clock::System().Steady() + kSeenWithin;
  for (std::uint64_t seen = 0; Find(spec.name) == nullptr && Clock::System().Steady() < deadline;)
    seen = AwaitChange(seen, absl::Milliseconds(100));
  return absl::OkStatus();
}

absl::Status Controller::Cancel(const std::string& name) {
  for (int i = 0; i < kCancelTries; ++i) {
    TY_ASSIGN_OR_RETURN(std::string text,
                        api_.Get(kube::Resource::ConfigMaps(), {options_.ns, ConfigName(name)}));
    TY_ASSIGN_OR_RETURN(StoredTask task, ParseStoredTask(std::move(text)));
    if (IsOver(task.status.phase))
      return absl::FailedPreconditionError(
          StrCat("task ", name, " has ended already: it is ", Name(task.status.phase)));
    if (task.status.cancel) return absl::OkStatus();
    TaskStatus status = task.status;
    status.cancel = true;
    const absl::Status stored = Write(task.meta.Key(), task, status).status();
    if (!kube::IsConflict(stored)) return stored;
  }
  return absl::AbortedError(StrCat("task ", name, " changes all the time: try again"));
}

absl::Status Controller::Delete(const std::string& name) {
  return api_.Delete(kube::Resource::ConfigMaps(), {options_.ns, ConfigName(name)},
                     {.propagation = kube::Propagation::kBackground});
}

std::shared_ptr<const StoredTask> Controller::Find(const std::string& name) const {
  return tasks_.cache().Get({options_.ns, ConfigName(name)});
}

std::vector<std::shared_ptr<const StoredTask>> Controller::List() const { return tasks_.cache().List(); }

std::vector<std::shared_ptr<const kube::CompactPod>> Controller::PodsOf(const std::string& name) const {
  std::vector<std::shared_ptr<const kube::CompactPod>> pods = pods_.cache().ListBy(pods_by_task_, name);
  std::ranges::stable_sort(pods, {}, [](const auto& pod) { return pod->meta.created; });
  return pods;
}

// ---- A pass

kube::Pass Controller::PassOver(const kube::ObjectKey& key) {
  const std::shared_ptr<const StoredTask> cached = tasks_.cache().Get(key);
  // Nobody tells when the pods are all known: the last of them is told of a moment before.
  if (!tasks_.HasSynced() || !pods_.HasSynced()) return {kube::Again{kUntilSynced}};
  if (cached == nullptr || cached->meta.deletion_time) {
    if (cached == nullptr) ForgetPods(key);
    return {kube::Done()};
  }
  StoredTask task = *cached;
  {
    const MutexLock lock(mu_);
    const auto written = written_.find(key);
    if (written != written_.end() && written->second.older.contains(cached->meta.resource_version)) {
      task.meta.resource_version = written->second.version;
      task.status = written->second.status;
    } else if (written != written_.end()) {
      written_.erase(written);
    }
  }
  if (!task.wrong.empty())
    return {kube::Failed{absl::InvalidArgumentError(StrCat("task ", key.name, ": ", task.wrong)), true}};
  return Carry(key, task);
}

kube::Pass Controller::Carry(const kube::ObjectKey& key, const StoredTask& task) {
  if (!IsOver(task.status.phase) || HasLivePods(task)) {
    if (const absl::Status ensured = EnsureObjects(task); !ensured.ok())
      return GiveReason(key, task, ensured);
  }
  const TaskPlan plan = PlanTask(Observe(task), Clock::System().Now());
  std::string actions;
  for (const Action& action : plan.actions) StrAppend(actions, actions.empty() ? "" : ", ", Print(action));
  if (plan.store) {
    if (const absl::Status stored = Store(key, task, plan.status); !stored.ok())
      return {kube::Failed{stored}};
    Tell(task, plan.status);
    return {kube::Again{absl::ZeroDuration()}, "store"};
  }
  if (const absl::Status acted = Act(task, plan.actions); !acted.ok()) return GiveReason(key, task, acted);
  const absl::Duration hold = HoldBack(key, task.status, plan.status);
  if (!(plan.status == task.status) && hold > absl::ZeroDuration()) return {kube::Again{hold}, actions};
  if (!(plan.status == task.status)) {
    if (const absl::Status stored = Store(key, task, plan.status); !stored.ok())
      return {kube::Failed{stored}, actions};
    Tell(task, plan.status);
  }
  if (IsOver(task.status.phase) && plan.actions.empty() && !HasLivePods(task)) {
    ForgetPods(key);
    return {kube::Done()};
  }
  return {kube::Again{std::min(plan.wake_after, kDoubleCheck)}, actions};
}

kube::Pass Controller::GiveReason(const kube::ObjectKey& key, const StoredTask& task,
                                  const absl::Status& failure) {
  TaskStatus status = task.status;
  status.reason = Shortened(Message(failure), kMostReason);
  // What the server finds wrong with a pod it will always find wrong.
  const bool hopeless = absl::IsInvalidArgument(failure) && !IsOver(status.phase);
  if (hopeless) {
    status.phase = Phase::kFailed;
    status.ended = Clock::System().Now();
  }
  if (!(status == task.status) && HoldBack(key, task.status, status) <= absl::ZeroDuration()) {
    if (Store(key, task, status).ok()) Tell(task, status);
  }
  return {kube::Failed{failure}};
}

bool Controller::HasLivePods(const StoredTask& task) const {
  return std::ranges::any_of(PodsOf(task.spec.name), [](const auto& pod) { return !pod->IsFinished(); });
}

// What is only for people to read is not stored while much is happening.
absl::Duration Controller::HoldBack(const kube::ObjectKey& key, const TaskStatus& before,
                                    const TaskStatus& after) {
  if (before.phase != after.phase) return absl::ZeroDuration();
  const MutexLock lock(mu_);
  const auto stored = stored_.find(key);
  if (stored == stored_.end()) return absl::ZeroDuration();
  return stored->second + kBetweenWrites - Clock::System().Steady();
}

TaskView Controller::Observe(const StoredTask& task) {
  TaskView view{.spec = task.spec, .status = task.status};
  const std::string token = TokenOf(task);
  std::set<std::string> present;  // uids of the pods that members have
  for (const auto& [member, known] : task.status.members) {
    const auto pod = pods_.cache().Get({options_.ns, PodName(task.spec.name, member, known.launch)});
    // One of a task of the same name that was before is on its way out.
    if (pod == nullptr || !pod->meta.controller || pod->meta.controller->uid.view() != task.meta.uid)
      continue;
    SeenMember& seen = view.members[member];
    seen.pod = Seen(*pod, known.launch);
    present.insert(pod->meta.uid);
    if (seen.pod->ended) {
      agents_.Rest(pod->meta.uid);
      seen.agent = agents_.Find(pod->meta.uid);  // what it said last
      continue;
    }
    if (!seen.pod->running || seen.pod->ip.empty() || token.empty()) continue;
    agents_.Watch({pod->meta.uid, seen.pod->ip, token, task.meta.Key()});
    seen.agent = agents_.Find(pod->meta.uid);
    if (!seen.agent) seen.asked_since = agents_.AskedSince(pod->meta.uid);
  }
  for (const auto& pod : PodsOf(task.spec.name)) {
    const bool own = pod->meta.controller && pod->meta.controller->uid.view() == task.meta.uid;
    if (own && !present.contains(pod->meta.uid) && !pod->IsFinished() && !pod->IsBeingDeleted())
      view.old_pods.push_back(Seen(*pod, 0));
  }
  std::set<std::string> gone;
  {
    const MutexLock lock(mu_);
    std::set<std::string>& watched = watched_[task.meta.Key()];
    std::ranges::set_difference(watched, present, std::inserter(gone, gone.end()));
    watched = present;
  }
  for (const std::string& uid : gone) agents_.Forget(uid);
  return view;
}

void Controller::ForgetPods(const kube::ObjectKey& key) {
  std::set<std::string> uids;
  {
    const MutexLock lock(mu_);
    if (auto node = watched_.extract(key)) uids = std::move(node.mapped());
    written_.erase(key);
    stored_.erase(key);
    tokens_.erase(key);
  }
  for (const std::string& uid : uids) agents_.Forget(uid);
}

std::string Controller::TokenOf(const StoredTask& task) const {
  const MutexLock lock(mu_);
  const auto found = tokens_.find(task.meta.Key());
  return found == tokens_.end() || found->second.uid != task.meta.uid ? "" : found->second.token;
}

absl::StatusOr<Document> Controller::FindOwn(const StoredTask& task, const kube::Resource& resource,
                                             const std::string& name) {
  TY_ASSIGN_OR_RETURN(std::string text, api_.Get(resource, {options_.ns, name}));
  TY_ASSIGN_OR_RETURN(Document object, ParseJson(text));
  TY_ASSIGN_OR_RETURN(const kube::ObjectMeta meta, kube::ParseObjectMeta(std::move(text)));
  if (meta.controller && meta.controller->uid.view() == task.meta.uid) return object;
  return absl::UnavailableError(
      StrCat(resource.plural, " ", name,
             " is there already and not this task's: delete it, or choose another --task"));
}

// The token and the service, made by whoever comes first after the task itself.
absl::Status Controller::EnsureObjects(const StoredTask& task) {
  if (!TokenOf(task).empty()) return absl::OkStatus();
  const TaskOwner owner{options_.ns, task.meta.uid};
  TY_ASSIGN_OR_RETURN(std::string token, NewToken());
  const auto made = api_.Do({kube::CreateOperation(kube::Resource::Secrets(), options_.ns,
                                                   PrintJson(TaskSecret(owner, task.spec, token))),
                             kube::CreateOperation(kube::Resource::Services(), options_.ns,
                                                   PrintJson(TaskService(owner, task.spec)))});
  for (const auto& one : made) {
    if (!one.ok() && !kube::IsAlreadyExists(one.status())) return one.status();
  }
  if (!made[0].ok()) {
    TY_ASSIGN_OR_RETURN(const Document secret,
                        FindOwn(task, kube::Resource::Secrets(), TokenName(task.spec.name)));
    TY_ASSIGN_OR_RETURN(token, DecodeBase64(StringAt(secret, {"data", kTokenKey})));
  }
  if (!made[1].ok()) TY_RETURN_IF_ERROR(FindOwn(task, kube::Resource::Services(), task.spec.name));
  const MutexLock lock(mu_);
  tokens_[task.meta.Key()] = {task.meta.uid, std::move(token)};
  return absl::OkStatus();
}

absl::StatusOr<std::string> Controller::Write(const kube::ObjectKey& key, const StoredTask& task,
                                              const TaskStatus& status) {
  Document object = TaskConfig(options_.ns, task.spec, status);
  Object& metadata = MakeObjectAt(object, {"metadata"});
  metadata["resourceVersion"] = task.meta.resource_version;
  metadata["uid"] = task.meta.uid;
  TY_ASSIGN_OR_RETURN(std::string text, api_.Update(kube::Resource::ConfigMaps(), key, PrintJson(object)));
  TY_ASSIGN_OR_RETURN(const kube::ObjectMeta meta, kube::ParseObjectMeta(std::move(text)));
  return meta.resource_version;
}

absl::Status Controller::Store(const kube::ObjectKey& key, const StoredTask& task, const TaskStatus& status) {
  const std::shared_ptr<const StoredTask> cached = tasks_.cache().Get(key);
  const absl::StatusOr<std::string> version = Write(key, task, status);
  const MutexLock lock(mu_);
  if (!version.ok()) {
    if (kube::IsConflict(version.status())) written_.erase(key);
    return version.status();
  }
  stored_[key] = Clock::System().Steady();
  Written& written = written_[key];
  written.older.insert(task.meta.resource_version);
  if (cached != nullptr) written.older.insert(cached->meta.resource_version);
  written.version = *version;
  written.status = status;
  return absl::OkStatus();
}

// ---- Acting

absl::Status Controller::Act(const StoredTask& task, const std::vector<Action>& actions) {
  const TaskOwner owner{options_.ns, task.meta.uid};
  std::vector<kube::GonePod> gone = CollectLeaving(task, actions);
  std::vector<kube::Operation> operations;
  for (const Action& action : actions) {
    if (const auto* const create = std::get_if<CreatePod>(&action)) {
      operations.push_back(kube::CreateOperation(
          kube::Resource::Pods(), options_.ns,
          PrintJson(MemberPod(owner, task.spec, create->member, create->launch, options_.agent))));
    } else if (const auto* const remove = std::get_if<DeletePod>(&action)) {
      operations.push_back(kube::DeleteOperation(kube::Resource::Pods(), {options_.ns, remove->name}));
    }
  }
  absl::Status failed;
  if (!operations.empty()) {
    for (const auto& result : api_.Do(std::move(operations))) {
      const bool fine =
          result.ok() || kube::IsAlreadyExists(result.status()) || kube::IsNotFound(result.status());
      if (!fine && failed.ok()) failed = result.status();
    }
  }
  CallAgents(task, actions);
  KeepHistory(task, gone);
  return failed;
}

std::vector<kube::GonePod> Controller::CollectLeaving(const StoredTask& task,
                                                      const std::vector<Action>& actions) {
  std::set<std::string_view> removed;
  for (const Action& action : actions) {
    if (const auto* const remove = std::get_if<DeletePod>(&action)) removed.insert(remove->name);
  }
  const auto pods = PodsOf(task.spec.name);
  std::vector<kube::Leaving> leaving;
  for (const auto& pod : pods) {
    const bool own = pod->meta.controller && pod->meta.controller->uid.view() == task.meta.uid;
    const bool goes =
        removed.contains(pod->meta.name) || pod->IsBeingDeleted() || pod->phase == kube::PodPhase::kFailed;
    if (own && goes)
      leaving.push_back({.pod = pod.get(), .member = std::string(pod->meta.labels.Get(kMemberLabel))});
  }
  return leaving.empty() ? std::vector<kube::GonePod>() : history_.Collect(leaving);
}

void Controller::KeepHistory(const StoredTask& task, const std::vector<kube::GonePod>& gone) {
  const absl::Status stored = history_.Store({.ns = options_.ns,
                                              .kind = "task",
                                              .job = task.spec.name,
                                              .reference = Object{{"apiVersion", "v1"},
                                                                  {"kind", "ConfigMap"},
                                                                  {"name", task.meta.name},
                                                                  {"uid", task.meta.uid},
                                                                  {"controller", true}}},
                                             gone);
  if (!stored.ok())
    log::Warn("a task's history could not be stored", {{"task", task.spec.name}, {"error", stored}});
}

void Controller::CallAgents(const StoredTask& task, const std::vector<Action>& actions) {
  std::vector<HttpCall> calls;
  std::vector<std::string> uids;
  const std::string token = TokenOf(task);
  const std::int64_t grace = absl::ToInt64Milliseconds(task.spec.grace);
  const auto add = [&](const MemberId& member, const std::string& path, std::string body) {
    const auto known = task.status.members.find(member);
    const auto pod =
        known == task.status.members.end()
            ? nullptr
            : pods_.cache().Get({options_.ns, PodName(task.spec.name, member, known->second.launch)});
    if (pod == nullptr || pod->pod_ip.empty() || token.empty()) return;
    const AgentPlace place{pod->meta.uid, pod->pod_ip, token, task.meta.Key()};
    calls.push_back({.method = "POST", .url = place.Url(path), .token = token, .body = std::move(body)});
    uids.push_back(pod->meta.uid);
  };
  for (const Action& action : actions) {
    if (const auto* const configure = std::get_if<Configure>(&action)) {
      Object env;
      for (const auto& [name, value] : configure->env) env[name] = value;
      Object body{{"attempt", configure->attempt}, {"env", std::move(env)}};
      Array command;
      for (const std::string& word : task.spec.command) command.emplace_back(word);
      if (!command.empty()) body["command"] = std::move(command);
      add(configure->member, "/config", PrintJson(body));
    } else if (const auto* const run = std::get_if<Run>(&action)) {
      add(run->member, StrCat("/run?attempt=", run->attempt), "");
    } else if (const auto* const stop = std::get_if<Stop>(&action)) {
      add(stop->member,
          StrCat("/stop?attempt=", stop->attempt, "&grace=", grace / 1000, ".", grace % 1000 / 100), "");
    } else if (const auto* const end = std::get_if<End>(&action)) {
      add(end->member, StrCat("/end?grace=", grace / 1000, ".", grace % 1000 / 100), "");
    }
  }
  if (calls.empty()) return;
  const std::vector<absl::StatusOr<HttpAnswer>> answers = calls_.DoAll(std::move(calls));
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (!answers[i].ok()) continue;  // the long poll finds out what is the matter
    if (const auto status = ParseAgentStatus(answers[i]->body); status.ok()) {
      if (agents_.Take(uids[i], *status)) queue_.Add(task.meta.Key());
    } else {
      log::Warn("an agent refuses", {{"task", task.spec.name}, {"because", ErrorOf(*answers[i])}});
    }
  }
}

// Restarts and ends, as events of the task's ConfigMap.
void Controller::Tell(const StoredTask& task, const TaskStatus& status) {
  if (status.restarts > task.status.restarts && !status.history.empty()) {
    const Restart& last = status.history.back();
    const std::string text =
        StrCat(last.member, " ", last.cause, "; restart ", status.restarts, " of ", task.spec.max_restarts);
    log::Info("a task is restarted", {{"task", task.spec.name}, {"because", text}});
    events_.Record(Reference(task), kube::EventType::kWarning, "Restarted", text);
  }
  if (status.phase != task.status.phase) {
    log::Info("a task has come further",
              {{"task", task.spec.name}, {"phase", Name(status.phase)}, {"because", status.reason}});
    events_.Record(Reference(task),
                   status.phase == Phase::kFailed ? kube::EventType::kWarning : kube::EventType::kNormal,
                   Name(status.phase), status.reason);
  }
}

}  // namespace trainyard::launch
