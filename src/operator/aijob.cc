#include "operator/aijob.h"

#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "base/check.h"
#include "base/status.h"
#include "base/text.h"
#include "job/members.h"
#include "job/names.h"
#include "job/size.h"
#include "job/status_document.h"
#include "operator/aijob_spec.h"
#include "operator/pod_template.h"
#include "reconcile/labels.h"
#include "reconcile/observe.h"

namespace trainyard::ops {
namespace {

constexpr std::string_view kAiJobGroup = "elasticdeeplearning.ai";
// Those that users of the original select by.
constexpr std::string_view kAiJobGroupLabel = "GroupName";

const kube::Resource& AiJobs() {
  static const auto* const resource = new kube::Resource{.group = std::string(kAiJobGroup),
                                                         .version = "v1",
                                                         .plural = "aitrainingjobs",
                                                         .kind = "AITrainingJob"};
  return *resource;
}

Object PrintAiJobLabels(const kube::ObjectMeta& job) {
  return {
      {kAiJobGroupLabel, kAiJobGroup}, {job::kJobNameLabel, job.name}, {reconcile::kJobUidLabel, job.uid}};
}
Object PrintAiJobLabels(const kube::ObjectMeta& job, const reconcile::Place& place) {
  Object labels = PrintAiJobLabels(job);
  labels[job::kRoleLabel] = place.role;
  labels[job::kIndexLabel] = StrCat(place.index);
  return labels;
}

template <typename T>
std::string Join(const std::vector<T>& parts) {
  std::string out;
  for (const T& part : parts) StrAppend(out, out.empty() ? "" : ",", part);
  return out;
}

// A variable in upper case and, beside it, as the design of the kind spells it: TRAININGJOB_NAME and
// TRAININGJOB_Name. The second refers to the first, because lists of members are long.
void AddSpelled(Array& env, std::string_view head, std::string_view last, std::string value) {
  const std::string upper = StrCat(head, "_", absl::AsciiStrToUpper({last.data(), last.size()}));
  AddEnv(env, upper, std::move(value));
  AddEnv(env, StrCat(head, "_", last), StrCat("$(", upper, ")"));
}

// Keeps the pod off the nodes, whatever else decides where it goes.
void AvoidNodes(Object& spec, const std::vector<std::string>& nodes) {
  if (nodes.empty()) return;
  Document whole(std::move(spec));
  Object& required =
      MakeObjectAt(whole, {"affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"});
  Array& terms = MakeArrayAt(required, "nodeSelectorTerms");  // one of them must hold
  if (terms.empty()) terms.push_back(Object{{"matchFields", Array()}});
  for (Document& term : terms) {
    if (!term.is_object() || term.get_object().empty()) continue;  // an empty one matches no node
    Array& fields = MakeArrayAt(term.get_object(), "matchFields");
    for (const std::string& node : nodes) {  // a field may be compared with one value only
      fields.push_back(Object{{"key", "metadata.name"}, {"operator", "NotIn"}, {"values", Array{node}}});
    }
  }
  spec = std::move(whole.get_object());
}

// Where a container finds the file that tells it of the members; empty: it has not asked for it.
std::string FindMembersFile(const Object& container, const Object& pod_spec, const std::string& members) {
  const Document* volumes = pod_spec.if_contains("volumes");
  const Document* mounts = container.if_contains("volumeMounts");
  if (volumes == nullptr || !volumes->is_array() || mounts == nullptr || !mounts->is_array()) return "";
  for (const Document& volume : volumes->get_array()) {
    if (StringAt(volume, {"configMap", "name"}) != members) continue;
    for (const Document& mount : mounts->get_array()) {
      if (StringAt(mount, {"name"}) != StringAt(volume, {"name"})) continue;
      const std::string_view path = StringAt(mount, {"mountPath"});
      return StringAt(mount, {"subPath"}).empty() ? StrCat(path, "/", reconcile::kMembersKey)
                                                  : std::string(path);
    }
  }
  return "";
}

class AiObjectMaker final : public reconcile::ObjectMaker {
 public:
  explicit AiObjectMaker(const reconcile::CompactJob& job)
      : job_(job), spec_(ParseJson(job.spec_text).value()), members_(job::MembersName(job.meta.name)) {
    for (const job::RoleSpec& role : job.spec.roles) {
      Role& made = roles_[role.slug];
      made.spec = &role;
      const Document* replica = FindAiReplicaSpec(spec_, role.name);
      TY_CHECK(replica != nullptr, "a role has no replica spec");
      made.pod_template = Find(*replica, {"template"});
      TY_CHECK(made.pod_template != nullptr, "a role has no template");
      made.ports = FindAllAiPorts(*replica);
      const auto known = job.status.roles.find(role.name);
      if (known != job.status.roles.end()) made.restarts = known->second.restarts;
      const auto stored = known == job.status.roles.end() ? std::nullopt : known->second.size;
      AddDiscovery(made, job::FirstSize(role, stored));
    }
  }

