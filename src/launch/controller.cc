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
#include "job/names.h"
#include "job/status_document.h"
#include "kube/error.h"

namespace trainyard::launch {
namespace {

constexpr std::string_view kManager = "trainyard-launcher";  // of the fields that it applies
constexpr absl::Duration kUntilSynced = absl::Milliseconds(20);
constexpr absl::Duration kDoubleCheck = absl::Seconds(30);
constexpr absl::Duration kAfterConflict = absl::Seconds(1);  // in case that the watch does not say
constexpr absl::Duration kSeenWithin = absl::Seconds(2);
constexpr absl::Duration kGoneWithin = absl::Seconds(10);  // what is left of a task of the same name
constexpr absl::Duration kBetweenLooks = absl::Milliseconds(100);
constexpr absl::Duration kKindPatience = absl::Seconds(5);
constexpr absl::Duration kBetweenWrites = absl::Seconds(1);
constexpr std::size_t kMostReason = 500;

kube::ObjectReference Reference(const StoredTask& task) {
  return {.api_version = AITrainingJobs().ApiVersion(),
          .kind = AITrainingJobs().kind,
          .key = task.meta.Key(),
          .uid = task.meta.uid};
}

kube::ObjectKey KeyOfPod(const kube::CompactPod& pod) {
  return {std::string(pod.meta.ns.view()), std::string(pod.meta.labels.Get(kTaskLabel))};
}

absl::Status KindIsMissing() {
  return absl::FailedPreconditionError(
      "the cluster has no AITrainingJobs: `kubectl apply -k deploy/` installs the kind and its operator");
}

SeenJob ParseSeenJob(const Document& object) {
  const job::JobStatus status = job::ParseStatus(Find(object, {"status"}), job::kAiTrainingJobStatus);
  const job::Condition* const current = status.Current();
  SeenJob seen{.taken_up = status.start_time.has_value(),
               .asked = Find(object, {"metadata", "annotations", kFailedAnnotation}) != nullptr,
               .ends = status.ending.has_value() || status.IsFinished(),
               .over = status.IsFinished(),
               .succeeded = status.Is(job::State::kSucceeded),
               .workers = static_cast<int>(
                   IntAt(object, {"spec", "replicaSpecs", Print(Role::kWorker), "replicas"}).value_or(0))};
  if (status.ending) seen.message = status.ending->message;
  if (seen.message.empty() && current != nullptr) seen.message = current->message;
  return seen;
}

// What the API server is asked for; agents are called.
std::optional<kube::Operation> OperationOf(const StoredTask& task, const Action& action) {
  const kube::ObjectKey key = task.meta.Key();
  const auto patch = [&](Object metadata, Object spec) {
    metadata["uid"] = task.meta.uid;
    Object body{{"metadata", std::move(metadata)}};
    if (!spec.empty()) body["spec"] = std::move(spec);
    return kube::PatchOperation(AITrainingJobs(), key, PrintJson(body), {.type = kube::PatchType::kMerge});
  };
  if (const auto* const resize = std::get_if<Resize>(&action))
    return patch({},
                 {{"replicaSpecs", Object{{Print(Role::kWorker), Object{{"replicas", resize->workers}}}}}});
  if (const auto* const fail = std::get_if<Fail>(&action))
    return patch({{"annotations", Object{{kFailedAnnotation, fail->why}}}}, {});
  const auto* const replace = std::get_if<Replace>(&action);
  if (replace == nullptr) return std::nullopt;
  return kube::EvictOperation({key.ns, PodName(task.spec.name, replace->member)},
                              task.status.members.at(replace->member).lost);
}

}  // namespace

std::optional<MemberId> MemberOf(const kube::CompactPod& pod) {
  return ParseMember(
      StrCat(pod.meta.labels.Get(job::kRoleLabel), "-", pod.meta.labels.Get(job::kIndexLabel)));
}

absl::StatusOr<StoredTask> ParseStoredTask(std::string json) {
  TY_ASSIGN_OR_RETURN(const Document object, ParseJson(json));
  StoredTask task;
  TY_ASSIGN_OR_RETURN(task.meta, kube::ParseObjectMeta(std::move(json)));
  task.job = ParseSeenJob(object);
  task.cancel = Find(object, {"metadata", "annotations", kCancelAnnotation}) != nullptr;
  const auto spec = ParseTaskSpec(StringAt(object, {"metadata", "annotations", kSpecAnnotation}));
  const absl::Status valid = spec.ok() ? Validate(*spec) : spec.status();  // anybody may edit a job
  if (!valid.ok()) {
    task.wrong = Message(valid);
    return task;
  }
  task.spec = *spec;
  task.spec.name = task.meta.name;
  const Document* const progress = Find(object, {"status", "progress"});
  task.status = progress == nullptr ? NewProgress(*spec, task.meta.created)
                                    : job::ParseProgress(job::Reporter::kLauncher, *progress);
  for (const MemberId& member : MembersOf(*spec)) task.status.members.try_emplace(member);
  return task;
}

Controller::Controller(kube::Api& api, http::Calls& calls, Clock& clock, ControllerOptions options)
    : api_(api),
      calls_(calls),
      clock_(clock),
      options_(std::move(options)),
      seeds_(options_.seed ? IdSource(*options_.seed) : IdSource::Random()),
      queue_(clock, IdSource(seeds_.Next())),
      events_(api, clock, IdSource(seeds_.Next()), {.component = std::string(kManager)}),
      writes_(clock),
      agents_(calls, clock, [this](const kube::ObjectKey& key) { queue_.Add(key); }),
      tasks_(api, clock, IdSource(seeds_.Next()),
             {.resource = AITrainingJobs(), .ns = options_.ns, .label_selector = std::string(kTaskLabel)},
             ParseStoredTask),
      pods_(
          api, clock, IdSource(seeds_.Next()),
          {.resource = kube::Resource::Pods(), .ns = options_.ns, .label_selector = std::string(kTaskLabel)},
          [](std::string json) { return kube::ParsePod(std::move(json)); }),
      pods_by_task_(pods_.AddIndex(kube::IndexByLabel<kube::CompactPod>(std::string(kTaskLabel)))),
      runner_(queue_, clock, [this](const kube::ObjectKey& key) { return PassOver(key); },
              {.name = "tasks", .workers = options_.workers}) {
  tasks_.OnChange([this](const kube::Change<StoredTask>& change) {
    writes_.Seen(change);
    Changed(change.Any().meta.Key());
  });
  pods_.OnChange([this](const kube::Change<kube::CompactPod>& change) { Changed(KeyOfPod(change.Any())); });
}

Controller::~Controller() {
  tasks_.Stop();
  pods_.Stop();
  runner_.Stop(kube::WorkQueue::Rest::kDrop);
  events_.Stop();
}

absl::Status Controller::Start() {
  // A cluster that has just been started may not have its kinds yet.
  const SteadyTime deadline = clock_.Steady() + kKindPatience;
  while (kube::IsNotFound(api_.List(AITrainingJobs(), options_.ns, {.limit = 1}).status())) {
    if (clock_.Steady() > deadline) return KindIsMissing();
    absl::SleepFor(kBetweenLooks);
  }
  events_.Start();
  tasks_.Start();
  pods_.Start();
  runner_.Start();
  return absl::OkStatus();
}

bool Controller::Step() {
  bool came = tasks_.StepNow();
  came |= pods_.StepNow();
  return runner_.RunOne(clock_.Steady()) || came;
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
  const SteadyTime deadline = clock_.Steady() + timeout;
  const MutexLock lock(mu_);
  while (changes_ == seen && changed_.WaitUntil(mu_, deadline)) {
  }
  return changes_;
}

// ---- What clients want

absl::Status Controller::Create(const TaskSpec& spec) {
  TY_RETURN_IF_ERROR(Validate(spec));
  TY_RETURN_IF_ERROR(CreateSecret(spec));
  const absl::Status made =
      api_.Create(AITrainingJobs(), options_.ns, PrintJson(TaskJob(options_.ns, spec, options_.agent)))
          .status();
  if (kube::IsAlreadyExists(made) && Find(spec.name) == nullptr)
    return absl::AlreadyExistsError(
        StrCat("there is an AITrainingJob ", spec.name, " already, which is no task: choose another --task"));
  if (kube::IsAlreadyExists(made))
    return absl::AlreadyExistsError(StrCat("there is a task ", spec.name,
                                           " already: choose another --task, or `trainyard launch delete ",
                                           spec.name, "`"));
  if (kube::IsNotFound(made)) return KindIsMissing();
  TY_RETURN_IF_ERROR(made);
  // The caller may ask for it at once.
  const SteadyTime deadline = clock_.Steady() + kSeenWithin;
  for (std::uint64_t seen = 0; Find(spec.name) == nullptr && clock_.Steady() < deadline;)
    seen = AwaitChange(seen, kBetweenLooks);
  return absl::OkStatus();
}

absl::Status Controller::CreateSecret(const TaskSpec& spec) {
  const SteadyTime deadline = clock_.Steady() + kGoneWithin;
  for (;;) {
    TY_ASSIGN_OR_RETURN(const std::string token, NewToken());
    const absl::Status made =
        api_.Create(kube::Resource::Secrets(), options_.ns, PrintJson(TaskSecret(options_.ns, spec, token)))
            .status();
    if (!kube::IsAlreadyExists(made)) return made;
    // One that no job owns is left from a start that failed half-way, and is as good. If its job is there,
    // that is for the caller to find out; else the Secret goes soon.
    const auto found =
        api_.Do({kube::GetOperation(kube::Resource::Secrets(), {options_.ns, TokenName(spec.name)}),
                 kube::GetOperation(AITrainingJobs(), {options_.ns, spec.name})});
    const auto meta = found[0].ok() ? kube::ParseObjectMeta(*found[0]) : found[0].status();
    if (found[1].ok() || (meta.ok() && !meta->controller)) return absl::OkStatus();
    if (clock_.Steady() > deadline)
      return absl::UnavailableError(StrCat("secrets ", TokenName(spec.name),
                                           " is there already and not this task's: delete it, or choose "
                                           "another --task"));
    AwaitChange(AwaitChange(0, absl::ZeroDuration()), kBetweenLooks);
  }
}

absl::Status Controller::Cancel(const std::string& name) {
  const std::shared_ptr<const StoredTask> task = Find(name);
  if (task == nullptr) return absl::NotFoundError(StrCat("there is no task ", name));
  if (IsOver(task->status.phase))
    return absl::FailedPreconditionError(
        StrCat("task ", name, " has ended already: it is ", Print(task->status.phase)));
  const Object patch{
      {"metadata", Object{{"uid", task->meta.uid}, {"annotations", Object{{kCancelAnnotation, "true"}}}}}};
  return api_.Patch(AITrainingJobs(), task->meta.Key(), PrintJson(patch), {}).status();
}

absl::Status Controller::Delete(const std::string& name) {
  return api_.Delete(AITrainingJobs(), {options_.ns, name}, {.propagation = kube::Propagation::kBackground});
}

std::shared_ptr<const StoredTask> Controller::Find(const std::string& name) const {
  return tasks_.cache().Get({options_.ns, name});
}

std::vector<std::shared_ptr<const StoredTask>> Controller::List() const { return tasks_.cache().List(); }

std::vector<std::shared_ptr<const kube::CompactPod>> Controller::PodsOf(const std::string& name) const {
  std::vector<std::shared_ptr<const kube::CompactPod>> pods = pods_.cache().ListBy(pods_by_task_, name);
  std::ranges::stable_sort(pods, {}, [](const auto& pod) { return pod->meta.created; });
  return pods;
}

// ---- A pass

kube::Pass Controller::PassOver(const kube::ObjectKey& key) {
  // No event says when the pods are all known: the last of them comes a moment before.
  if (!tasks_.HasSynced() || !pods_.HasSynced()) return {kube::Again{kUntilSynced}};
  const auto verdict = writes_.Check(key);  // before the cache is read: it may catch up in between
  const std::shared_ptr<const StoredTask> task = tasks_.cache().Get(key);
  if (task == nullptr) {
    ForgetPods(key);
    return {kube::Done()};
  }
  if (task->meta.deletion_time) return {kube::Done()};
  if (!verdict.caught_up) return {kube::Again{verdict.wait}};
  if (!task->wrong.empty())
    return {kube::Failed{absl::InvalidArgumentError(StrCat("task ", key.name, ": ", task->wrong)), true}};
  return Carry(key, *task);
}

kube::Pass Controller::Carry(const kube::ObjectKey& key, const StoredTask& task) {
  if (IsOver(task.status.phase) && task.job.over) {
    ForgetPods(key);
    return {kube::Done()};
  }
  if (const absl::Status learnt = LearnToken(task); !learnt.ok()) return GiveReason(key, task, learnt);
  const TaskPlan plan = PlanTask(Observe(task), clock_.Now());
  std::string actions;
  for (const Action& action : plan.actions) StrAppend(actions, actions.empty() ? "" : ", ", Print(action));
  if (const absl::Status acted = Act(task, plan.actions); !acted.ok()) return GiveReason(key, task, acted);
  if (plan.status == task.status) return {kube::Again{std::min(plan.wake_after, kDoubleCheck)}, actions};
  const absl::Duration hold = plan.store ? absl::ZeroDuration() : HoldBack(key, task.status, plan.status);
  if (hold > absl::ZeroDuration()) return {kube::Again{std::min(hold, plan.wake_after)}, actions};
  const absl::Status stored = Store(key, task, plan.status);
  if (kube::IsConflict(stored)) return {kube::Again{kAfterConflict}, actions};
  if (!stored.ok()) return {kube::Failed{stored}, actions};
  Tell(task, plan.status);
  return {kube::Again{std::min(plan.wake_after, kDoubleCheck)}, actions};
}

kube::Pass Controller::GiveReason(const kube::ObjectKey& key, const StoredTask& task,
                                  const absl::Status& failure) {
  Progress status = task.status;
  if (!IsOver(status.phase)) status.reason = Shortened(Message(failure), kMostReason);
  if (!(status == task.status) && HoldBack(key, task.status, status) <= absl::ZeroDuration())
    Store(key, task, status).IgnoreError();
  return {kube::Failed{failure}};
}

// What is only for people to read is stored once a second at most.
absl::Duration Controller::HoldBack(const kube::ObjectKey& key, const Progress& before,
                                    const Progress& after) {
  if (before.phase != after.phase) return absl::ZeroDuration();
  const MutexLock lock(mu_);
  const SteadyTime now = clock_.Steady();
  return stored_.try_emplace(key, now).first->second + kBetweenWrites - now;
}

TaskView Controller::Observe(const StoredTask& task) {
  TaskView view{.spec = task.spec,
                .status = task.status,
                .created = task.meta.created,
                .cancel = task.cancel,
                .job = task.job};
  const std::string token = TokenOf(task);
  std::set<std::string> present;  // uids of the pods that members have
  for (const auto& pod : PodsOf(task.spec.name)) {
    const auto member = MemberOf(*pod);
    // One of a task of the same name that was before is on its way out.
    if (!member || !pod->meta.controller || pod->meta.controller->uid.view() != task.meta.uid) continue;
    SeenMember& seen = view.members[*member];
    seen.pod = pod;
    present.insert(pod->meta.uid);
    if (pod->IsFinished() || pod->IsBeingDeleted()) {
      agents_.Rest(pod->meta.uid);
    } else if (pod->phase == kube::PodPhase::kRunning && !pod->pod_ip.empty()) {
      agents_.Watch({pod->meta.uid, pod->pod_ip, token, task.meta.Key()});
    }
    seen.agent = agents_.Find(pod->meta.uid);  // of one that has ended, what it said last
    if (!seen.agent) seen.asked_since = agents_.AskedSince(pod->meta.uid);
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
    stored_.erase(key);
    tokens_.erase(key);
  }
  writes_.Forget(key);
  for (const std::string& uid : uids) agents_.Forget(uid);
}

std::string Controller::TokenOf(const StoredTask& task) const {
  const MutexLock lock(mu_);
  const auto found = tokens_.find(task.meta.Key());
  return found == tokens_.end() || found->second.uid != task.meta.uid ? "" : found->second.token;
}

absl::Status Controller::LearnToken(const StoredTask& task) {
  if (!TokenOf(task).empty()) return absl::OkStatus();
  const kube::ObjectKey key{options_.ns, TokenName(task.spec.name)};
  TY_ASSIGN_OR_RETURN(std::string text, api_.Get(kube::Resource::Secrets(), key));
  TY_ASSIGN_OR_RETURN(const Document secret, ParseJson(text));
  TY_ASSIGN_OR_RETURN(const kube::ObjectMeta meta, kube::ParseObjectMeta(std::move(text)));
  if (meta.controller && meta.controller->uid.view() != task.meta.uid)
    return absl::UnavailableError(StrCat("secrets ", key.name, " is not this task's: delete the task"));
  if (!meta.controller)
    TY_RETURN_IF_ERROR(
        api_.Patch(kube::Resource::Secrets(), key, PrintJson(OwnerPatch(task.meta.name, task.meta.uid)), {})
            .status());
  TY_ASSIGN_OR_RETURN(std::string token, DecodeBase64(StringAt(secret, {"data", kTokenKey})));
  const MutexLock lock(mu_);
  tokens_[task.meta.Key()] = {task.meta.uid, std::move(token)};
  return absl::OkStatus();
}

absl::Status Controller::Store(const kube::ObjectKey& key, const StoredTask& task, const Progress& status) {
  const Object object{{"apiVersion", AITrainingJobs().ApiVersion()},
                      {"kind", AITrainingJobs().kind},
                      {"metadata", Object{{"name", key.name},
                                          {"namespace", key.ns},
                                          {"uid", task.meta.uid},
                                          {"resourceVersion", task.meta.resource_version}}},
                      {"status", Object{{"progress", job::PrintProgress(status)}}}};
  TY_ASSIGN_OR_RETURN(
      std::string answer,
      api_.Do(kube::ForMetadata(kube::PatchOperation(
          AITrainingJobs(), key, PrintJson(object),
          {.type = kube::PatchType::kApply, .field_manager = std::string(kManager), .force = true},
          "status"))));
  TY_ASSIGN_OR_RETURN(const kube::ObjectMeta meta, kube::ParseObjectMeta(std::move(answer)));
  writes_.ExpectVersion(key, key, meta.resource_version);
  const MutexLock lock(mu_);
  stored_[key] = clock_.Steady();
  return absl::OkStatus();
}

// ---- Acting

absl::Status Controller::Act(const StoredTask& task, const std::vector<Action>& actions) {
  std::vector<kube::Operation> operations;
  for (const Action& action : actions) {
    if (auto operation = OperationOf(task, action)) operations.push_back(*std::move(operation));
  }
  if (!operations.empty()) {
    for (const auto& result : api_.Do(std::move(operations))) {
      if (!result.ok() && !kube::IsNotFound(result.status()) && !kube::IsConflict(result.status()))
        return result.status();
    }
  }
  CallAgents(task, actions);
  return absl::OkStatus();
}

void Controller::CallAgents(const StoredTask& task, const std::vector<Action>& actions) {
  std::vector<http::Call> calls;
  std::vector<std::string> uids;
  const std::string token = TokenOf(task);
  const std::int64_t grace = absl::ToInt64Milliseconds(task.spec.grace);
  // What is to be run is for the pod that is stored, and not for one that has its name by now.
  const auto add = [&](const MemberId& member, const std::string& path, std::string body, bool any = false) {
    const auto pod = pods_.cache().Get({options_.ns, PodName(task.spec.name, member)});
    if (pod == nullptr || pod->pod_ip.empty()) return;
    const auto known = task.status.members.find(member);
    if (!any && (known == task.status.members.end() || pod->meta.uid != known->second.pod)) return;
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
      add(end->member,
          StrCat("/end?grace=", grace / 1000, ".", grace % 1000 / 100, end->succeeded ? "&code=0" : ""), "",
          /*any=*/true);
    }
  }
  if (calls.empty()) return;
  const std::vector<absl::StatusOr<http::Answer>> answers = calls_.DoAll(std::move(calls));
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (!answers[i].ok()) continue;  // the long poll finds out what is the matter
    if (const auto status = ParseAgentStatus(answers[i]->body); status.ok()) {
      if (agents_.Take(uids[i], *status)) queue_.Add(task.meta.Key());
    } else {
      log::Warn("an agent refuses", {{"task", task.spec.name}, {"because", http::ErrorOf(*answers[i])}});
    }
  }
}

// Restarts and ends, as events of the task's job.
void Controller::Tell(const StoredTask& task, const Progress& status) {
  if (status.restarts > task.status.restarts && !status.history.empty()) {
    const job::ScriptRestart& last = status.history.back();
    const std::string text =
        StrCat(last.member, " ", last.cause, "; restart ", status.restarts, " of ", task.spec.max_restarts);
    log::Info("a task is restarted", {{"task", task.spec.name}, {"because", text}});
    events_.Record(Reference(task), kube::EventType::kWarning, "Restarted", text);
  }
  if (status.phase != task.status.phase) {
    log::Info("a task has come further",
              {{"task", task.spec.name}, {"phase", Print(status.phase)}, {"because", status.reason}});
    events_.Record(Reference(task),
                   status.phase == Phase::kFailed ? kube::EventType::kWarning : kube::EventType::kNormal,
                   Print(status.phase), status.reason);
  }
}

}  // namespace trainyard::launch
