#include "reconcile/act.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/ascii.h"
#include "base/status.h"
#include "base/text.h"
#include "job/members.h"
#include "job/names.h"
#include "reconcile/labels.h"

namespace trainyard::reconcile {
namespace {

using kube::ObjectKey;
using kube::Resource;

// What is made ready at a time. Between two such parts the job is looked at: one that is being deleted gets
// no more objects.
constexpr std::size_t kMostBytes = std::size_t{16} * 1024 * 1024;
constexpr std::size_t kMostOperations = 250;

// One action, and the object that it is about.
struct Step {
  const job::Action* action;
  ObjectKey object;
};

class Actor {
 public:
  Actor(kube::Api& api, Caches& caches, const Kind& kind, const CompactJob& job)
      : api_(api), caches_(caches), kind_(kind), job_(job), owner_(job.meta.Key()) {}

  ActResult Do(const std::vector<job::Action>& actions) {
    for (const job::Action& action : actions) {
      std::visit([&](const auto& one) { Prepare(action, one); }, action);
      if (bytes_ <= kMostBytes && operations_.size() < kMostOperations) continue;
      Flush();
      if (IsGone()) break;
    }
    Flush();
    return std::move(result_);
  }

 private:
  bool IsGone() const {
    const auto job = caches_.FindJob(owner_);
    return job == nullptr || job->meta.uid != job_.meta.uid || job->meta.deletion_time.has_value();
  }

  // All that is prepared, at once.
  void Flush() {
    const auto answers = api_.Do(std::exchange(operations_, {}));
    const std::vector<Step> steps = std::exchange(steps_, {});
    bytes_ = 0;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      std::visit([&](const auto& one) { Settle(steps[i], one, answers[i]); }, *steps[i].action);
    }
  }

  void Add(const job::Action& action, ObjectKey object, kube::Operation operation) {
    steps_.push_back({&action, std::move(object)});
    bytes_ += operation.request.body.size();
    operations_.push_back(kube::ForMetadata(std::move(operation)));
  }
  ObjectKey Named(std::string name) const { return {owner_.ns, std::move(name)}; }
  ObjectKey NameOf(std::string_view role, int index) const {
    return Named(job::PodName(NamingOf(job_), role, index));
  }
  const ObjectMaker& maker() {
    if (maker_ == nullptr) maker_ = kind_.NewMaker(job_);
    return *maker_;
  }

  // ---- before the requests

