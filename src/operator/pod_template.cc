#include "operator/pod_template.h"

#include <utility>

#include "base/text.h"
#include "job/names.h"
#include "placement/gang.h"
#include "reconcile/kind.h"
#include "reconcile/labels.h"

namespace trainyard::ops {
namespace {

Object Metadata(ObjectParts parts) {
  return {{"name", std::move(parts.name)},
          {"namespace", parts.ns},
          {"labels", std::move(parts.labels)},
          {"ownerReferences", Array{std::move(parts.owner)}}};
}

// Keeps the pod back until its gang starts.
void JoinGang(job::GangScheduler gang, const std::string& group, Object& metadata, Object& spec) {
  switch (gang) {
    case job::GangScheduler::kNone:
      return;
    case job::GangScheduler::kCoscheduling:
      metadata["labels"].get_object()[placement::kPodGroupLabel] = group;
      return;
    case job::GangScheduler::kVolcano:
      metadata["annotations"].get_object()[reconcile::kVolcanoGroupAnnotation] = group;
      spec.emplace("schedulerName", "volcano");  // unless the user names one
      return;
    case job::GangScheduler::kGates:
      MakeArrayAt(spec, "schedulingGates").push_back(Object{{"name", reconcile::kGangGate}});
      return;
  }
}

}  // namespace

Document PodFromTemplate(const Document& pod_template, ObjectParts parts) {
  const int attempt = parts.attempt;
  const job::GangScheduler gang = parts.gang;
  const std::string group = reconcile::PodGroupName(Text(parts.owner["kind"]), Text(parts.owner["name"]));
  Object metadata = Metadata(std::move(parts));
  Object& labels = metadata["labels"].get_object();
  if (const Object* own = ObjectAt(pod_template, {"metadata", "labels"})) {
    for (const auto& label : *own) labels.insert(label);  // unless it is there
  }
  Object annotations;
  if (const Object* own = ObjectAt(pod_template, {"metadata", "annotations"})) annotations = *own;
  annotations[job::kAttemptAnnotation] = StrCat(attempt);
  metadata["annotations"] = std::move(annotations);
  if (const Array* own = ArrayAt(pod_template, {"metadata", "finalizers"})) metadata["finalizers"] = *own;
  Object spec;
  if (const Object* own = ObjectAt(pod_template, {"spec"})) spec = *own;
  JoinGang(gang, group, metadata, spec);
  return Object{
      {"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", std::move(metadata)}, {"spec", std::move(spec)}};
}

Document HeadlessService(ObjectParts parts, Array ports) {
  Object labels = parts.labels;
  return Object{{"apiVersion", "v1"},
                {"kind", "Service"},
                {"metadata", Metadata(std::move(parts))},
                {"spec", Object{{"clusterIP", "None"},
                                {"publishNotReadyAddresses", true},
                                {"selector", std::move(labels)},
                                {"ports", std::move(ports)}}}};
}

void ForEachContainer(Object& pod_spec, const std::function<void(Object&)>& fill) {
  for (const std::string_view list : {"initContainers", "containers"}) {
    Document* containers = pod_spec.if_contains(list);
    if (containers == nullptr || !containers->is_array()) continue;
    for (Document& container : containers->get_array()) {
      if (container.is_object()) fill(container.get_object());
    }
  }
}

Array& MakeArrayAt(Object& object, std::string_view key) {
  Document& member = object[key];
  if (!member.is_array()) member = Array();
  return member.get_array();
}

void MountConfig(Object& pod_spec, const std::string& config_map) {
  constexpr std::string_view kVolume = "trainyard-config";
  MakeArrayAt(pod_spec, "volumes")
      .push_back(Object{{"name", kVolume}, {"configMap", Object{{"name", config_map}}}});
  ForEachContainer(pod_spec, [&](Object& container) {
    MakeArrayAt(container, "volumeMounts")
        .push_back(Object{{"name", kVolume}, {"mountPath", reconcile::kConfigFolder}, {"readOnly", true}});
  });
}

void AddEnv(Array& env, std::string_view name, std::string value) {
  env.push_back(Object{{"name", name}, {"value", std::move(value)}});
}

}  // namespace trainyard::ops