  std::string MakePod(const job::CreatePod& create) const override {
    const Role& from = roles_.at(create.role);
    const reconcile::Place place{.job = job_.meta.name, .role = create.role, .index = create.index};
    Document pod =
        PodFromTemplate(*from.pod_template, {.name = Name(create.role, create.index),
                                             .ns = job_.meta.ns.view(),
                                             .labels = PodLabels(from, place),
                                             .attempt = create.attempt,
                                             .owner = reconcile::OwnerReference(AiJobs(), job_.meta),
                                             .gang = create.gang});
    Object& labels = MakeObjectAt(pod, {"metadata", "labels"});
    for (const auto& [key, value] : job_.meta.labels.entries()) {
      labels.emplace(key.view(), value.view());  // unless it is there
    }
    Object& spec = MakeObjectAt(pod, {"spec"});
    spec["restartPolicy"] = "Never";  // it is for us to decide
    if (const std::string_view scheduler = StringAt(spec_, {"schedulerName"}); !scheduler.empty())
      spec["schedulerName"] = scheduler;
    const Document* host_network = spec.if_contains("hostNetwork");
    if (host_network != nullptr && *host_network == Document(true) && !spec.contains("dnsPolicy")) {
      spec["dnsPolicy"] = "ClusterFirstWithHostNet";  // or no name of the cluster would resolve
    }
    AvoidNodes(spec, create.avoid);
    if (!create.avoid.empty())
      MakeObjectAt(pod, {"metadata", "annotations"})[reconcile::kAvoidsAnnotation] = Join(create.avoid);
    ForEachContainer(spec,
                     [&](Object& container) { FillContainer(container, spec, from, place, create.attempt); });
    if (job_.spec.config_in_file) MountConfig(spec, reconcile::ConfigName(job_));
    return PrintJson(pod);
  }

  std::string MakeService(const job::CreateService& create) const override {
    const reconcile::Place place{.job = job_.meta.name, .role = create.role, .index = create.index};
    Array ports;
    for (const int port : roles_.at(create.role).ports) {
      ports.push_back(Object{{"name", StrCat(kAiPrefix, port)}, {"port", port}, {"targetPort", port}});
    }
    return PrintJson(HeadlessService({.name = Name(create.role, create.index),
                                      .ns = job_.meta.ns.view(),
                                      .labels = PrintAiJobLabels(job_.meta, place),
                                      .owner = reconcile::OwnerReference(AiJobs(), job_.meta)},
                                     std::move(ports)));
  }

  Object MakeConfigData() const override { return config_; }

 private:
  struct Role {
    const job::RoleSpec* spec = nullptr;
    const Document* pod_template = nullptr;
    std::vector<int> ports;
    std::int64_t restarts = 0;
  };

  std::string Name(std::string_view role, int index) const {
    return job::PodName(reconcile::NamingOf(job_), role, index);
  }
  std::string Instance(std::string_view role, int index) const {
    return StrCat(Name(role, index), ".", job_.meta.ns.view());
  }

  Object PodLabels(const Role& from, const reconcile::Place& place) const {
    Object labels = PrintAiJobLabels(job_.meta, place);
    labels["JobName"] = job_.meta.name;
    labels["PodRole"] = place.role;
    labels["RestartCount"] = StrCat(from.restarts);
    for (const auto& [label, field] :
         {std::pair("priority", "priority"), std::pair("FrameworkType", "frameworkType")}) {
      if (const std::string_view value = StringAt(spec_, {field}); !value.empty()) labels[label] = value;
    }
    return labels;
  }

  // What all pods are told of the role.
  void AddDiscovery(const Role& role, int size) {
    std::vector<std::string> instances;
    std::vector<std::string> hosts;
    for (int index = 0; index < size; ++index) {
      instances.push_back(Instance(role.spec->slug, index));
      for (const int port : role.ports) hosts.push_back(StrCat(instances.back(), ":", port));
    }
    const std::string prefix = VariablePrefix(role.spec->name);
    AddList(prefix, "Instances", Join(instances));
    AddSpelled(discovery_, prefix + "_INSTANCES", "Num", StrCat(instances.size()));
    AddSpelled(discovery_, prefix, "Ports", Join(role.ports));
    AddSpelled(discovery_, prefix + "_PORTS", "Num", StrCat(role.ports.size()));
    AddList(prefix, "Hosts", Join(hosts));
    AddSpelled(discovery_, prefix + "_HOSTS", "Num", StrCat(hosts.size()));
  }

  // A list of members: a variable, or a file that a variable names.
  void AddList(const std::string& head, std::string_view last, std::string list) {
    if (!job_.spec.config_in_file) return AddSpelled(discovery_, head, last, std::move(list));
    const std::string name = StrCat(head, "_", absl::AsciiStrToUpper({last.data(), last.size()}));
    AddEnv(discovery_, StrCat(name, "_FILE"), StrCat(reconcile::kConfigFolder, "/", name));
    config_[name] = list;
  }

