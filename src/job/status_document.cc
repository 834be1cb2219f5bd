#include "job/status_document.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "base/rfc3339.h"
#include "base/text.h"
#include "job/telling.h"

namespace trainyard::job {
namespace {

constexpr std::string_view kSpecInvalid = "SpecInvalid";

void AddTime(Object& object, std::string_view key, const std::optional<absl::Time>& time) {
  if (time) object[key] = PrintTime(*time);
}

std::string TextAt(const Document& document, Path path) { return std::string(StringAt(document, path)); }

IndexSet IndexesAt(const Document& document, Path path) {
  return IndexSet::Parse(StringAt(document, path)).value_or(IndexSet());
}

std::map<int, int> AttemptsAt(const Document& document, Path path) {
  return ParseAttempts(StringAt(document, path)).value_or(std::map<int, int>());
}

// ---- Roles

using Counter = std::pair<std::string_view, int RoleStatus::*>;
constexpr Counter kCounters[] = {
    {"active", &RoleStatus::active}, {"succeeded", &RoleStatus::succeeded}, {"failed", &RoleStatus::failed}};
// A job with phases has these, too, and leaves out those that are zero.
constexpr Counter kPhaseCounters[] = {{"pending", &RoleStatus::pending},
                                      {"scheduled", &RoleStatus::scheduled},
                                      {"restarting", &RoleStatus::restarting}};

Object PrintRole(const RoleStatus& role, const StatusSpelling& spelling) {
  Object out;
  for (const auto& [name, count] : kCounters) {
    if (!spelling.HasPhase() || role.*count > 0) out[name] = role.*count;
  }
  if (role.completed.Count() > 0) out["completedIndexes"] = role.completed.Print();
  if (role.given_up.Count() > 0) out["failedIndexes"] = role.given_up.Print();
  if (role.size) out["size"] = *role.size;
  if (!spelling.HasPhase()) return out;
  for (const auto& [name, count] : kPhaseCounters) {
    if (role.*count > 0) out[name] = role.*count;
  }
  if (role.node_failed) out["nodeFailed"] = true;
  if (role.barrier != RestartScope::kPod)
    out["restartScope"] = role.barrier == RestartScope::kJob ? "All" : "Replica";
  for (const auto& [index, since] : role.stuck)
    out.emplace("creationErrors", Object()).first->value().get_object()[StrCat(index)] = PrintTime(since);
  return out;
}

void ParseRole(const Document& document, const StatusSpelling& spelling, RoleStatus& role) {
  for (const auto& [name, count] : kCounters) role.*count = CountAt(document, {name});
  role.completed = IndexesAt(document, {"completedIndexes"});
  role.given_up = IndexesAt(document, {"failedIndexes"});
  const auto size = IntAt(document, {"size"});
  if (size && *size >= 0 && *size <= kMostIndex) role.size = static_cast<int>(*size);
  if (!spelling.HasPhase()) return;
  for (const auto& [name, count] : kPhaseCounters) role.*count = CountAt(document, {name});
  role.node_failed = BoolAt(document, {"nodeFailed"});
  const std::string_view scope = StringAt(document, {"restartScope"});
  role.barrier = scope == "All"       ? RestartScope::kJob
                 : scope == "Replica" ? RestartScope::kRole
                                      : RestartScope::kPod;
  const Object* const stuck = ObjectAt(document, {"creationErrors"});
  if (stuck == nullptr) return;
  for (const auto& member : *stuck) {
    const auto index = ParseNumber<int>(Key(member));
    const auto since = TimeAt(member.value(), {});
    if (index && *index >= 0 && since) role.stuck[*index] = *since;
  }
}

Object PrintRestarts(const RoleStatus& role) {
  if (role.restarts == 0 && role.disruptions == 0 && role.attempts.empty() && role.seen.empty() &&
      role.last_cause.empty())
    return {};
  Object out{{"count", role.restarts}};
  if (role.disruptions > 0) out["disruptions"] = role.disruptions;
  if (!role.seen.empty()) out["seen"] = PrintAttempts(role.seen);
  if (!role.attempts.empty()) out["attempts"] = PrintAttempts(role.attempts);
  if (!role.last_cause.empty()) out["lastCause"] = role.last_cause;
  AddTime(out, "lastTime", role.last_time);
  return out;
}

void ParseRestarts(const Document& document, RoleStatus& role) {
  role.restarts = LongAt(document, {"count"});
  role.disruptions = LongAt(document, {"disruptions"});
  role.seen = AttemptsAt(document, {"seen"});
  role.attempts = AttemptsAt(document, {"attempts"});
  role.last_cause = TextAt(document, {"lastCause"});
  role.last_time = TimeAt(document, {"lastTime"});
}

// ---- Conditions

Object PrintSpecProblem(const SpecProblem& problem, const StatusSpelling& spelling) {
  return {{"type", kSpecInvalid},
          {"status", "True"},
          {"reason", "InvalidSpec"},
          {"message", problem.message},
          {spelling.updated, PrintTime(problem.since)},
          {"lastTransitionTime", PrintTime(problem.since)}};
}

Array PrintConditions(const JobStatus& status, const StatusSpelling& spelling) {
  Array out;
  for (const Condition& condition : status.conditions) {
    const bool stays = spelling.created_stays && condition.type == State::kCreated;
    out.push_back(Object{{"type", StateName(spelling.telling, condition.type)},
                         {"status", condition.is_true || stays ? "True" : "False"},
                         {"reason", condition.reason},
                         {"message", condition.message},
                         {spelling.updated, PrintTime(condition.updated)},
                         {"lastTransitionTime", PrintTime(condition.changed)}});
  }
  // kubectl shows the last condition as the state of a job that has no phase, and else the first that is
  // True.
  if (status.spec_problem)
    out.insert(spelling.HasPhase() ? out.end() : out.begin(),
               PrintSpecProblem(*status.spec_problem, spelling));
  return out;
}

// Of a job that was accepted, whether that is all that can be said of it: its pods exist, and it is in no
// other state.
void FindCurrent(std::vector<Condition>& conditions) {
  const bool other = std::ranges::any_of(conditions, [](const Condition& condition) {
    return condition.is_true && condition.type != State::kCreated;
  });
  for (Condition& condition : conditions) {
    if (condition.type == State::kCreated)
      condition.is_true = !other && condition.reason.ends_with(Print(State::kCreated));
  }
}

void ParseConditions(const Document& document, const StatusSpelling& spelling, JobStatus& status) {
  const Array* const conditions = ArrayAt(document, {"conditions"});
  if (conditions == nullptr) return;
  for (const Document& item : *conditions) {
    const std::string_view name = StringAt(item, {"type"});
    const absl::Time changed = TimeAt(item, {"lastTransitionTime"}).value_or(absl::UnixEpoch());
    if (name == kSpecInvalid) {
      status.spec_problem = SpecProblem{.message = TextAt(item, {"message"}),
                                        .since = changed,
                                        .last_valid = TextAt(document, {"lastValidSpec"})};
    } else if (const auto type = ParseStateName(spelling.telling, name)) {
      status.conditions.push_back({.type = *type,
                                   .is_true = StringAt(item, {"status"}) == "True",
                                   .reason = TextAt(item, {"reason"}),
                                   .message = TextAt(item, {"message"}),
                                   .updated = TimeAt(item, {spelling.updated}).value_or(absl::UnixEpoch()),
                                   .changed = changed});
    }
  }
  if (spelling.created_stays) FindCurrent(status.conditions);
}

// ---- What only a job with phases has

void AddPhaseFields(Object& out, const JobStatus& status) {
  Object counts;
  for (const auto& [name, role] : status.roles) counts[name] = role.restarts;
  const Condition* const current = status.Current();
  out["phase"] = current == nullptr ? "" : StateName(Telling::kByPhase, current->type);
  out["RestartCount"] = std::move(counts);
  out["RestartReplicaName"] = status.restarting_role;
  AddTime(out, "startRunningTime", status.run_time);
  if (status.ending) {
    out["ending"] = Object{{"phase", StateName(Telling::kByPhase, status.ending->state)},
                           {"reason", status.ending->reason},
                           {"message", status.ending->message}};
  }
  if (status.members.epoch > 0)
    out["members"] = Object{{"epoch", status.members.epoch}, {"fingerprint", status.members.fingerprint}};
  if (auto progress = ParseJson(status.progress); progress.ok()) out["progress"] = *std::move(progress);
}

void ParsePhaseFields(const Document& status, JobStatus& out) {
  out.run_time = TimeAt(status, {"startRunningTime"});
  out.restarting_role = TextAt(status, {"RestartReplicaName"});
  const auto state = ParseStateName(Telling::kByPhase, StringAt(status, {"ending", "phase"}));
  if (state && IsEnd(*state)) {
    out.ending = Ending{.state = *state,
                        .reason = TextAt(status, {"ending", "reason"}),
                        .message = TextAt(status, {"ending", "message"})};
  }
  out.members = {.epoch = LongAt(status, {"members", "epoch"}),
                 .fingerprint = TextAt(status, {"members", "fingerprint"})};
  if (const Document* const progress = Find(status, {"progress"})) out.progress = PrintJson(*progress);
}

// "3/4": pods that run or have completed, of all.
void ParseReady(std::string_view text, JobStatus& status) {
  const std::size_t slash = std::min(text.find('/'), text.size());
  status.ready = ParseNumber<int>(text.substr(0, slash)).value_or(0);
  status.wanted = ParseNumber<int>(text.substr(std::min(slash + 1, text.size()))).value_or(0);
}

}  // namespace

std::optional<absl::Time> TimeAt(const Document& document, Path path) {
  const std::string_view text = StringAt(document, path);
  if (text.empty()) return std::nullopt;
  const auto time = ParseTime(text);
  return time.ok() ? std::optional(*time) : std::nullopt;
}

int CountAt(const Document& document, Path path) {
  return static_cast<int>(
      std::clamp<std::int64_t>(IntAt(document, path).value_or(0), 0, std::numeric_limits<int>::max()));
}

std::int64_t LongAt(const Document& document, Path path) {
  constexpr std::int64_t kMost = 1'000'000'000'000'000;
  return std::clamp<std::int64_t>(IntAt(document, path).value_or(0), 0, kMost);
}

Document PrintStatus(const JobStatus& status, const StatusSpelling& spelling) {
  Object roles;
  Object restarts;
  for (const auto& [name, role] : status.roles) {
    roles[name] = PrintRole(role, spelling);
    if (Object known = PrintRestarts(role); !known.empty()) restarts[name] = std::move(known);
  }
  Object out{{"observedGeneration", status.observed_generation},
             {"ready", StrCat(status.ready, "/", status.wanted)},
             {spelling.restarts, status.CountRestarts()},
             {spelling.counters, std::move(roles)},
             {"conditions", PrintConditions(status, spelling)}};
  if (!restarts.empty()) out["restarts"] = std::move(restarts);
  AddTime(out, "startTime", status.start_time);
  AddTime(out, spelling.ended, status.completion_time);
  AddTime(out, "lastReconcileTime", status.last_reconcile_time);
  if (status.gang_returns > 0) {
    Object gang{{"returns", status.gang_returns}};
    AddTime(gang, "retryTime", status.gang_retry);
    out["gang"] = std::move(gang);
  }
  if (status.spec_problem && !status.spec_problem->last_valid.empty())
    out["lastValidSpec"] = status.spec_problem->last_valid;
  if (spelling.HasPhase()) AddPhaseFields(out, status);
  return out;
}

JobStatus ParseStatus(const Document* status, const StatusSpelling& spelling) {
  JobStatus out;
  if (status == nullptr) return out;
  out.observed_generation = IntAt(*status, {"observedGeneration"}).value_or(0);
  ParseReady(StringAt(*status, {"ready"}), out);
  out.start_time = TimeAt(*status, {"startTime"});
  out.completion_time = TimeAt(*status, {spelling.ended});
  out.last_reconcile_time = TimeAt(*status, {"lastReconcileTime"});
  out.gang_returns = CountAt(*status, {"gang", "returns"});
  out.gang_retry = TimeAt(*status, {"gang", "retryTime"});
  if (const Object* const roles = ObjectAt(*status, {spelling.counters})) {
    for (const auto& role : *roles) ParseRole(role.value(), spelling, out.roles[std::string(Key(role))]);
  }
  if (const Object* const restarts = ObjectAt(*status, {"restarts"})) {
    for (const auto& role : *restarts) ParseRestarts(role.value(), out.roles[std::string(Key(role))]);
  }
  ParseConditions(*status, spelling, out);
  if (spelling.HasPhase()) ParsePhaseFields(*status, out);
  return out;
}

}  // namespace trainyard::job
