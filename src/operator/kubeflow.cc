#include "operator/kubeflow.h"

#include <algorithm>

#include "base/check.h"
#include "base/letters.h"
#include "base/status.h"
#include "base/text.h"
#include "job/end_policy.h"
#include "job/names.h"
#include "job/status_document.h"
#include "operator/pod_template.h"
#include "reconcile/labels.h"

namespace trainyard::ops {
namespace {

using reconcile::CompactJob;
using reconcile::Place;

// As the original's v1 labels the pods of all its kinds.
constexpr std::string_view kJobName = "training.kubeflow.org/job-name";
constexpr std::string_view kOperatorName = "training.kubeflow.org/operator-name";
constexpr std::string_view kReplicaType = "training.kubeflow.org/replica-type";
constexpr std::string_view kReplicaIndex = "training.kubeflow.org/replica-index";
constexpr std::string_view kJobRole = "training.kubeflow.org/job-role";

// What the kubelet does not restart, the operator recreates, or nobody does.
std::string_view PodRestartPolicy(job::InPlace in_place) {
  switch (in_place) {
    case job::InPlace::kEverything:
      return "Always";
    case job::InPlace::kFailures:
      return "OnFailure";
    case job::InPlace::kNothing:
      return "Never";
  }
  return "Never";
}

// The pod that leads the others: the only one of its role that decides, or else worker 0.
bool Leads(const job::JobSpec& spec, const Place& place) {
  const auto first = std::ranges::find_if(spec.roles, [](const job::RoleSpec& role) {
    return role.replicas > 0 && role.complete != job::EndPolicy::kNone;
  });
  return first != spec.roles.end() && first->slug == place.role && place.index == 0;
}

}  // namespace

KubeflowKind::KubeflowKind(kube::Resource resource, std::vector<std::string> names, std::string_view main,
                           const SeatLabels& labels, const job::StatusSpelling& spelling)
    : resource_(std::move(resource)),
      names_(std::move(names)),
      main_(main),
      labels_(labels),
      selector_(StrCat(labels.all.first, "=", labels.all.second)),
      spelling_(spelling) {}

job::StatusSpelling KubeflowKind::SpellingOf(const Dialect& dialect) const {
  job::StatusSpelling spelling = spelling_;
  spelling.created_stays = dialect.IsV1();
  return spelling;
}

std::vector<std::string> KubeflowKind::place_labels() const {
  return {std::string(labels_.job), std::string(labels_.role), std::string(labels_.index)};
}

std::optional<Place> KubeflowKind::FindPlace(const kube::ObjectMeta& meta) const {
  const auto index = ParseNumber<int>(meta.labels.Get(labels_.index));
  const std::string_view job = meta.labels.Get(labels_.job);
  const std::string_view role = meta.labels.Get(labels_.role);
  if (!index || job.empty() || role.empty()) return std::nullopt;
  return Place{.job = std::string(job), .role = std::string(role), .index = *index};
}

Object KubeflowKind::LabelsOf(const kube::ObjectMeta& job) const {
  return {
      {labels_.all.first, labels_.all.second}, {labels_.job, job.name}, {reconcile::kJobUidLabel, job.uid}};
}

Object KubeflowKind::LabelsOf(const kube::ObjectMeta& job, const Place& place) const {
  Object labels = LabelsOf(job);
  labels[labels_.role] = place.role;
  labels[labels_.index] = StrCat(place.index);
  return labels;
}

absl::StatusOr<CompactJob> KubeflowKind::Decode(std::string json) const {
  CompactJob job;
  TY_ASSIGN_OR_RETURN(const Document document, ParseJson(json));
  TY_ASSIGN_OR_RETURN(job.meta, kube::ParseObjectMeta(std::move(json)));
  const Document* spec = Find(document, {"spec"});
  const Dialect& dialect = DialectOf(document);
  ParsedSpec read = ParseSpec(dialect, job.meta.Key(), spec);
  job.spec = std::move(read.spec);
  job.invalid = std::move(read.invalid);
  job.status = job::ParseStatus(Find(document, {"status"}), SpellingOf(dialect));
  if (spec != nullptr && job.invalid.empty() && !job.status.IsFinished()) job.spec_text = PrintJson(*spec);
  return job;
}

Document KubeflowKind::PrintStatus(const CompactJob& job, const job::JobStatus& status) const {
  const Dialect& dialect = FindDialect(job.spec.version);
  Document out = job::PrintStatus(status, SpellingOf(dialect));
  Object& members = out.get_object();
  Object roles = members[spelling_.counters].get_object();
  if (dialect.IsV1()) {
    for (auto& role : roles) {
      role.value().get_object()["selector"] =
          StrCat(kJobName, "=", job.meta.name, ",", kOperatorName, "=", dialect.operator_name, ",",
                 kReplicaType, "=", LowerCase(Key(role)));
    }
  }
  // Those that read the job in another version find its counters where that has them.
  for (const std::string_view counters : {spelling_.counters, job::kPyTorchJobStatus.counters})
    members[counters] = roles;
  return out;
}

KubeflowMaker::KubeflowMaker(const KubeflowKind& kind, const CompactJob& job)
    : kind_(kind),
      job_(job),
      dialect_(kind.FindDialect(job.spec.version)),
      spec_(ParseJson(job.spec_text).value()) {
  for (const job::RoleSpec& role : job.spec.roles) {
    const Document* replica = FindReplicaSpec(dialect_, spec_, role.slug);
    TY_CHECK(replica != nullptr, "a role has no replica spec");
    Role& made = roles_[role.slug];
    made = {
        .spec = &role, .pod_template = Find(*replica, {"template"}), .port = FindPort(dialect_, *replica)};
    TY_CHECK(made.pod_template != nullptr, "a role has no template");
  }
}

std::string KubeflowMaker::MakePod(const job::CreatePod& create) const {
  const Role& from = roles_.find(create.role)->second;
  const Place place{.job = job_.meta.name, .role = create.role, .index = create.index};
  Document pod = PodFromTemplate(*from.pod_template, {.name = Name(create.role, create.index),
                                                      .ns = job_.meta.ns.view(),
                                                      .labels = PodLabels(place),
                                                      .attempt = create.attempt,
                                                      .owner = Owner(),
                                                      .gang = create.gang});
  Object& spec = MakeObjectAt(pod, {"spec"});
  spec["restartPolicy"] = PodRestartPolicy(from.spec->restart.in_place);
  ForEachContainer(spec, [&](Object& container) { FillContainer(container, from, place, create.attempt); });
  if (job_.spec.config_in_file) MountConfig(spec, reconcile::ConfigName(job_));
  return PrintJson(pod);
}

std::string KubeflowMaker::MakeService(const job::CreateService& create) const {
  const Role& from = roles_.find(create.role)->second;
  const Place place{.job = job_.meta.name, .role = create.role, .index = create.index};
  return PrintJson(HeadlessService(
      {.name = Name(create.role, create.index),
       .ns = job_.meta.ns.view(),
       .labels = kind_.LabelsOf(job_.meta, place),
       .owner = Owner()},
      Array{Object{{"name", dialect_.port_name}, {"port", from.port}, {"targetPort", from.port}}}));
}

std::string KubeflowMaker::Name(std::string_view role, int index) const {
  return job::PodName(reconcile::NamingOf(job_), role, index);
}

const KubeflowMaker::Role* KubeflowMaker::FindRole(std::string_view slug) const {
  const auto found = roles_.find(slug);
  return found == roles_.end() ? nullptr : &found->second;
}

Object KubeflowMaker::PodLabels(const Place& place) const {
  Object labels = kind_.LabelsOf(job_.meta, place);
  if (!dialect_.IsV1()) return labels;
  labels[kJobName] = job_.meta.name;
  labels[kOperatorName] = dialect_.operator_name;
  labels[kReplicaType] = place.role;
  labels[kReplicaIndex] = StrCat(place.index);
  if (Leads(job_.spec, place)) labels[kJobRole] = "master";
  return labels;
}

Object KubeflowMaker::Owner() const {
  kube::Resource resource = kind_.resource();
  resource.version = dialect_.version;  // the one that the job's user knows it by
  return reconcile::OwnerReference(resource, job_.meta);
}

void KubeflowMaker::FillContainer(Object& container, const Role& from, const Place& place,
                                  int attempt) const {
  const Document* name = container.if_contains("name");
  const bool main = name != nullptr && Text(*name) == dialect_.container;
  Array& env = MakeArrayAt(container, "env");
  AddVariables(env, place, main);
  AddEnv(env, "TRAINYARD_ATTEMPT", StrCat(attempt));
  if (!main) return;
  Array& ports = MakeArrayAt(container, "ports");
  for (const Document& port : ports) {
    if (StringAt(port, {"name"}) == dialect_.port_name) return;
  }
  ports.push_back(Object{{"name", dialect_.port_name}, {"containerPort", from.port}});
}

}  // namespace trainyard::ops