  void FillContainer(Object& container, const Object& pod_spec, const Role& from,
                     const reconcile::Place& place, int attempt) const {
    const std::vector<int> ports = FindAiPorts(container);
    const std::string file =
        job_.spec.fault_tolerant ? FindMembersFile(container, pod_spec, members_) : std::string();
    Array& env = MakeArrayAt(container, "env");
    env.insert(env.end(), discovery_.begin(), discovery_.end());
    AddSpelled(env, "TRAININGJOB_REPLICA", "Name", place.role);
    AddSpelled(env, "TRAININGJOB_REPLICA", "Type", from.spec->name);
    AddSpelled(env, "TRAININGJOB_REPLICA", "Index", StrCat(place.index));
    AddEnv(env, "TRAININGJOB_REPLICA_RESTARTCOUNT", StrCat(from.restarts));
    AddSpelled(env, "TRAININGJOB", "Service", Instance(place.role, place.index));
    AddSpelled(env, "TRAININGJOB", "Name", job_.meta.name);
    AddEnv(env, "TRAININGJOB_NAMESPACE", std::string(job_.meta.ns.view()));
    AddSpelled(env, "TRAININGJOB", "Ports", Join(ports));
    if (job_.spec.fault_tolerant) AddEnv(env, "TRAININGJOB_MEMBERS", members_);
    if (!file.empty()) AddEnv(env, "TRAININGJOB_MEMBERS_FILE", file);
    AddEnv(env, "TRAINYARD_ATTEMPT", StrCat(attempt));
  }

  const reconcile::CompactJob& job_;
  const Document spec_;
  const std::string members_;
  std::map<std::string, Role> roles_;
  Array discovery_;
  Object config_;  // what is too long for discovery_
};

}  // namespace

AiJobKind::AiJobKind(const std::vector<std::string>& accelerators) : accelerators_(accelerators) {
  for (const std::string_view known : kKnownAccelerators) accelerators_.emplace_back(known);
}

const kube::Resource& AiJobKind::resource() const { return AiJobs(); }

const std::vector<std::string>& AiJobKind::names() const {
  static const auto* const names = new std::vector<std::string>{"aitrainingjob", "aitrainingjobs", "aitj"};
  return *names;
}

bool AiJobKind::IsMain(std::string_view container) const { return container.starts_with(kAiPrefix); }

std::string_view AiJobKind::label_selector() const { return "GroupName=elasticdeeplearning.ai"; }

std::vector<std::string> AiJobKind::place_labels() const {
  return {std::string(job::kJobNameLabel), std::string(job::kRoleLabel), std::string(job::kIndexLabel)};
}

std::optional<reconcile::Place> AiJobKind::FindPlace(const kube::ObjectMeta& meta) const {
  const auto index = ParseNumber<int>(meta.labels.Get(job::kIndexLabel));
  const std::string_view job = meta.labels.Get(job::kJobNameLabel);
  const std::string_view role = meta.labels.Get(job::kRoleLabel);
  if (!index || job.empty() || role.empty()) return std::nullopt;
  return reconcile::Place{.job = std::string(job), .role = std::string(role), .index = *index};
}

Object AiJobKind::LabelsOf(const kube::ObjectMeta& job) const { return PrintAiJobLabels(job); }

Object AiJobKind::LabelsOf(const kube::ObjectMeta& job, const reconcile::Place& place) const {
  return PrintAiJobLabels(job, place);
}

absl::StatusOr<reconcile::CompactJob> AiJobKind::Decode(std::string json) const {
  reconcile::CompactJob job;
  TY_ASSIGN_OR_RETURN(const Document document, ParseJson(json));
  TY_ASSIGN_OR_RETURN(job.meta, kube::ParseObjectMeta(std::move(json)));
  AiJobSpec read = ParseAiJobSpec(document, accelerators_);
  job.spec = std::move(read.spec);
  job.invalid = std::move(read.invalid);
  job.status = job::ParseStatus(Find(document, {"status"}), job::kAiTrainingJobStatus);
  const Document* spec = Find(document, {"spec"});
  if (spec != nullptr && job.invalid.empty() && !job.status.IsFinished()) job.spec_text = PrintJson(*spec);
  return job;
}

Document AiJobKind::PrintStatus(const reconcile::CompactJob& /*job*/, const job::JobStatus& status) const {
  return job::PrintStatus(status, job::kAiTrainingJobStatus);
}

std::unique_ptr<reconcile::ObjectMaker> AiJobKind::NewMaker(const reconcile::CompactJob& job) const {
  return std::make_unique<AiObjectMaker>(job);
}

}  // namespace trainyard::ops
