#include "operator/preview.h"

#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "job/telling.h"
#include "operator/caches.h"

namespace trainyard::ops {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(10);

std::string StateOf(const job::JobView& view, const job::JobStatus& status) {
  const job::Condition* current = status.Current();
  return current == nullptr ? "New" : std::string(job::StateName(view.spec.telling, current->type));
}

// What the plan has to say of the job: the state that it is in, or on the way to.
std::string MessageOf(const job::JobStatus& status) {
  const job::Condition* shown = status.Current();
  if (shown == nullptr && !status.conditions.empty()) shown = &status.conditions.back();
  return shown == nullptr ? "" : StrCat(shown->reason, ": ", shown->message);
}

absl::Status NoSuchJob(const Kind& kind, const Caches& caches, const kube::ObjectKey& key) {
  std::string names;
  for (const auto& job : caches.ListJobs()) StrAppend(names, names.empty() ? "" : ", ", job->meta.name);
  return absl::NotFoundError(
      StrCat("there is no ", kind.resource().kind, " ", key.Str(),
             names.empty() ? "; the namespace has none" : StrCat("; there are: ", names)));
}

}  // namespace

absl::StatusOr<job::JobView> ViewNew(const Kind& kind, Document document) {
  const std::string api_version = kind.resource().ApiVersion();
  if (StringAt(document, {"kind"}) != kind.resource().kind ||
      StringAt(document, {"apiVersion"}) != api_version) {
    return absl::InvalidArgumentError(StrCat("it is a ",
                                             StringAt(document, {"kind"}, "document without a kind"), " of ",
                                             StringAt(document, {"apiVersion"}, "no version"), ", and not a ",
                                             kind.resource().kind, " of ", api_version));
  }
  Object& metadata = MakeObjectAt(document, {"metadata"});
  if (!metadata.contains("namespace")) metadata["namespace"] = "default";
  if (!metadata.contains("uid")) metadata["uid"] = "00000000-0000-0000-0000-000000000000";
  Remove(document.get_object(), "status");
  TY_ASSIGN_OR_RETURN(const CompactJob job, kind.Decode(PrintJson(document)));
  return job::JobView{.name = job.meta.name,
                      .ns = std::string(job.meta.ns.view()),
                      .uid = job.meta.uid,
                      .generation = 1,
                      .spec = job.spec,
                      .invalid = job.invalid};
}

absl::StatusOr<job::JobView> ViewLive(const Kind& kind, kube::Api& api, Clock& clock,
                                      const kube::ObjectKey& key) {
  // What cannot work is told at once, where a cache would go on trying.
  const auto first = api.List(kind.resource(), key.ns, {.limit = 1});
  if (kube::IsNotFound(first.status())) {
    return absl::NotFoundError(
        StrCat("the cluster knows no ", kind.resource().kind,
               "; `kubectl apply -k deploy/` puts it there, or `trainyard up` has it"));
  }
  if (!first.ok()) return Annotate(first.status(), StrCat("cannot list ", kind.resource().plural));
  Caches caches(api, clock, kind, {.ns = key.ns}, [](const kube::ObjectKey&, Caches::News) {});
  caches.Start();
  const absl::Status synced = caches.WaitForSync(kPatience);
  if (!synced.ok()) return synced;
  const auto job = caches.FindJob(key);
  if (job == nullptr) return NoSuchJob(kind, caches, key);
  return caches.Observe(*job);
}

std::string PrintPlan(const job::JobView& view, const job::JobPlan& plan) {
  std::string out = StrCat(view.spec.kind, " ", view.ns, "/", view.name, ": ", StateOf(view, view.status));
  if (StateOf(view, plan.status) != StateOf(view, view.status))
    StrAppend(out, " -> ", StateOf(view, plan.status));
  StrAppend(out, "\n");
  if (const std::string message = MessageOf(plan.status); !message.empty())
    StrAppend(out, "  ", message, "\n");
  for (const job::Action& action : plan.actions) StrAppend(out, "  ", job::Print(action), "\n");
  if (plan.actions.empty()) {
    const bool stores = !(plan.status == view.status);
    StrAppend(out, stores ? "  store the status, then look again\n" : "  nothing to do\n");
  }
  if (plan.wake_after && *plan.wake_after > absl::ZeroDuration()) {
    const std::string after = absl::FormatDuration(absl::Trunc(*plan.wake_after, absl::Milliseconds(1)));
    StrAppend(out, "  look again in ", after, "\n");
  }
  return out;
}

Document PlanToJson(const job::JobView& view, const job::JobPlan& plan) {
  Array actions;
  for (const job::Action& action : plan.actions) actions.emplace_back(job::Print(action));
  Object out{{"kind", view.spec.kind},
             {"namespace", view.ns},
             {"name", view.name},
             {"state", StateOf(view, view.status)},
             {"nextState", StateOf(view, plan.status)},
             {"message", MessageOf(plan.status)},
             {"actions", std::move(actions)}};
  if (plan.wake_after) out["wakeAfterSeconds"] = absl::ToDoubleSeconds(*plan.wake_after);
  return out;
}

}  // namespace trainyard::ops