  void Prepare(const job::Action& action, const job::CreatePod& create) {
    ObjectKey key = NameOf(create.role, create.index);
    caches_.pod_writes().ExpectCreation(owner_, key);
    Add(action, key, kube::CreateOperation(Resource::Pods(), owner_.ns, maker().MakePod(create)));
  }
  void Prepare(const job::Action& action, const job::CreateService& create) {
    ObjectKey key = NameOf(create.role, create.index);
    caches_.service_writes().ExpectCreation(owner_, key);
    Add(action, key, kube::CreateOperation(Resource::Services(), owner_.ns, maker().MakeService(create)));
  }
  // A pod's own deadline, unlike its deletion, leaves its object and its logs.
  void Prepare(const job::Action& action, const job::StopPod& stop) {
    const Object patch{
        {"metadata", Object{{"uid", stop.uid}, {"annotations", Object{{kStoppedAnnotation, stop.why}}}}},
        {"spec", Object{{"activeDeadlineSeconds", 1}}}};
    const ObjectKey key = Named(stop.name);
    Add(action, key,
        kube::PatchOperation(Resource::Pods(), key, PrintJson(patch), {.type = kube::PatchType::kMerge}));
  }
  void Prepare(const job::Action& action, const job::WriteMembers& write) {
    WriteConfigMap(action, Named(job::MembersName(job_.meta.name)), {{kMembersKey, write.text}},
                   write.version);
  }
  void Prepare(const job::Action& action, const job::WriteConfig& write) {
    WriteConfigMap(action, Named(ConfigName(job_)), maker().MakeConfigData(), write.version);
  }
  void Prepare(const job::Action& action, const job::WritePodGroup& write) {
    const Resource& resource = PodGroupsOf(write.gang);
    const ObjectKey key = Named(PodGroupName(kind_.resource().kind, job_.meta.name));
    Object metadata = OwnMetadata(key, write.version);
    std::string text = PrintJson(Object{{"apiVersion", resource.ApiVersion()},
                                        {"kind", resource.kind},
                                        {"metadata", std::move(metadata)},
                                        {"spec", Object{{"minMember", write.minimum}}}});
    // Others may have written into it what we do not know.
    Add(action, key,
        write.version.empty()
            ? kube::CreateOperation(resource, owner_.ns, std::move(text))
            : kube::PatchOperation(resource, key, std::move(text), {.type = kube::PatchType::kMerge}));
  }
  // Gates of others stay.
  void Prepare(const job::Action& action, const job::LiftGate& lift) {
    const Object patch{
        {"metadata", Object{{"uid", lift.uid}}},
        {"spec", Object{{"schedulingGates", Array{Object{{"$patch", "delete"}, {"name", kGangGate}}}}}}};
    const ObjectKey key = Named(lift.name);
    Add(action, key,
        kube::PatchOperation(Resource::Pods(), key, PrintJson(patch), {.type = kube::PatchType::kStrategic}));
  }
  void Prepare(const job::Action& action, const job::DeleteConfigMap& remove) {
    const ObjectKey key = Named(remove.name);
    Add(action, key, kube::DeleteOperation(Resource::ConfigMaps(), key, {.uid = remove.uid}));
  }
  void Prepare(const job::Action& action, const job::DeletePod& remove) {
    ObjectKey key = Named(remove.name);
    caches_.pod_writes().ExpectDeletion(owner_, key, remove.uid);
    kube::DeleteOptions options{.uid = remove.uid};
    if (remove.force) options.grace_seconds = 0;
    Add(action, key, kube::DeleteOperation(Resource::Pods(), key, options));
  }
  void Prepare(const job::Action& action, const job::DeleteService& remove) {
    ObjectKey key = Named(remove.name);
    caches_.service_writes().ExpectDeletion(owner_, key, remove.uid);
    Add(action, key, kube::DeleteOperation(Resource::Services(), key, {.uid = remove.uid}));
  }
  void Prepare(const job::Action& action, const job::AdoptPod& adopt) {
    const auto pod = caches_.FindPod(Named(adopt.name));
    if (pod != nullptr) PrepareAdoption(action, Resource::Pods(), pod->meta);
  }
  void Prepare(const job::Action& action, const job::AdoptService& adopt) {
    const auto service = caches_.FindService(Named(adopt.name));
    if (service != nullptr) PrepareAdoption(action, Resource::Services(), service->meta);
  }
  void Prepare(const job::Action& action, const job::RelabelPod& relabel) {
    const Object patch{
        {"metadata", Object{{"uid", relabel.uid}, {"labels", LabelsOf(relabel.role, relabel.index)}}}};
    const ObjectKey key = Named(relabel.name);
    Add(action, key,
        kube::PatchOperation(Resource::Pods(), key, PrintJson(patch), {.type = kube::PatchType::kMerge}));
  }
  // A selector and a list of ports are replaced whole, whatever was put into them.
  void Prepare(const job::Action& action, const job::RepairService& repair) {
    const auto made =
        ParseJson(maker().MakeService({.role = repair.role, .index = repair.index})).value_or(Document());
    const auto add = [](std::string path, Document value) {
      return Object{{"op", "add"}, {"path", std::move(path)}, {"value", std::move(value)}};
    };
    Array patch{Object{{"op", "test"}, {"path", "/metadata/uid"}, {"value", repair.uid}}};
    for (const std::string_view part : {"selector", "ports"})
      patch.push_back(add(StrCat("/spec/", part), *Find(made, {"spec", part})));
    for (const auto& label : LabelsOf(repair.role, repair.index)) {
      std::string name(Key(label));
      if (const std::size_t slash = name.find('/'); slash != std::string::npos) name.replace(slash, 1, "~1");
      patch.push_back(add(StrCat("/metadata/labels/", name), label.value()));
    }
    const ObjectKey key = Named(repair.name);
    Add(action, key,
        kube::PatchOperation(Resource::Services(), key, PrintJson(patch), {.type = kube::PatchType::kJson}));
  }
  void Prepare(const job::Action& action, const job::DeleteJob&) {
    Add(action, owner_,
        kube::DeleteOperation(kind_.resource(), owner_,
                              {.propagation = kube::Propagation::kBackground, .uid = job_.meta.uid}));
  }

