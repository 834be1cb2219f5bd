#include "operator/preview.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "base/status.h"
#include "base/text.h"
#include "job/telling.h"
#include "kube/quantity.h"
#include "reconcile/caches.h"

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

absl::Status NoSuchJob(const reconcile::Kind& kind, const reconcile::Caches& caches,
                       const kube::ObjectKey& key) {
  std::string names;
  for (const auto& job : caches.ListJobs()) StrAppend(names, names.empty() ? "" : ", ", job->meta.name);
  return absl::NotFoundError(
      StrCat("there is no ", kind.resource().kind, " ", key.Str(),
             names.empty() ? "; the namespace has none" : StrCat("; there are: ", names)));
}

// What cannot work is told at once, where a cache would go on trying.
absl::Status CheckKnown(const reconcile::Kind& kind, kube::Api& api, const std::string& ns) {
  const auto first = api.List(kind.resource(), ns, {.limit = 1});
  if (kube::IsNotFound(first.status())) {
    return absl::NotFoundError(
        StrCat("the cluster knows no ", kind.resource().kind,
               "; `kubectl apply -k deploy/` puts it there, or `trainyard up` has it"));
  }
  if (!first.ok()) return Annotate(first.status(), StrCat("cannot list ", kind.resource().plural));
  return absl::OkStatus();
}

std::string Percent(std::int64_t part, std::int64_t whole) {
  return whole == 0
             ? "-"
             : StrCat(static_cast<int>(100.0 * static_cast<double>(part) / static_cast<double>(whole)), " %");
}

std::string PrintAmount(std::string_view resource, std::int64_t milli) {
  constexpr std::int64_t kMilli = 1000;
  if (resource == "memory")
    return FormatBytes(static_cast<std::uint64_t>(std::max<std::int64_t>(milli, 0) / kMilli));
  if (resource == "pods") return StrCat(milli / kMilli);
  return kube::Quantity::FromMilli(milli).Print();
}

}  // namespace

absl::StatusOr<ScalingPreview> ViewScaling(const std::vector<std::unique_ptr<reconcile::Kind>>& kinds,
                                           kube::Api& api, Clock& clock, const job::scale::Limits& limits) {
  const auto nodes = api.List(kube::Resource::Nodes(), "", {.limit = 1});
  if (!nodes.ok()) return Annotate(nodes.status(), "cannot list nodes");
  reconcile::Surroundings surroundings(api, clock, {});
  std::vector<std::pair<const reconcile::Kind*, std::unique_ptr<reconcile::Caches>>> all;
  for (const auto& kind : kinds) {
    if (!kind->is_elastic()) continue;
    TY_RETURN_IF_ERROR(CheckKnown(*kind, api, ""));
    all.emplace_back(kind.get(), std::make_unique<reconcile::Caches>(
                                     api, clock, *kind, surroundings, reconcile::Caches::Options(),
                                     [](const kube::ObjectKey&, reconcile::Caches::News) {}));
  }
  const absl::Cleanup stop = [&] { surroundings.Stop(); };  // before the caches go, which it tells
  surroundings.WantLoad();
  surroundings.Start();
  for (const auto& [kind, caches] : all) caches->Start();
  for (const auto& [kind, caches] : all) TY_RETURN_IF_ERROR(caches->WaitForSync(kPatience));
  TY_RETURN_IF_ERROR(surroundings.WaitForLoad(kPatience));
  std::vector<job::JobView> jobs;
  std::map<std::string, PodRequests> requests;
  for (const auto& [kind, caches] : all) {
    for (const auto& job : caches->ListJobs()) {
      if (!IsElastic(*job)) continue;
      requests[job->meta.uid] = FindRequests(*kind, *job);
      jobs.push_back(caches->Observe(*job));
    }
  }
  ScalingPreview preview{
      .scene = ObserveScaling(jobs, requests, *surroundings.ListLoad(), surroundings.ListNodes())};
  preview.changes =
      job::scale::PlanScaling(preview.scene.cluster, preview.scene.roles, preview.scene.waiting, limits);
  return preview;
}

std::string PrintScaling(const ScalingPreview& preview, const job::scale::Limits& limits) {
  const job::scale::Cluster& cluster = preview.scene.cluster;
  std::vector<std::vector<std::string>> load{{"RESOURCE", "REQUESTED", "TOTAL", "LOAD"}};
  for (const auto& [name, total] : cluster.total.amounts()) {
    const std::int64_t requested = cluster.requested.Get(name);
    if ((total == 0 && requested == 0) || name.starts_with(kNodeLabel)) continue;
    load.push_back({name, PrintAmount(name, requested), PrintAmount(name, total), Percent(requested, total)});
  }
  std::string out = Table(load, 3);
  StrAppend(out, "\nof the cpu ", static_cast<int>(limits.max_load * 100), " % may be asked for\n\n");
  if (preview.scene.roles.empty()) {
    StrAppend(out, "no job has a role that the autoscaler may resize\n");
    return out;
  }
  std::vector<std::vector<std::string>> roles{
      {"JOB", "ROLE", "NOW", "MIN", "MAX", "FULFILMENT", "NEXT", "WHY"}};
  for (const job::scale::ElasticRole& role : preview.scene.roles) {
    const auto change = std::ranges::find_if(preview.changes, [&](const job::scale::Change& one) {
      return one.job == role.job && one.role == role.role;
    });
    const bool changes = change != preview.changes.end();
    const std::string_view otherwise = role.waits              ? "it waits for room"
                                       : !role.settled         ? "its last change has not settled"
                                       : role.now == role.most ? "it has its most"
                                                               : "there is no room";
    roles.push_back({role.job, role.role, StrCat(role.now), StrCat(role.least), StrCat(role.most),
                     Percent(static_cast<std::int64_t>(job::scale::Fulfilment(role) * 1000), 1000),
                     changes ? StrCat(change->to) : "-", changes ? change->why : std::string(otherwise)});
  }
  StrAppend(out, Table(roles, 3), "\n");
  for (const job::scale::WaitingPods& waiting : preview.scene.waiting) {
    StrAppend(out, waiting.job, " waits for room for ", waiting.pods.size(),
              waiting.pods.size() == 1 ? " pod\n" : " pods\n");
  }
  return out;
}

