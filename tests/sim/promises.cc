#include "tests/sim/promises.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "job/progress.h"
#include "job/telling.h"
#include "launch/task.h"
#include "master/pods/job_link.h"
#include "tests/sim/documents.h"
#include "tests/sim/elastic.h"
#include "tests/sim/launched.h"

namespace trainyard::sim {
namespace {

using kube::Resource;

int AttemptOf(const Document& pod) {
  return ParseNumber<int>(StringAt(pod, {"metadata", "annotations", "trainyard.dev/attempt"})).value_or(0);
}

// What is stored of the role that the slug names; null: nothing is.
const job::RoleStatus* FindRole(const job::JobStatus& status, std::string_view slug) {
  for (const auto& [name, role] : status.roles) {
    std::string lowered = name;
    std::ranges::transform(lowered, lowered.begin(), [](char c) { return static_cast<char>(c | 0x20); });
    if (lowered == slug) return &role;
  }
  return nullptr;
}

int StoredAttempt(const job::JobStatus& status, const reconcile::Place& place) {
  const job::RoleStatus* role = FindRole(status, place.role);
  return role == nullptr ? 0 : role->AttemptOf(place.index);
}

// A pod that should have been cleaned up.
std::string LeftOf(const Document& job, const Objects& pods) {
  const std::string_view clean = Text(*FindPolicy(job, "cleanPodPolicy"));
  if (clean == "None" && !HasPhase(job)) return "";
  for (const Document& pod : pods) {
    if (LabelOf(pod, "trainyard.dev/job-uid") != UidOf(job)) continue;
    const std::string_view phase = StringAt(pod, {"status", "phase"});
    if (clean == "All" || (phase != "Succeeded" && phase != "Failed")) return KeyOf(pod).name;
  }
  return "";
}

}  // namespace

void Promises::Break(std::string what) {
  cluster_.story().Tell(StrCat("BROKEN: ", what));
  broken_.push_back(std::move(what));
}

void Promises::Check() {
  for (const Document& job : cluster_.ListJobs()) CheckJob(job);
  std::set<std::string> seats;
  CheckMembers();
  for (const Document& pod : cluster_.ListPods()) {
    const reconcile::Place place = cluster_.PlaceOf(pod);
    const std::string seat = StrCat(LabelOf(pod, "trainyard.dev/job-uid"), " ", place.role, "-", place.index);
    if (!seats.insert(seat).second) Break(StrCat("two pods of one index: ", seat));
  }
}

void Promises::CheckJob(const Document& job) {
  const std::string name = KeyOf(job).name;
  const std::string state = StateOf(job);
  Known& known = known_[UidOf(job)];
  if (known.version == StringAt(job, {"metadata", "resourceVersion"})) return;
  if (IsEnd(known.state) && state != known.state)
    Break(StrCat(name, " went from ", known.state, " to ", state));
  CheckPhase(job, state);
  auto counters = CountersOf(job);
  for (const auto& [what, before] : known.counters) {
    const auto now = counters.find(what);
    const bool may_fall = scaled_.contains(name) && what.ends_with("succeeded");
    if ((now == counters.end() ? 0 : now->second) < before && !may_fall) {
      Break(StrCat(name, ": ", what, " fell from ", before));
    }
  }
  if (state != known.state) cluster_.story().Tell(StrCat(name, " is ", state));
  known = {.version = std::string(StringAt(job, {"metadata", "resourceVersion"})),
           .state = state,
           .counters = std::move(counters)};
  if (!IsFinished(job)) CheckLimits(job);
  if (ElasticMasters::IsElastic(job)) {
    CheckProgress(job);
    CheckSize(job);
  }
  if (Launcher::IsTask(job)) CheckTask(job);
}

// What a master has reported was stored, and whoever goes on from there has at least as much.
void Promises::CheckProgress(const Document& job) {
  const Document* const progress = Find(job, {"status", "progress"});
  const auto records = progress == nullptr ? std::nullopt : IntAt(*progress, {"totalRecords"});
  std::int64_t& known = records_.try_emplace(UidOf(job), -1).first->second;
  if (records.value_or(-1) < known)
    Break(StrCat(KeyOf(job).name, ": the progress fell from ", known, " records to ", records.value_or(-1)));
  known = std::max(known, records.value_or(-1));
}

// Nothing before the master asks for it, and then what the autoscaler may make of it.
void Promises::CheckSize(const Document& job) {
  const auto at = [&](std::string_view field) {
    return static_cast<int>(IntAt(job, {"spec", "replicaSpecs", master::kWorkerGroup, field}).value_or(0));
  };
  const int asked = at("replicas");
  const auto spec =
      master::ParseJobSpec(StringAt(job, {"metadata", "annotations", kElasticSettings})).value();
  if (asked != 0 && asked != spec.workers)
    Break(StrCat(KeyOf(job).name, " has ", asked, " workers in its spec, and its master asks for ",
                 spec.workers));
  const job::JobStatus status = StatusOf(job);
  const job::RoleStatus* const role = FindRole(status, master::kWorkerGroup);
  if (asked == 0 || role == nullptr || !role->size) return;
  const bool fits = spec.min_workers < spec.max_workers
                        ? *role->size >= spec.min_workers && *role->size <= spec.max_workers
                        : *role->size == spec.workers;
  if (!fits && *role->size != 0)
    Break(StrCat(KeyOf(job).name, " has a size of ", *role->size, " workers, and may have ", spec.min_workers,
                 " to ", spec.max_workers));
}

void Promises::CheckTask(const Document& job) {
  const Document* const progress = Find(job, {"status", "progress"});
  std::map<std::string, int>& known = attempts_[UidOf(job)];
  if (progress == nullptr) {
    if (!known.empty()) Break(StrCat(KeyOf(job).name, " has lost its status"));
    return;
  }
  const job::Progress status = job::ParseProgress(job::Reporter::kLauncher, *progress);
  std::map<std::string, int> now{{"the task", status.attempt}};
  for (const auto& [member, stored] : status.members) now[job::Print(member)] = stored.attempt;
  for (const auto& [what, attempt] : known) {
    if (now[what] < attempt)
      Break(StrCat(KeyOf(job).name, ": the attempt of ", what, " fell from ", attempt, " to ", now[what]));
  }
  known = std::move(now);
}

void Promises::ScriptRuns(const std::string& pod_uid, std::int64_t attempt) {
  for (const Document& pod : cluster_.ListPods()) {
    if (UidOf(pod) != pod_uid) continue;
    cluster_.story().Tell(StrCat("the script of ", KeyOf(pod).name, " runs, attempt ", attempt));
    const std::string run = StrCat(LabelOf(pod, "trainyard.dev/job-uid"), " ", KeyOf(pod).name, " ", attempt);
    if (!scripts_.insert(run).second) Break(StrCat("a script is run twice in one attempt: ", run));
  }
}

void Promises::CheckOneMaster(const std::function<std::ptrdiff_t(const std::string& job_uid)>& count) {
  for (const Document& job : cluster_.ListJobs()) {
    if (ElasticMasters::IsElastic(job) && count(UidOf(job)) > 1)
      Break(StrCat(KeyOf(job).name, " has two masters that hold its claim"));
  }
}

void Promises::JudgeActorWrite(const std::string& job_uid, const kube::Request& request) {
  cluster_.story().Tell(StrCat("  the master: ", request.method, " ", request.target));
  const auto body = ParseJson(request.body);
  // It asks for pods to be replaced, and writes to its job.
  const bool named = body.ok() && (request.target.ends_with("/eviction")
                                       ? !StringAt(*body, {"deleteOptions", "preconditions", "uid"}).empty()
                                       : StringAt(*body, {"metadata", "uid"}) == job_uid);
  if (!named) Break(StrCat("a master writes to an object whose uid it does not name: ", request.target));
}

std::string Promises::OthersPart(const Document& job) {
  const Document* const progress = Find(job, {"status", "progress"});
  std::string part = progress == nullptr ? "" : PrintJson(*progress);
  if (const Array* fields = ArrayAt(job, {"metadata", "managedFields"})) {
    for (const Document& entry : *fields) {
      const std::string_view manager = StringAt(entry, {"manager"});
      if (manager == "trainyard-master" || manager == "trainyard-launcher")
        StrAppend(part, " ", manager, " ", PrintJson(*Find(entry, {"fieldsV1"})));
    }
  }
  return part;
}

void Promises::JudgeWritten(const kube::Request&) {
  if (others_.first.empty()) return;
  const auto job = cluster_.Get(launch::AITrainingJobs(), others_.first);
  if (job && OthersPart(*job) != others_.second)
    Break(StrCat("an operator changes what others keep in the status of ", others_.first, " from ",
                 others_.second, " to ", OthersPart(*job)));
  others_ = {};
}

void Promises::CheckPhase(const Document& job, const std::string& state) {
  const std::string name = KeyOf(job).name;
  const job::Telling telling = cluster_.KindOf(job).telling();
  const auto states = job::StatesOf(telling);
  const bool one = state.empty() || std::ranges::any_of(states, [&](job::State possible) {
                     return job::StateName(telling, possible) == state;
                   });
  if (!one) Break(StrCat(name, " is in two states at once: ", state));
  const bool phases = telling == job::Telling::kByPhase;
  const bool ended = Find(job, {"status", phases ? "endTime" : "completionTime"}) != nullptr;
  if (ended != IsFinished(job)) Break(StrCat(name, " has a time of its end and is ", state));
  if (!phases) return;
  if (StringAt(job, {"status", "phase"}) != state) Break(StrCat(name, " has a phase that is not ", state));
  if (ended && Find(job, {"status", "ending"}) != nullptr) Break(StrCat(name, " has ended and still ends"));
}

void Promises::CheckLimits(const Document& job) {
  const std::string name = KeyOf(job).name;
  const Document* limit = FindPolicy(job, "backoffLimit");
  if (limit != nullptr &&
      IntAt(job, {"status", "restartCount"}).value_or(0) > limit->to_number<std::int64_t>())
    Break(StrCat(name, " has gone beyond its limit"));
  // Of several roles, one may count the restarts of another with its own.
  const Object* roles = ObjectAt(job, {"spec", "replicaSpecs"});
  if (roles == nullptr || roles->size() != 1) return;
  const auto of_role = IntAt(roles->begin()->value(), {"restartLimit"});
  if (of_role && IntAt(job, {"status", "restartTotal"}).value_or(0) > *of_role)
    Break(StrCat(name, " has gone beyond its limit"));
}

// An epoch means one thing, and the next is higher.
void Promises::CheckMembers() {
  for (const Document& map : cluster_.List(Resource::ConfigMaps())) {
    const std::string uid = LabelOf(map, "trainyard.dev/job-uid");
    const std::string_view text = StringAt(map, {"data", "members"});
    if (uid.empty()) continue;
    const auto epoch = ParseNumber<std::int64_t>(text.substr(6, text.find('\n') - 6));
    if (!epoch) return Break(StrCat(KeyOf(map).name, " has no epoch"));
    if (*epoch < epochs_[uid]) Break(StrCat(KeyOf(map).name, ": the epoch fell to ", *epoch));
    epochs_[uid] = *epoch;
    const auto [known, is_new] = members_.emplace(std::pair(uid, *epoch), text);
    if (known->second != text) Break(StrCat(KeyOf(map).name, ": epoch ", *epoch, " means two things"));
  }
}

void Promises::JudgeWrite(const kube::Request& request) {
  const std::string_view target(request.target);
  cluster_.story().Tell(StrCat("  ", request.method, " ", target));
  others_ = {};
  constexpr std::string_view kJobs = "/aitrainingjobs/";
  if (const std::size_t jobs = target.find(kJobs);
      jobs != std::string_view::npos && request.method != "DELETE") {
    const std::string_view rest = target.substr(jobs + kJobs.size());
    std::string name(rest.substr(0, rest.find_first_of("/?")));
    if (const auto job = cluster_.Get(launch::AITrainingJobs(), name))
      others_ = {std::move(name), OthersPart(*job)};
  }
  const std::size_t at = target.find("/pods");
  if (at == std::string_view::npos) return;
  if (request.method == "POST") return JudgeCreate(ParseJson(request.body).value());
  if (request.method != "DELETE") return;
  const std::string_view name = target.substr(at + 6);
  JudgeDelete(std::string(name.substr(0, name.find('?'))), request);
}

std::optional<Document> Promises::OwnerOf(const Document& pod) {
  const Array* owners = ArrayAt(pod, {"metadata", "ownerReferences"});
  if (owners == nullptr || owners->empty()) return std::nullopt;
  auto job = cluster_.Get(cluster_.KindOf(pod).resource(), std::string(StringAt((*owners)[0], {"name"})));
  if (job && UidOf(*job) != StringAt((*owners)[0], {"uid"})) return std::nullopt;
  return job;
}

job::JobStatus Promises::StatusOf(const Document& job) const {
  return cluster_.KindOf(job).Decode(PrintJson(job)).value().status;
}

void Promises::JudgeCreate(const Document& pod) {
  const auto job = OwnerOf(pod);
  if (!job) return cluster_.ExpectGarbage();  // it was deleted just now
  if (IsFinished(*job)) Break(StrCat("a pod is made for ", KeyOf(*job).name, ", which has ended"));
  // A scale-down forgets indexes, and with them their numbers.
  const job::JobStatus status = StatusOf(*job);
  if (status.ending) Break(StrCat("a pod is made for ", KeyOf(*job).name, ", which ends"));
  JudgeBarrier(*job, status, pod);
  const bool worker = ElasticMasters::IsElastic(*job) && cluster_.PlaceOf(pod).role == master::kWorkerGroup;
  if (worker && IntAt(*job, {"spec", "replicaSpecs", master::kWorkerGroup, "replicas"}).value_or(0) == 0)
    Break(StrCat(KeyOf(pod).name, " is made before the master has asked for workers"));
  const int stored = StoredAttempt(status, cluster_.PlaceOf(pod));
  if (!scaled_.contains(KeyOf(*job).name) && AttemptOf(pod) > stored) {
    Break(StrCat(KeyOf(pod).name, " is made under number ", AttemptOf(pod), ", and ", stored, " is stored"));
  }
}

// Where all are made again, the last of the past goes before the first of the future comes.
void Promises::JudgeBarrier(const Document& job, const job::JobStatus& status, const Document& pod) {
  const reconcile::Place made = cluster_.PlaceOf(pod);
  const job::RoleStatus* role = FindRole(status, made.role);
  if (role == nullptr || role->barrier == job::RestartScope::kPod) return;
  for (const Document& other : cluster_.ListPods()) {
    if (LabelOf(other, "trainyard.dev/job-uid") != UidOf(job)) continue;
    const reconcile::Place place = cluster_.PlaceOf(other);
    const bool behind = place.role == made.role || role->barrier == job::RestartScope::kJob;
    if (!behind || AttemptOf(other) >= StoredAttempt(status, place)) continue;
    Break(StrCat(KeyOf(pod).name, " is made while ", KeyOf(other).name, " of the past is there"));
  }
}

void Promises::JudgeDelete(const std::string& name, const kube::Request& request) {
  const auto pod = cluster_.Get(Resource::Pods(), name);
  if (!pod) return;
  const auto options = ParseJson(request.body);
  if (!options.ok() || StringAt(*options, {"preconditions", "uid"}).empty()) {
    return Break(StrCat(name, " is deleted whoever it is"));
  }
  // The server will refuse it: another has the name by now.
  if (StringAt(*options, {"preconditions", "uid"}) != UidOf(*pod)) return;
  const auto job = OwnerOf(*pod);
  if (!job || IsFinished(*job) || scaled_.contains(KeyOf(*job).name) || suspended_.contains(KeyOf(*job).name))
    return;
  const job::JobStatus status = StatusOf(*job);
  const reconcile::Place place = cluster_.PlaceOf(*pod);
  if (status.gang_retry) return;  // its gang gives its nodes back
  if (status.ending || IsLeaving(*pod) || AttemptOf(*pod) < StoredAttempt(status, place)) return;
  const job::RoleStatus* role = FindRole(status, place.role);
  if (role != nullptr && role->given_up.Contains(place.index)) return;
  Break(StrCat(name, " is deleted, and its failure is not stored"));
}

bool Promises::AllSettled() {
  const auto jobs = cluster_.ListJobs();
  if (!std::ranges::all_of(jobs, IsFinished)) return false;
  const Objects pods = cluster_.ListPods();
  return std::ranges::all_of(jobs, [&](const Document& job) { return LeftOf(job, pods).empty(); });
}

int Promises::CheckEnds() {
  const Objects pods = cluster_.ListPods();
  int finished = 0;
  for (const Document& job : cluster_.ListJobs()) {
    if (!IsFinished(job)) {
      Break(StrCat(KeyOf(job).name, " hangs in state '", StateOf(job),
                   "': ", PrintJson(*Find(job, {"status"}))));
      continue;
    }
    ++finished;
    const auto asked = asked_.find(UidOf(job));
    if (asked != asked_.end() && asked->second != StateOf(job))
      Break(StrCat(KeyOf(job).name, " was asked to be ", asked->second, " and is ", StateOf(job)));
    if (const std::string left = LeftOf(job, pods); !left.empty()) Break(StrCat(left, " is left behind"));
  }
  std::set<std::string> uids;
  for (const Document& job : cluster_.ListJobs()) uids.insert(UidOf(job));
  for (const Document& pod : pods) {
    if (!uids.contains(LabelOf(pod, "trainyard.dev/job-uid")))
      Break(StrCat(KeyOf(pod).name, " is there, and its job is not"));
  }
  return finished;
}

}  // namespace trainyard::sim