  Object LabelsOf(const std::string& role, int index) const {
    return kind_.LabelsOf(job_.meta, Place{.job = job_.meta.name, .role = role, .index = index});
  }

  Object OwnMetadata(const ObjectKey& key, const std::string& version) const {
    Object metadata{{"name", key.name},
                    {"namespace", key.ns},
                    {"labels", kind_.LabelsOf(job_.meta)},
                    {"ownerReferences", Array{OwnerReference(kind_.resource(), job_.meta)}}};
    if (!version.empty()) metadata["resourceVersion"] = version;
    return metadata;
  }

  void WriteConfigMap(const job::Action& action, const ObjectKey& key, Object data,
                      const std::string& version) {
    Object metadata = OwnMetadata(key, version);
    std::string text = PrintJson(Object{{"apiVersion", "v1"},
                                        {"kind", "ConfigMap"},
                                        {"metadata", std::move(metadata)},
                                        {"data", std::move(data)}});
    Add(action, key,
        version.empty() ? kube::CreateOperation(Resource::ConfigMaps(), owner_.ns, std::move(text))
                        : kube::UpdateOperation(Resource::ConfigMaps(), key, std::move(text)));
  }

  void PrepareAdoption(const job::Action& action, const Resource& resource, const kube::ObjectMeta& meta) {
    const auto place = kind_.FindPlace(meta);
    if (!place || !JobStillLives()) return;
    const Object patch{
        {"metadata", Object{{"uid", meta.uid},
                            {"resourceVersion", meta.resource_version},
                            {"labels", kind_.LabelsOf(job_.meta, *place)},
                            {"ownerReferences", Array{OwnerReference(kind_.resource(), job_.meta)}}}}};
    Add(action, meta.Key(),
        kube::PatchOperation(resource, meta.Key(), PrintJson(patch), {.type = kube::PatchType::kStrategic}));
  }
  // A cache may be behind, and what is adopted by the dead dies.
  bool JobStillLives() {
    if (!lives_) {
      const auto meta = ReadMeta(api_, kind_.resource(), owner_);
      lives_ = meta.ok() && meta->uid == job_.meta.uid && !meta->deletion_time;
    }
    return *lives_;
  }

  // ---- after them

