#include "operator/aijob_status.h"

#include <optional>
#include <string>
#include <utility>

#include "base/text.h"
#include "job/job_spec.h"
#include "job/telling.h"
#include "kube/rfc3339.h"
#include "operator/status_codec.h"

namespace trainyard::ops {
namespace {

using job::RestartScope;

constexpr ConditionSpelling kSpelling{.telling = job::Telling::kByPhase, .updated = "lastProbeTime"};

std::string_view PhaseName(job::State state) { return job::StateName(job::Telling::kByPhase, state); }

void AddCount(Object& object, std::string_view key, int count) {
  if (count > 0) object[key] = count;
}

Object PrintRole(const job::RoleStatus& role) {
  Object out;
  AddCount(out, "pending", role.pending);
  AddCount(out, "scheduled", role.scheduled);
  AddCount(out, "active", role.active);
  AddCount(out, "succeeded", role.succeeded);
  AddCount(out, "restarting", role.restarting);
  AddCount(out, "failed", role.failed);
  if (role.size) out["size"] = *role.size;
  if (role.completed.Count() > 0) out["completedIndexes"] = role.completed.Print();
  if (role.given_up.Count() > 0) out["failedIndexes"] = role.given_up.Print();
  if (role.node_failed) out["nodeFailed"] = true;
  if (role.barrier != RestartScope::kPod)
    out["restartScope"] = role.barrier == RestartScope::kJob ? "All" : "Replica";
  if (!role.stuck.empty()) {
    Object stuck;
    for (const auto& [index, since] : role.stuck) stuck[StrCat(index)] = kube::PrintTime(since);
    out["creationErrors"] = std::move(stuck);
  }
  return out;
}

void ParseRole(const Document& document, job::RoleStatus& role) {
  role.pending = CountAt(document, {"pending"});
  role.scheduled = CountAt(document, {"scheduled"});
  role.active = CountAt(document, {"active"});
  role.succeeded = CountAt(document, {"succeeded"});
  role.restarting = CountAt(document, {"restarting"});
  role.failed = CountAt(document, {"failed"});
  role.size = SizeAt(document, {"size"});
  role.completed = IndexesAt(document, {"completedIndexes"});
  role.given_up = IndexesAt(document, {"failedIndexes"});
  role.node_failed = BoolAt(document, {"nodeFailed"});
  const std::string_view scope = StringAt(document, {"restartScope"});
  role.barrier = scope == "All"       ? RestartScope::kJob
                 : scope == "Replica" ? RestartScope::kRole
                                      : RestartScope::kPod;
  const Object* stuck = ObjectAt(document, {"creationErrors"});
  if (stuck == nullptr) return;
  for (const auto& member : *stuck) {
    const auto index = ParseNumber<int>(Key(member));
    const auto since = kube::ParseTime(Text(member.value()));
    if (index && *index >= 0 && since.ok()) role.stuck[*index] = *since;
  }
}

}  // namespace

Document PrintAiJobStatus(const job::JobStatus& status) {
  Object roles;
  Object counts;
  for (const auto& [name, role] : status.roles) {
    roles[name] = PrintRole(role);
    counts[name] = role.restarts;
  }
  const job::Condition* current = status.Current();
  Object out{{"phase", current == nullptr ? "" : PhaseName(current->type)},
             {"ready", PrintReady(status)},
             {"restartTotal", status.CountRestarts()},
             {"conditions", PrintConditions(status, kSpelling)},
             {"replicaStatuses", std::move(roles)},
             {"RestartCount", std::move(counts)},
             {"RestartReplicaName", status.restarting_role},
             {"observedGeneration", status.observed_generation}};
  AddTime(out, "startTime", status.start_time);
  AddTime(out, "startRunningTime", status.run_time);
  AddTime(out, "endTime", status.completion_time);
  AddTime(out, "lastReconcileTime", status.last_reconcile_time);
  AddRestarts(out, status);
  AddGang(out, status);
  AddLastValidSpec(out, status);
  if (status.ending) {
    out["ending"] = Object{{"phase", PhaseName(status.ending->state)},
                           {"reason", status.ending->reason},
                           {"message", status.ending->message}};
  }
  if (status.members.epoch > 0) {
    out["members"] = Object{{"epoch", status.members.epoch}, {"fingerprint", status.members.fingerprint}};
  }
  if (auto progress = ParseJson(status.progress); progress.ok()) out["progress"] = *std::move(progress);
  return out;
}

job::JobStatus ParseAiJobStatus(const Document* status) {
  job::JobStatus out;
  if (status == nullptr) return out;
  out.observed_generation = IntAt(*status, {"observedGeneration"}).value_or(0);
  ParseReady(StringAt(*status, {"ready"}), out);
  out.start_time = TimeAt(*status, {"startTime"});
  out.run_time = TimeAt(*status, {"startRunningTime"});
  out.completion_time = TimeAt(*status, {"endTime"});
  out.last_reconcile_time = TimeAt(*status, {"lastReconcileTime"});
  out.restarting_role = StringAt(*status, {"RestartReplicaName"});
  if (const Object* roles = ObjectAt(*status, {"replicaStatuses"})) {
    for (const auto& member : *roles) ParseRole(member.value(), out.roles[std::string(Key(member))]);
  }
  ParseRestarts(*status, out);
  ParseGang(*status, out);
  const auto state = job::ParseStateName(job::Telling::kByPhase, StringAt(*status, {"ending", "phase"}));
  if (state && job::IsEnd(*state)) {
    out.ending = job::Ending{.state = *state,
                             .reason = std::string(StringAt(*status, {"ending", "reason"})),
                             .message = std::string(StringAt(*status, {"ending", "message"}))};
  }
  out.members = {.epoch = LongAt(*status, {"members", "epoch"}),
                 .fingerprint = std::string(StringAt(*status, {"members", "fingerprint"}))};
  ParseConditions(*status, kSpelling, out);
  if (const Document* const progress = Find(*status, {"progress"})) out.progress = PrintJson(*progress);
  return out;
}

}  // namespace trainyard::ops
