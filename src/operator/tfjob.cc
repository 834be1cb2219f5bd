#include "operator/tfjob.h"

#include <map>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/json.h"
#include "base/status.h"
#include "base/text.h"
#include "job/names.h"
#include "job/tf_config.h"
#include "operator/pod_template.h"
#include "operator/status_codec.h"
#include "operator/tfjob_spec.h"
#include "reconcile/labels.h"

namespace trainyard::ops {
namespace {

constexpr std::string_view kTfJobGroup = "kubeflow.org";
constexpr std::string_view kCounters = "tfReplicaStatuses";
// Those that users of the original select by.
constexpr std::string_view kTfJobGroupLabel = "group_name";
constexpr std::string_view kTfJobNameLabel = "tf_job_name";
constexpr std::string_view kTypeLabel = "tf-replica-type";
constexpr std::string_view kTypeIndexLabel = "tf-replica-index";

constexpr std::string_view kEval = "eval";
constexpr std::string_view kTfConfig = "TF_CONFIG";

const kube::Resource& TfJobs() {
  static const auto* const resource =
      new kube::Resource{.group = "kubeflow.org", .version = "v1alpha2", .plural = "tfjobs", .kind = "TFJob"};
  return *resource;
}

Object PrintTfJobLabels(const kube::ObjectMeta& job) {
  return {{kTfJobGroupLabel, kTfJobGroup}, {kTfJobNameLabel, job.name}, {reconcile::kJobUidLabel, job.uid}};
}
Object PrintTfJobLabels(const kube::ObjectMeta& job, const reconcile::Place& place) {
  Object labels = PrintTfJobLabels(job);
  labels[kTypeLabel] = place.role;
  labels[kTypeIndexLabel] = StrCat(place.index);
  return labels;
}

// What is not restarted by the kubelet is by us, or not at all.
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

// What TensorFlow calls the task of a role.
std::string_view TaskType(std::string_view role) { return role == kEval ? "evaluator" : role; }

class TfObjectMaker final : public reconcile::ObjectMaker {
 public:
  explicit TfObjectMaker(const reconcile::CompactJob& job)
      : job_(job), spec_(ParseJson(job.spec_text).value()) {
    std::vector<job::TfTaskGroup> groups;
    for (const job::RoleSpec& role : job.spec.roles) {
      const Document* replica = FindReplicaSpec(spec_, role.slug);
      TY_CHECK(replica != nullptr, "a role has no replica spec");
      Role& made = roles_[role.slug];
      made.port = FindTfPort(*replica);
      made.restart = PodRestartPolicy(role.restart.in_place);
      made.pod_template = Find(*replica, {"template"});
      TY_CHECK(made.pod_template != nullptr, "a role has no template");
      // The evaluator follows the others' checkpoints, and nobody speaks with it.
      if (role.slug == kEval || role.replicas == 0) continue;
      job::TfTaskGroup& group =
          groups.emplace_back(job::TfTaskGroup{.type = std::string(TaskType(role.slug))});
      for (int index = 0; index < role.replicas; ++index) {
        group.addresses.push_back(
            StrCat(Name(role.slug, index), ".", job.meta.ns.view(), ".svc:", made.port));
      }
    }
    cluster_ = job::PrintTfCluster(groups);
  }

  std::string MakePod(const job::CreatePod& create) const override {
    const Role& from = roles_.at(create.role);
    const reconcile::Place place{.job = job_.meta.name, .role = create.role, .index = create.index};
    Document pod =
        PodFromTemplate(*from.pod_template, {.name = Name(create.role, create.index),
                                             .ns = job_.meta.ns.view(),
                                             .labels = PrintTfJobLabels(job_.meta, place),
                                             .attempt = create.attempt,
                                             .owner = reconcile::OwnerReference(TfJobs(), job_.meta)});
    Object& spec = MakeObjectAt(pod, {"spec"});
    spec["restartPolicy"] = from.restart;
    ForEachContainer(spec, [&](Object& container) { FillContainer(container, from, place, create.attempt); });
    if (job_.spec.config_in_file) MountConfig(spec, reconcile::ConfigName(job_));
    return PrintJson(pod);
  }

  std::string MakeService(const job::CreateService& create) const override {
    const Role& from = roles_.at(create.role);
    const reconcile::Place place{.job = job_.meta.name, .role = create.role, .index = create.index};
    return PrintJson(HeadlessService(
        {.name = Name(create.role, create.index),
         .ns = job_.meta.ns.view(),
         .labels = PrintTfJobLabels(job_.meta, place),
         .owner = reconcile::OwnerReference(TfJobs(), job_.meta)},
        Array{Object{{"name", kTfPortName}, {"port", from.port}, {"targetPort", from.port}}}));
  }