  void Settle(const Step& step, const job::CreatePod&, const absl::StatusOr<std::string>& answer) {
    if (Created(step, caches_.pod_writes(), Resource::Pods(), answer)) ++result_.pods_created;
  }
  void Settle(const Step& step, const job::CreateService&, const absl::StatusOr<std::string>& answer) {
    if (Created(step, caches_.service_writes(), Resource::Services(), answer)) ++result_.services_created;
  }
  void Settle(const Step& step, const job::DeletePod& remove, const absl::StatusOr<std::string>& answer) {
    if (Deleted(step, caches_.pod_writes(), remove.uid, "pod", answer.status())) ++result_.pods_deleted;
  }
  void Settle(const Step& step, const job::DeleteService& remove, const absl::StatusOr<std::string>& answer) {
    if (Deleted(step, caches_.service_writes(), remove.uid, "service", answer.status()))
      ++result_.services_deleted;
  }
  void Settle(const Step& step, const job::StopPod&, const absl::StatusOr<std::string>& answer) {
    Adopted(step, caches_.pod_writes(), "pod", answer);
  }
  void Settle(const Step& step, const job::WriteMembers& write, const absl::StatusOr<std::string>& answer) {
    Written(step, write.version, Resource::ConfigMaps(), caches_.config_map_writes(), answer);
  }
  void Settle(const Step& step, const job::WriteConfig& write, const absl::StatusOr<std::string>& answer) {
    Written(step, write.version, Resource::ConfigMaps(), caches_.config_map_writes(), answer);
  }
  void Settle(const Step& step, const job::WritePodGroup& write, const absl::StatusOr<std::string>& answer) {
    Written(step, write.version, PodGroupsOf(write.gang), caches_.pod_group_writes(), answer);
  }
  void Settle(const Step& step, const job::LiftGate&, const absl::StatusOr<std::string>& answer) {
    Adopted(step, caches_.pod_writes(), "pod", answer);
  }
  void Settle(const Step& step, const job::RelabelPod&, const absl::StatusOr<std::string>& answer) {
    Adopted(step, caches_.pod_writes(), "pod", answer);
  }
  void Settle(const Step& step, const job::RepairService&, const absl::StatusOr<std::string>& answer) {
    Adopted(step, caches_.service_writes(), "service", answer);
  }
  void Written(const Step& step, std::string_view version, const Resource& resource,
               kube::Expectations& writes, const absl::StatusOr<std::string>& answer) {
    const std::string what = absl::AsciiStrToLower(resource.kind);
    // Somebody has written it meanwhile, and the watch will tell; or somebody else's has its name.
    if (!answer.ok() && kube::IsAlreadyExists(answer.status()) && version.empty()) {
      const auto meta = ReadMeta(api_, resource, step.object);
      const bool ours = meta.ok() && meta->controller && meta->controller->uid == job_.meta.uid;
      if (!ours) {
        Fail(what, step, absl::AlreadyExistsError("exists and does not belong to the job"));
      } else if (!IsWatched(*meta)) {
        Fail(what, step, absl::AlreadyExistsError("exists without our labels; delete it or label it"));
      }
      return;
    }
    Adopted(step, writes, what, answer);
  }
  void Settle(const Step& step, const job::DeleteConfigMap&, const absl::StatusOr<std::string>& answer) {
    if (answer.ok()) return Done(step);
    if (!kube::IsNotFound(answer.status()) && !kube::IsConflict(answer.status()))
      Fail("configmap", step, answer.status());
  }
  void Settle(const Step& step, const job::AdoptPod&, const absl::StatusOr<std::string>& answer) {
    Adopted(step, caches_.pod_writes(), "pod", answer);
  }
  void Settle(const Step& step, const job::AdoptService&, const absl::StatusOr<std::string>& answer) {
    Adopted(step, caches_.service_writes(), "service", answer);
  }
  void Settle(const Step& step, const job::DeleteJob&, const absl::StatusOr<std::string>& answer) {
    if (answer.ok() || kube::IsNotFound(answer.status()) || kube::IsConflict(answer.status())) {
      return Done(step);
    }
    Fail("the job", step, answer.status());
  }

  bool Created(const Step& step, kube::Expectations& writes, const Resource& resource,
               const absl::StatusOr<std::string>& answer) {
    auto meta =
        answer.ok() ? kube::ParseObjectMeta(*answer) : absl::StatusOr<kube::ObjectMeta>(answer.status());
    const bool made = meta.ok();
    if (!made && kube::IsAlreadyExists(answer.status())) meta = ReadOwn(resource, step.object);
    if (!meta.ok()) {
      writes.CreationFailed(owner_, step.object);
      Fail(resource.kind == "Pod" ? "pod" : "service", step, meta.status());
      return false;
    }
    writes.CreationDone(owner_, step.object, meta->uid, meta->resource_version);
    Done(step);
    return made;
  }

