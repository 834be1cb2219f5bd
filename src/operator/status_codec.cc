#include "operator/status_codec.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>

#include "base/text.h"
#include "job/telling.h"
#include "kube/rfc3339.h"

namespace trainyard::ops {
namespace {

Object PrintCounters(const job::RoleStatus& role) {
  Object out{{"active", role.active}, {"succeeded", role.succeeded}, {"failed", role.failed}};
  if (role.completed.Count() > 0) out["completedIndexes"] = role.completed.Print();
  if (role.given_up.Count() > 0) out["failedIndexes"] = role.given_up.Print();
  if (role.size) out["size"] = *role.size;
  return out;
}

void ParseCounters(const Document& document, job::RoleStatus& role) {
  role.active = CountAt(document, {"active"});
  role.succeeded = CountAt(document, {"succeeded"});
  role.failed = CountAt(document, {"failed"});
  role.completed = IndexesAt(document, {"completedIndexes"});
  role.given_up = IndexesAt(document, {"failedIndexes"});
  role.size = SizeAt(document, {"size"});
}

Object PrintCondition(const job::Condition& condition, const ConditionSpelling& spelling) {
  const bool stays = spelling.created_stays && condition.type == job::State::kCreated;
  return {{"type", job::StateName(spelling.telling, condition.type)},
          {"status", condition.is_true || stays ? "True" : "False"},
          {"reason", condition.reason},
          {"message", condition.message},
          {spelling.updated, kube::PrintTime(condition.updated)},
          {"lastTransitionTime", kube::PrintTime(condition.changed)}};
}

// Of a job that was accepted, whether that is all that can be said of it: its pods exist, and it is in no
// other state.
void FindCurrent(std::vector<job::Condition>& conditions) {
  const bool other = std::ranges::any_of(conditions, [](const job::Condition& condition) {
    return condition.is_true && condition.type != job::State::kCreated;
  });
  for (job::Condition& condition : conditions) {
    if (condition.type == job::State::kCreated)
      condition.is_true = !other && condition.reason.ends_with(job::Print(job::State::kCreated));
  }
}

constexpr std::string_view kSpecInvalid = "SpecInvalid";

Object PrintSpecProblem(const job::SpecProblem& problem, const ConditionSpelling& spelling) {
  return {{"type", kSpecInvalid},
          {"status", "True"},
          {"reason", "InvalidSpec"},
          {"message", problem.message},
          {spelling.updated, kube::PrintTime(problem.since)},
          {"lastTransitionTime", kube::PrintTime(problem.since)}};
}

std::optional<job::Condition> ParseCondition(const Document& document, const ConditionSpelling& spelling) {
  const auto type = job::ParseStateName(spelling.telling, StringAt(document, {"type"}));
  if (!type) return std::nullopt;
  return job::Condition{
      .type = *type,
      .is_true = StringAt(document, {"status"}) == "True",
      .reason = std::string(StringAt(document, {"reason"})),
      .message = std::string(StringAt(document, {"message"})),
      .updated = TimeAt(document, {spelling.updated}).value_or(absl::UnixEpoch()),
      .changed = TimeAt(document, {"lastTransitionTime"}).value_or(absl::UnixEpoch()),
  };
}

Object PrintRestarts(const job::RoleStatus& role) {
  if (role.restarts == 0 && role.disruptions == 0 && role.attempts.empty() && role.seen.empty() &&
      role.last_cause.empty())
    return {};
  Object out{{"count", role.restarts}};
  if (role.disruptions > 0) out["disruptions"] = role.disruptions;
  if (!role.seen.empty()) out["seen"] = job::PrintAttempts(role.seen);
  if (!role.attempts.empty()) out["attempts"] = job::PrintAttempts(role.attempts);
  if (!role.last_cause.empty()) out["lastCause"] = role.last_cause;
  AddTime(out, "lastTime", role.last_time);
  return out;
}

}  // namespace

std::optional<absl::Time> TimeAt(const Document& document, Path path) {
  const std::string_view text = StringAt(document, path);
  if (text.empty()) return std::nullopt;
  const auto time = kube::ParseTime(text);
  return time.ok() ? std::optional(*time) : std::nullopt;
}

void AddTime(Object& object, std::string_view key, const std::optional<absl::Time>& time) {
  if (time) object[key] = kube::PrintTime(*time);
}

int CountAt(const Document& document, Path path) {
  return static_cast<int>(
      std::clamp<std::int64_t>(IntAt(document, path).value_or(0), 0, std::numeric_limits<int>::max()));
}

std::int64_t LongAt(const Document& document, Path path) {
  constexpr std::int64_t kMost = 1'000'000'000'000'000;
  return std::clamp<std::int64_t>(IntAt(document, path).value_or(0), 0, kMost);
}

std::optional<int> SizeAt(const Document& document, Path path) {
  const auto size = IntAt(document, path);
  return size && *size >= 0 && *size <= job::kMostIndex ? std::optional(static_cast<int>(*size))
                                                        : std::nullopt;
}

job::IndexSet IndexesAt(const Document& document, Path path) {
  return job::IndexSet::Parse(StringAt(document, path)).value_or(job::IndexSet());
}

Array PrintConditions(const job::JobStatus& status, const ConditionSpelling& spelling) {
  Array out;
  // kubectl shows the last condition as the state of a job that has no phase, and else the first that is
  // True.
  const bool first = spelling.telling == job::Telling::kByState;
  if (status.spec_problem && first) out.push_back(PrintSpecProblem(*status.spec_problem, spelling));
  for (const job::Condition& condition : status.conditions)
    out.push_back(PrintCondition(condition, spelling));
  if (status.spec_problem && !first) out.push_back(PrintSpecProblem(*status.spec_problem, spelling));
  return out;
}

void ParseConditions(const Document& document, const ConditionSpelling& spelling, job::JobStatus& status) {
  const Array* conditions = ArrayAt(document, {"conditions"});
  if (conditions == nullptr) return;
  for (const Document& item : *conditions) {
    if (StringAt(item, {"type"}) == kSpecInvalid) {
      status.spec_problem =
          job::SpecProblem{.message = std::string(StringAt(item, {"message"})),
                           .since = TimeAt(item, {"lastTransitionTime"}).value_or(absl::UnixEpoch()),
                           .last_valid = std::string(StringAt(document, {"lastValidSpec"}))};
      continue;
    }
    if (auto condition = ParseCondition(item, spelling)) status.conditions.push_back(*std::move(condition));
  }
  if (spelling.created_stays) FindCurrent(status.conditions);
}

void AddLastValidSpec(Object& object, const job::JobStatus& status) {
  if (status.spec_problem && !status.spec_problem->last_valid.empty())
    object["lastValidSpec"] = status.spec_problem->last_valid;
}

void AddGang(Object& object, const job::JobStatus& status) {
  if (status.gang_returns == 0) return;
  object["gang"] = Object{{"returns", status.gang_returns}};
  AddTime(object["gang"].get_object(), "retryTime", status.gang_retry);
}

void ParseGang(const Document& document, job::JobStatus& status) {
  status.gang_returns = CountAt(document, {"gang", "returns"});
  status.gang_retry = TimeAt(document, {"gang", "retryTime"});
}

void AddRestarts(Object& object, const job::JobStatus& status) {
  Object restarts;
  for (const auto& [name, role] : status.roles) {
    if (Object known = PrintRestarts(role); !known.empty()) restarts[name] = std::move(known);
  }
  if (!restarts.empty()) object["restarts"] = std::move(restarts);
}

void ParseRestarts(const Document& document, job::JobStatus& status) {
  const Object* restarts = ObjectAt(document, {"restarts"});
  if (restarts == nullptr) return;
  for (const auto& member : *restarts) {
    job::RoleStatus& role = status.roles[std::string(Key(member))];
    role.restarts = LongAt(member.value(), {"count"});
    role.disruptions = LongAt(member.value(), {"disruptions"});
    role.seen = job::ParseAttempts(StringAt(member.value(), {"seen"})).value_or(std::map<int, int>());
    role.attempts = job::ParseAttempts(StringAt(member.value(), {"attempts"})).value_or(std::map<int, int>());
    role.last_cause = StringAt(member.value(), {"lastCause"});
    role.last_time = TimeAt(member.value(), {"lastTime"});
  }
}

std::string PrintReady(const job::JobStatus& status) { return StrCat(status.ready, "/", status.wanted); }

void ParseReady(std::string_view text, job::JobStatus& status) {
  const std::size_t slash = std::min(text.find('/'), text.size());
  status.ready = ParseNumber<int>(text.substr(0, slash)).value_or(0);
  status.wanted = ParseNumber<int>(text.substr(std::min(slash + 1, text.size()))).value_or(0);
}

Document PrintJobStatus(const job::JobStatus& status, std::string_view counters,
                        const ConditionSpelling& spelling) {
  Object roles;
  for (const auto& [name, role] : status.roles) roles[name] = PrintCounters(role);
  Object out{{"observedGeneration", status.observed_generation},
             {"ready", PrintReady(status)},
             {"restartCount", status.CountRestarts()}};
  AddTime(out, "startTime", status.start_time);
  AddTime(out, "completionTime", status.completion_time);
  AddTime(out, "lastReconcileTime", status.last_reconcile_time);
  out[counters] = std::move(roles);
  AddRestarts(out, status);
  AddGang(out, status);
  AddLastValidSpec(out, status);
  out["conditions"] = PrintConditions(status, spelling);
  return out;
}

job::JobStatus ParseJobStatus(const Document* status, std::string_view counters,
                              const ConditionSpelling& spelling) {
  job::JobStatus out;
  if (status == nullptr) return out;
  out.observed_generation = IntAt(*status, {"observedGeneration"}).value_or(0);
  ParseReady(StringAt(*status, {"ready"}), out);
  out.start_time = TimeAt(*status, {"startTime"});
  out.completion_time = TimeAt(*status, {"completionTime"});
  out.last_reconcile_time = TimeAt(*status, {"lastReconcileTime"});
  if (const Object* roles = ObjectAt(*status, {counters})) {
    for (const auto& member : *roles) ParseCounters(member.value(), out.roles[std::string(Key(member))]);
  }
  ParseRestarts(*status, out);
  ParseGang(*status, out);
  ParseConditions(*status, spelling, out);
  return out;
}

}  // namespace trainyard::ops
