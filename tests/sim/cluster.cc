#include "tests/sim/cluster.h"

#include <iostream>
#include <utility>

#include "base/check.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "kube/quantity.h"
#include "kv/memory_store.h"
#include "operator/kinds.h"
#include "tests/sim/documents.h"

namespace trainyard::sim {
namespace {

using kube::Resource;

const absl::Time kBegin = absl::FromUnixSeconds(1'714'557'600);

std::int64_t RestartsOf(const Document& pod) {
  const Array* containers = ArrayAt(pod, {"status", "containerStatuses"});
  return containers == nullptr || containers->empty() ? 0
                                                      : IntAt((*containers)[0], {"restartCount"}).value_or(0);
}

Array Container(const Document& pod, Object state, std::int64_t restarts, std::optional<Object> last = {}) {
  Object container{{"name", StringAt(ArrayAt(pod, {"spec", "containers"})->front(), {"name"})},
                   {"image", "x"},
                   {"imageID", ""},
                   {"ready", true},
                   {"restartCount", restarts},
                   {"state", std::move(state)}};
  if (last) container["lastState"] = *std::move(last);
  return {std::move(container)};
}

}  // namespace

void Story::Tell(std::string_view what) const {
  if (told_) std::cerr << absl::FormatDuration(clock_.Now() - begin_) << " " << what << "\n";
}

Cluster::Cluster(std::uint64_t seed, bool told)
    : random_(seed),
      clock_(kBegin),
      story_(clock_, told),
      store_(kv::NewMemoryStore(clock_)),
      server_(apiserver::ApiServer::Start(
                  {.store = store_.get(), .clock = &clock_, .seed = random_.Next(), .threads = false})
                  .value()),
      direct_(*server_, "sim"),
      user_(direct_, clock_, IdSource(random_.Next()), {.attempts = 1}) {
  const absl::Status installed = ops::InstallDefinitions(user_);
  TY_CHECK(installed.ok(), "the definitions are not taken");
}

const reconcile::Kind& Cluster::KindOf(const Document& object) const {
  std::string_view name = StringAt(object, {"kind"});
  if (const Array* owners = ArrayAt(object, {"metadata", "ownerReferences"}); owners && !owners->empty()) {
    name = StringAt(owners->front(), {"kind"});
  }
  for (const auto& kind : kinds_) {
    if (kind->resource().kind == name) return *kind;
  }
  return *kinds_.front();
}

reconcile::Place Cluster::PlaceOf(const Document& object) const {
  const Document* labels = Find(object, {"metadata", "labels"});
  if (labels == nullptr) return {};
  const auto meta = kube::ParseObjectMeta(StrCat(R"({"metadata":{"labels":)", PrintJson(*labels), "}}"));
  return KindOf(object).FindPlace(meta.value()).value_or(reconcile::Place());
}

Objects Cluster::List(const Resource& resource) {
  const kv::Revision revision = store_->Range({.range = kv::KeyRange::Key("none")}).value().revision;
  Listed& listed = listed_[resource.plural];
  if (listed.revision == revision) return listed.objects;
  auto page = user_.ListAll(resource, resource.namespaced ? kNamespace : "", {});
  TY_CHECK(page.ok(), "an object of the simulation cannot be listed");
  Listed now{.revision = revision};
  for (std::string& item : page->items) {
    const auto known = listed.read.find(item);
    auto object = known != listed.read.end() ? known->second
                                             : std::make_shared<const Document>(ParseJson(item).value());
    now.objects.Add(object);
    now.read.emplace(std::move(item), std::move(object));
  }
  listed = std::move(now);
  return listed.objects;
}

Objects Cluster::ListJobs() {
  Objects jobs;
  for (const auto& kind : kinds_) jobs.Add(List(kind->resource()));
  return jobs;
}

std::optional<Document> Cluster::Get(const Resource& resource, const std::string& name) {
  const auto text = user_.Get(resource, {resource.namespaced ? std::string(kNamespace) : "", name});
  if (!text.ok()) return std::nullopt;
  return ParseJson(*text).value();
}

// ---- nodes

void Cluster::MakeNode(const std::string& name) {
  (void)user_.Create(
      Resource::Nodes(), "",
      PrintJson(Object{{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", Object{{"name", name}}}}));
  SetNodeReady(name, true);
}

bool Cluster::HasNode(const std::string& name) { return Get(Resource::Nodes(), name).has_value(); }

bool Cluster::IsOnLostNode(const Document& pod) const {
  return IsLost(std::string(StringAt(pod, {"spec", "nodeName"})));
}

void Cluster::LoseNode(const std::string& name, bool for_good) {
  SetNodeReady(name, false);
  if (for_good) (void)user_.Delete(Resource::Nodes(), {"", name});
}

void Cluster::SetNodeReady(const std::string& name, bool ready) {
  const Object patch{
      {"status",
       Object{{"allocatable", Object{{"cpu", StrCat(kNodeMillis, "m")}, {"pods", StrCat(kNodePods)}}},
              {"conditions", Array{Object{{"type", "Ready"},
                                          {"status", ready ? "True" : "Unknown"},
                                          {"lastTransitionTime", PrintTime(clock_.Now())}}}}}}};
  (void)user_.Patch(Resource::Nodes(), {"", name}, PrintJson(patch), {.type = kube::PatchType::kMerge},
                    "status");
  // As the node lifecycle controller does.
  const Array lost{Object{{"key", "node.kubernetes.io/unreachable"}, {"effect", "NoSchedule"}}};
  const Object taints{{"spec", Object{{"taints", ready ? Array() : lost}}}};
  (void)user_.Patch(Resource::Nodes(), {"", name}, PrintJson(taints), {.type = kube::PatchType::kMerge});
  if (ready) lost_nodes_.erase(name);
  if (!ready) lost_nodes_.insert(name);
}

// ---- the scheduler

std::int64_t Cluster::MillisOf(const Document& pod) {
  std::int64_t millis = 0;
  const Array* const containers = ArrayAt(pod, {"spec", "containers"});
  for (std::size_t i = 0; containers != nullptr && i < containers->size(); ++i) {
    const auto cpu = kube::Quantity::Parse(StringAt((*containers)[i], {"resources", "requests", "cpu"}));
    if (cpu.ok()) millis += cpu->Milli().value_or(0);
  }
  return millis;
}

std::map<std::string, Cluster::Room> Cluster::FindRoom() {
  std::map<std::string, Room> rooms;
  for (const Document& node : List(Resource::Nodes())) {
    const std::string name(StringAt(node, {"metadata", "name"}));
    if (!IsLost(name)) rooms[name] = {.millis = kNodeMillis, .pods = kNodePods};
  }
  for (const Document& pod : ListPods()) {
    const auto room = rooms.find(std::string(StringAt(pod, {"spec", "nodeName"})));
    const std::string_view phase = StringAt(pod, {"status", "phase"});
    if (room == rooms.end() || phase == "Succeeded" || phase == "Failed") continue;
    room->second.millis -= MillisOf(pod);
    --room->second.pods;
  }
  return rooms;
}

// ---- kubelets

void Cluster::PatchPodStatus(const Document& pod, Object status, std::string_view what) {
  const auto patched =
      user_.Patch(Resource::Pods(), KeyOf(pod), PrintJson(Object{{"status", std::move(status)}}),
                  {.type = kube::PatchType::kMerge}, "status");
  TY_CHECK(patched.ok(), "a kubelet of the simulation cannot write");
  story_.Tell(StrCat(what, " ", KeyOf(pod).name));
}

Object Cluster::Running() const { return {{"running", Object{{"startedAt", PrintTime(clock_.Now())}}}}; }

Object Cluster::Terminated(int exit_code) const {
  return {{"terminated", Object{{"exitCode", exit_code},
                                {"reason", exit_code == 0 ? "Completed" : "Error"},
                                {"startedAt", PrintTime(clock_.Now())},
                                {"finishedAt", PrintTime(clock_.Now())}}}};
}

void Cluster::Bind(const Document& pod, const std::string& node) {
  const Object binding{{"apiVersion", "v1"},
                       {"kind", "Binding"},
                       {"metadata", Object{{"name", KeyOf(pod).name}}},
                       {"target", Object{{"kind", "Node"}, {"name", node}}}};
  kube::Request request{
      .method = "POST",
      .target = kube::ResourcePath(Resource::Pods(), kNamespace, KeyOf(pod).name, "binding"),
      .body = PrintJson(binding)};
  (void)direct_.DoAll({request});
}

void Cluster::StartPod(const Document& pod) {
  const int address = ++addresses_;
  PatchPodStatus(pod,
                 {{"phase", "Running"},
                  {"podIP", StrCat("10.", address / 65536, ".", address / 256 % 256, ".", address % 256)},
                  {"containerStatuses", Container(pod, Running(), 0)}},
                 "a kubelet starts");
}

void Cluster::StickPod(const Document& pod, bool stuck) {
  const Object waiting{{"reason", stuck ? "ErrImagePull" : "ContainerCreating"}};
  PatchPodStatus(pod, {{"containerStatuses", Container(pod, {{"waiting", waiting}}, 0)}},
                 stuck ? "no image for" : "an image again for");
}

void Cluster::RemovePod(const Document& pod) {
  (void)user_.Delete(Resource::Pods(), KeyOf(pod), {.grace_seconds = 0});
  story_.Tell(StrCat("a kubelet ends ", KeyOf(pod).name));
}

void Cluster::Evict(const Document& pod) {
  PatchPodStatus(pod, {{"phase", "Failed"}, {"reason", "Evicted"}}, "eviction of");
}

void Cluster::StopPod(const Document& pod) {
  PatchPodStatus(pod, {{"phase", "Failed"}, {"reason", "DeadlineExceeded"}}, "the deadline ends");
}

void Cluster::EndPod(const Document& pod, int exit_code, const std::function<void()>& seen) {
  const std::string_view policy = StringAt(pod, {"spec", "restartPolicy"});
  const std::int64_t restarts = RestartsOf(pod);
  const bool again = !IsLeaving(pod) && (policy == "Always" || (policy == "OnFailure" && exit_code != 0));
  if (!again) {
    return PatchPodStatus(pod,
                          {{"phase", exit_code == 0 ? "Succeeded" : "Failed"},
                           {"containerStatuses", Container(pod, Terminated(exit_code), restarts)}},
                          StrCat("exit ", exit_code, " of"));
  }
  if (seen) {
    PatchPodStatus(pod, {{"containerStatuses", Container(pod, Terminated(exit_code), restarts)}},
                   StrCat("exit ", exit_code, ", to be restarted, of"));
    seen();
    // Whoever saw it may have ended the job, and the pod with it.
    if (!Get(Resource::Pods(), KeyOf(pod).name)) return;
  }
  PatchPodStatus(pod, {{"containerStatuses", Container(pod, Running(), restarts + 1, Terminated(exit_code))}},
                 StrCat("restart after exit ", exit_code, " of"));
}

// ---- the garbage collector

void Cluster::CollectGarbage() {
  if (!std::exchange(garbage_, false)) return;
  std::set<std::string> uids;
  for (const Document& job : ListJobs()) uids.insert(UidOf(job));
  for (const Resource* resource :
       {&Resource::Pods(), &Resource::Services(), &Resource::ConfigMaps(), &Resource::Secrets()}) {
    const Objects objects = List(*resource);
    for (const Document& object : objects) {
      const Array* owners = ArrayAt(object, {"metadata", "ownerReferences"});
      if (owners == nullptr || owners->empty() || IsLeaving(object)) continue;
      if (uids.contains(std::string(StringAt((*owners)[0], {"uid"})))) continue;
      garbage_ = true;  // until it is gone
      (void)user_.Delete(*resource, KeyOf(object));
    }
  }
}

}  // namespace trainyard::sim