  // Whether it carries the label that the caches watch by; what somebody has taken it from is not seen.
  bool IsWatched(const kube::ObjectMeta& meta) const {
    const std::string_view selector = kind_.label_selector();
    const std::size_t sign = selector.find('=');
    return meta.labels.Get(selector.substr(0, sign)) == selector.substr(sign + 1);
  }

  // It exists: a write of ours whose answer was lost, or somebody else's.
  absl::StatusOr<kube::ObjectMeta> ReadOwn(const Resource& resource, const ObjectKey& key) {
    TY_ASSIGN_OR_RETURN(kube::ObjectMeta meta, ReadMeta(api_, resource, key));
    if (meta.controller && meta.controller->uid == std::string_view(job_.meta.uid)) {
      if (IsWatched(meta)) return meta;  // the cache will have it, and what else is wrong with it
      // It lost the label that the operator watches.
      const Object patch{{"metadata", Object{{"uid", meta.uid}, {"labels", kind_.LabelsOf(job_.meta)}}}};
      TY_ASSIGN_OR_RETURN(std::string text,
                          api_.Do(kube::ForMetadata(kube::PatchOperation(
                              resource, key, PrintJson(patch), {.type = kube::PatchType::kMerge}))));
      return kube::ParseObjectMeta(std::move(text));
    }
    if (!meta.controller)
      return absl::AlreadyExistsError("exists, belongs to nobody and does not carry our labels");
    return absl::AlreadyExistsError(
        StrCat("exists and belongs to ", meta.controller->kind.view(), " ", meta.controller->name.view()));
  }

  bool Deleted(const Step& step, kube::Expectations& writes, const std::string& uid, std::string_view what,
               const absl::Status& status) {
    if (status.ok()) {
      Done(step);
      return true;
    }
    writes.DeletionFailed(owner_, step.object, uid);
    // It is gone, or another has its name by now.
    if (!kube::IsNotFound(status) && !kube::IsConflict(status)) Fail(what, step, status);
    return false;
  }

  void Adopted(const Step& step, kube::Expectations& writes, std::string_view what,
               const absl::StatusOr<std::string>& answer) {
    if (answer.ok()) {
      if (const auto meta = kube::ParseObjectMeta(*answer); meta.ok()) {
        writes.ExpectVersion(owner_, step.object, meta->resource_version);
      }
      return Done(step);
    }
    if (!kube::IsNotFound(answer.status()) && !kube::IsConflict(answer.status()))
      Fail(what, step, answer.status());
  }

  void Done(const Step& step) { result_.done.push_back(job::Print(*step.action)); }
  void Fail(std::string_view what, const Step& step, const absl::Status& status) {
    std::string error = StrCat(what, " ", step.object.name, ": ", Message(status));
    if (std::ranges::find(result_.errors, error) == result_.errors.end())
      result_.errors.push_back(std::move(error));
  }

  kube::Api& api_;
  Caches& caches_;
  const Kind& kind_;
  const CompactJob& job_;
  const ObjectKey owner_;
  std::unique_ptr<ObjectMaker> maker_;
  std::optional<bool> lives_;
  std::vector<Step> steps_;
  std::vector<kube::Operation> operations_;
  std::size_t bytes_ = 0;  // of the operations
  ActResult result_;
};

}  // namespace

absl::StatusOr<kube::ObjectMeta> ReadMeta(kube::Api& api, const Resource& resource, const ObjectKey& key) {
  TY_ASSIGN_OR_RETURN(std::string text, api.Do(kube::ForMetadata(kube::GetOperation(resource, key))));
  return kube::ParseObjectMeta(std::move(text));
}

ActResult Act(kube::Api& api, Caches& caches, const Kind& kind, const CompactJob& job,
              const std::vector<job::Action>& actions) {
  if (actions.empty()) return {};
  return Actor(api, caches, kind, job).Do(actions);
}

}  // namespace trainyard::reconcile
