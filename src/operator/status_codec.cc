#include "operator/status_codec.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

#include "base/text.h"
#include "kube/rfc3339.h"

namespace trainyard::ops {
namespace {

std::optional<absl::Time> TimeAt(const Document& document, Path path) {
  const std::string_view text = StringAt(document, path);
  if (text.empty()) return std::nullopt;
  const auto time = kube::ParseTime(text);
  return time.ok() ? std::optional(*time) : std::nullopt;
}

int CountAt(const Document& document, Path path) {
  return static_cast<int>(
      std::clamp<std::int64_t>(IntAt(document, path).value_or(0), 0, std::numeric_limits<int>::max()));
}

std::int64_t LongAt(const Document& document, Path path) {
  return std::max<std::int64_t>(IntAt(document, path).value_or(0), 0);
}

void AddTime(Object& object, std::string_view key, const std::optional<absl::Time>& time) {
  if (time) object[key] = kube::PrintTime(*time);
}

Object PrintCounters(const job::RoleStatus& role) {
  Object out{{"active", role.active}, {"succeeded", role.succeeded}, {"failed", role.failed}};
  if (role.completed.Count() > 0) out["completedIndexes"] = role.completed.Print();
  return out;
}

Object PrintRestarts(const job::RoleStatus& role) {
  Object out{{"count", role.restarts}};
  if (role.disruptions > 0) out["disruptions"] = role.disruptions;
  if (role.settled > 0) out["settled"] = role.settled;
  if (!role.attempts.empty()) out["attempts"] = job::PrintAttempts(role.attempts);
  if (!role.last_cause.empty()) out["lastCause"] = role.last_cause;
  AddTime(out, "lastTime", role.last_time);
  return out;
}

Object PrintCondition(const job::Condition& condition) {
  return {{"type", job::Print(condition.type)},
          {"status", condition.is_true ? "True" : "False"},
          {"reason", condition.reason},
          {"message", condition.message},
          {"lastUpdateTime", kube::PrintTime(condition.updated)},
          {"lastTransitionTime", kube::PrintTime(condition.changed)}};
}

std::optional<job::Condition> ParseCondition(const Document& document) {
  const auto type = job::ParseState(StringAt(document, {"type"}));
  if (!type) return std::nullopt;
  return job::Condition{
      .type = *type,
      .is_true = StringAt(document, {"status"}) == "True",
      .reason = std::string(StringAt(document, {"reason"})),
      .message = std::string(StringAt(document, {"message"})),
      .updated = TimeAt(document, {"lastUpdateTime"}).value_or(absl::UnixEpoch()),
      .changed = TimeAt(document, {"lastTransitionTime"}).value_or(absl::UnixEpoch()),
  };
}

}  // namespace

Document PrintJobStatus(const job::JobStatus& status, std::string_view counters) {
  Object roles;
  Object restarts;
  for (const auto& [name, role] : status.roles) {
    roles[name] = PrintCounters(role);
    if (role.restarts > 0 || role.disruptions > 0 || !role.attempts.empty())
      restarts[name] = PrintRestarts(role);
  }
  Array conditions;
  for (const job::Condition& condition : status.conditions) conditions.push_back(PrintCondition(condition));
  Object out{{"observedGeneration", status.observed_generation},
             {"ready", StrCat(status.ready, "/", status.wanted)},
             {"restartCount", status.CountRestarts()}};
  AddTime(out, "startTime", status.start_time);
  AddTime(out, "completionTime", status.completion_time);
  AddTime(out, "lastReconcileTime", status.last_reconcile_time);
  out[counters] = std::move(roles);
  if (!restarts.empty()) out["restarts"] = std::move(restarts);
  out["conditions"] = std::move(conditions);
  return out;
}

job::JobStatus ParseJobStatus(const Document* status, std::string_view counters) {
  job::JobStatus out;
  if (status == nullptr) return out;
  out.observed_generation = IntAt(*status, {"observedGeneration"}).value_or(0);
  const std::string_view ready = StringAt(*status, {"ready"});
  const std::size_t slash = std::min(ready.find('/'), ready.size());
  out.ready = ParseNumber<int>(ready.substr(0, slash)).value_or(0);
  out.wanted = ParseNumber<int>(ready.substr(std::min(slash + 1, ready.size()))).value_or(0);
  out.start_time = TimeAt(*status, {"startTime"});
  out.completion_time = TimeAt(*status, {"completionTime"});
  out.last_reconcile_time = TimeAt(*status, {"lastReconcileTime"});
  if (const Object* roles = ObjectAt(*status, {counters})) {
    for (const auto& member : *roles) {
      job::RoleStatus& role = out.roles[std::string(Key(member))];
      role.active = CountAt(member.value(), {"active"});
      role.succeeded = CountAt(member.value(), {"succeeded"});
      role.failed = CountAt(member.value(), {"failed"});
      role.completed =
          job::IndexSet::Parse(StringAt(member.value(), {"completedIndexes"})).value_or(job::IndexSet());
    }
  }
  if (const Object* restarts = ObjectAt(*status, {"restarts"})) {
    for (const auto& member : *restarts) {
      job::RoleStatus& role = out.roles[std::string(Key(member))];
      role.restarts = LongAt(member.value(), {"count"});
      role.disruptions = LongAt(member.value(), {"disruptions"});
      role.settled = LongAt(member.value(), {"settled"});
      role.attempts =
          job::ParseAttempts(StringAt(member.value(), {"attempts"})).value_or(std::map<int, int>());
      role.last_cause = StringAt(member.value(), {"lastCause"});
      role.last_time = TimeAt(member.value(), {"lastTime"});
    }
  }
  if (const Array* conditions = ArrayAt(*status, {"conditions"})) {
    for (const Document& item : *conditions) {
      if (auto condition = ParseCondition(item)) out.conditions.push_back(*std::move(condition));
    }
  }
  return out;
}

}  // namespace trainyard::ops