  Object MakeConfigData() const override {
    return {{kTfConfig, JsonObject().AddRaw("cluster", cluster_).Str()}};
  }

 private:
  struct Role {
    std::int32_t port = kTfPort;
    std::string_view restart;
    const Document* pod_template = nullptr;
  };

  std::string Name(std::string_view role, int index) const {
    return job::PodName(reconcile::NamingOf(job_), role, index);
  }

  void FillContainer(Object& container, const Role& from, const reconcile::Place& place, int attempt) const {
    Array& env = MakeArrayAt(container, "env");
    if (job_.spec.config_in_file) {
      AddEnv(env, StrCat(kTfConfig, "_FILE"), StrCat(reconcile::kConfigFolder, "/", kTfConfig));
      AddEnv(env, StrCat(kTfConfig, "_TASK"), job::PrintTfTask(TaskType(place.role), place.index));
    } else {
      AddEnv(env, kTfConfig, job::PrintTfConfig(cluster_, TaskType(place.role), place.index));
    }
    AddEnv(env, "TRAINYARD_ATTEMPT", StrCat(attempt));
    const Document* name = container.if_contains("name");
    if (name == nullptr || Text(*name) != kTensorflow) return;
    Array& ports = MakeArrayAt(container, "ports");
    for (const Document& port : ports) {
      if (StringAt(port, {"name"}) == kTfPortName) return;
    }
    ports.push_back(Object{{"name", kTfPortName}, {"containerPort", from.port}});
  }

  const reconcile::CompactJob& job_;
  const Document spec_;
  std::map<std::string, Role> roles_;
  std::string cluster_;
};

}  // namespace

const kube::Resource& TfJobKind::resource() const { return TfJobs(); }

const std::vector<std::string>& TfJobKind::names() const {
  static const auto* const names = new std::vector<std::string>{"tfjob", "tfjobs", "tfj"};
  return *names;
}

bool TfJobKind::IsMain(std::string_view container) const { return container == kTensorflow; }

std::string_view TfJobKind::label_selector() const { return "group_name=kubeflow.org"; }

std::vector<std::string> TfJobKind::place_labels() const {
  return {std::string(kTfJobNameLabel), std::string(kTypeLabel), std::string(kTypeIndexLabel)};
}

std::optional<reconcile::Place> TfJobKind::FindPlace(const kube::ObjectMeta& meta) const {
  const auto index = ParseNumber<int>(meta.labels.Get(kTypeIndexLabel));
  const std::string_view job = meta.labels.Get(kTfJobNameLabel);
  const std::string_view role = meta.labels.Get(kTypeLabel);
  if (!index || job.empty() || role.empty()) return std::nullopt;
  return reconcile::Place{.job = std::string(job), .role = std::string(role), .index = *index};
}

Object TfJobKind::LabelsOf(const kube::ObjectMeta& job) const { return PrintTfJobLabels(job); }

Object TfJobKind::LabelsOf(const kube::ObjectMeta& job, const reconcile::Place& place) const {
  return PrintTfJobLabels(job, place);
}

absl::StatusOr<reconcile::CompactJob> TfJobKind::Decode(std::string json) const {
  reconcile::CompactJob job;
  TY_ASSIGN_OR_RETURN(const Document document, ParseJson(json));
  TY_ASSIGN_OR_RETURN(job.meta, kube::ParseObjectMeta(std::move(json)));
  const Document* spec = Find(document, {"spec"});
  TfJobSpec read = ParseTfJobSpec(job.meta.Key(), spec);
  job.spec = std::move(read.spec);
  job.invalid = std::move(read.invalid);
  job.status = ParseJobStatus(Find(document, {"status"}), kCounters);
  if (spec != nullptr && job.invalid.empty() && !job.status.IsFinished()) job.spec_text = PrintJson(*spec);
  return job;
}

Document TfJobKind::PrintStatus(const job::JobStatus& status) const {
  return PrintJobStatus(status, kCounters);
}

std::unique_ptr<reconcile::ObjectMaker> TfJobKind::NewMaker(const reconcile::CompactJob& job) const {
  return std::make_unique<TfObjectMaker>(job);
}

}  // namespace trainyard::ops