Document ScalingToJson(const ScalingPreview& preview) {
  Array roles;
  for (const job::scale::ElasticRole& role : preview.scene.roles) {
    roles.push_back(Object{{"job", role.job},
                           {"role", role.role},
                           {"now", role.now},
                           {"min", role.least},
                           {"max", role.most},
                           {"fulfilment", job::scale::Fulfilment(role)},
                           {"settled", role.settled},
                           {"waits", role.waits}});
  }
  Array changes;
  for (const job::scale::Change& change : preview.changes) {
    changes.push_back(Object{{"job", change.job},
                             {"role", change.role},
                             {"from", change.from},
                             {"to", change.to},
                             {"why", change.why}});
  }
  Object load;
  for (const auto& [name, total] : preview.scene.cluster.total.amounts()) {
    if (name.starts_with(kNodeLabel)) continue;
    load[name] = Object{{"requestedMilli", preview.scene.cluster.requested.Get(name)}, {"totalMilli", total}};
  }
  return Object{{"load", std::move(load)}, {"roles", std::move(roles)}, {"changes", std::move(changes)}};
}

absl::StatusOr<job::JobView> ViewNew(const reconcile::Kind& kind, Document document) {
  if (StringAt(document, {"kind"}) != kind.resource().kind ||
      !kind.Serves(StringAt(document, {"apiVersion"}))) {
    return absl::InvalidArgumentError(StrCat("it is a ",
                                             StringAt(document, {"kind"}, "document without a kind"), " of ",
                                             StringAt(document, {"apiVersion"}, "no version"), ", and not a ",
                                             kind.resource().kind, " of ", kind.resource().ApiVersion()));
  }
  Object& metadata = MakeObjectAt(document, {"metadata"});
  if (!metadata.contains("namespace")) metadata["namespace"] = "default";
  if (!metadata.contains("uid")) metadata["uid"] = "00000000-0000-0000-0000-000000000000";
  Remove(document.get_object(), "status");
  TY_ASSIGN_OR_RETURN(const reconcile::CompactJob job, kind.Decode(PrintJson(document)));
  return job::JobView{.name = job.meta.name,
                      .ns = std::string(job.meta.ns.view()),
                      .uid = job.meta.uid,
                      .generation = 1,
                      .spec = job.spec,
                      .invalid = job.invalid};
}

absl::StatusOr<job::JobView> ViewLive(const reconcile::Kind& kind, kube::Api& api, Clock& clock,
                                      const kube::ObjectKey& key) {
  TY_RETURN_IF_ERROR(CheckKnown(kind, api, key.ns));
  reconcile::Surroundings surroundings(api, clock, {});
  reconcile::Caches caches(api, clock, kind, surroundings, {.ns = key.ns},
                           [](const kube::ObjectKey&, reconcile::Caches::News) {});
  const absl::Cleanup stop = [&] { surroundings.Stop(); };
  surroundings.Start();
  caches.Start();
  const absl::Status synced = caches.WaitForSync(kPatience);
  if (!synced.ok()) return synced;
  const auto job = caches.FindJob(key);
  if (job == nullptr) return NoSuchJob(kind, caches, key);
  job::JobView view = caches.Observe(*job);
  // What the operator was told is not known here; that it starts gangs by gates shows.
  if (std::ranges::any_of(view.pods, &job::PodView::gated)) view.policies.gang = job::GangScheduler::kGates;
  return view;
}

std::string PrintPlan(const job::JobView& view, const job::JobPlan& plan) {
  std::string out = StrCat(view.spec.kind, " ", view.ns, "/", view.name, ": ", StateOf(view, view.status));
  if (StateOf(view, plan.status) != StateOf(view, view.status))
    StrAppend(out, " -> ", StateOf(view, plan.status));
  StrAppend(out, "\n");
  if (const std::string message = MessageOf(plan.status); !message.empty())
    StrAppend(out, "  ", message, "\n");
  for (const job::Action& action : plan.actions()) StrAppend(out, "  ", job::Print(action), "\n");
  if (plan.actions().empty()) {
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
  for (const job::Action& action : plan.actions()) actions.emplace_back(job::Print(action));
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
