#include "reconcile/surroundings.h"

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace trainyard::reconcile {
namespace {

// For so long a node is avoided that had fewer accelerators than it had given: with its pods gone, it no
// longer shows.
constexpr absl::Duration kLackMemory = absl::Minutes(5);

absl::StatusOr<LoadPod> ParseLoadPod(std::string json) {
  static const kube::MetaOptions nothing{.labels = std::vector<std::string>()};
  TY_ASSIGN_OR_RETURN(kube::CompactPod pod, kube::ParsePod(std::move(json), nothing));
  return LoadPod{.meta = std::move(pod.meta),
                 .node = pod.node,
                 .finished = pod.IsFinished(),
                 .requests = std::move(pod.requests),
                 .node_selector = std::move(pod.node_selector)};
}

}  // namespace

Surroundings::Surroundings(kube::Api& api, Clock& clock, Options options)
    : api_(api),
      clock_(clock),
      accelerators_(std::move(options.accelerators)),
      seeds_(options.seed ? IdSource(*options.seed) : IdSource::Random()),
      nodes_(api, clock, IdSource(seeds_.Next()), {.resource = kube::Resource::Nodes()},
             [](std::string json) { return kube::ParseNode(std::move(json)); }),
      load_(api, clock, IdSource(seeds_.Next()), {.resource = kube::Resource::Pods()}, ParseLoadPod),
      load_by_node_(load_.AddIndex([](const LoadPod& pod, std::vector<std::string>& values) {
        if (!pod.node.empty()) values.emplace_back(pod.node.view());
      })) {
  nodes_.OnChange([this](const auto& change) { NodeChanged(change); });
}

void Surroundings::OnNodeChange(std::function<void(std::string_view)> handler) {
  handlers_.push_back(std::move(handler));
}

void Surroundings::Start() {
  MutexLock lock(mu_);
  running_ = true;
  nodes_.Start();
  if (load_wanted_) load_.Start();
}

void Surroundings::Stop() {
  {
    MutexLock lock(mu_);
    running_ = false;
  }
  nodes_.Stop();
  load_.Stop();
}

bool Surroundings::Step() {
  bool wanted = false;
  {
    MutexLock lock(mu_);
    wanted = load_wanted_;
  }
  const bool came = nodes_.StepNow();
  return (wanted && load_.StepNow()) || came;
}

NodeSight Surroundings::FindNode(const kube::CompactPod& pod) {
  const auto node = nodes_.cache().Get({"", std::string(pod.node.view())});
  if (node == nullptr) return FindMissingNode(pod.node);
  NodeSight sight = ObserveNode(*node);
  FindAcceleratorTrouble(*node, pod, sight);
  return sight;
}

void Surroundings::FindAcceleratorTrouble(const kube::CompactNode& node, const kube::CompactPod& pod,
                                          NodeSight& sight) {
  const std::vector<std::string> asked = accelerators_.FindAsked(pod.requests);
  if (asked.empty()) return;
  WantLoad();
  sight.accelerator_trouble = accelerators_.FindMark(node);
  if (!sight.accelerator_trouble.empty()) return;
  const auto bound = load_.cache().ListBy(load_by_node_, node.meta.name);
  for (const std::string& resource : asked) {
    std::int64_t taken = 0;
    for (const auto& other : bound) {
      if (!other->finished) taken += kube::FindAmount(other->requests, resource);
    }
    std::string lack = FindLack(node, resource, taken);
    const auto since = RememberLack(node.meta.name, resource, !lack.empty());
    if (!since || !sight.accelerator_trouble.empty()) continue;
    sight.accelerator_trouble = std::move(lack);
    sight.trouble_since = since;
  }
}

std::optional<absl::Time> Surroundings::RememberLack(const std::string& node, const std::string& resource,
                                                     bool lacks) {
  const absl::Time now = clock_.Now();
  MutexLock lock(mu_);
  const auto known = lacks_.find({node, resource});
  if (!lacks) {
    if (known == lacks_.end()) return std::nullopt;
    known->second.since.reset();
    if (now > known->second.avoid_until) lacks_.erase(known);
    return std::nullopt;
  }
  Lack& lack = known == lacks_.end() ? lacks_[{node, resource}] : known->second;
  if (!lack.since) lack.since = now;
  // One that was there for a moment only was none.
  if (now - *lack.since >= job::kLackGrace) lack.avoid_until = now + kLackMemory;
  return lack.since;
}

NodeSight Surroundings::FindMissingNode(std::string_view name) {
  if (!nodes_.HasSynced()) return {};
  {
    MutexLock lock(mu_);
    if (gone_nodes_.contains(name)) return {.health = job::NodeHealth::kGone};
  }
  // A cache may be behind; gone is only what the server says is.
  const auto answer = api_.Get(kube::Resource::Nodes(), {"", std::string(name)});
  if (answer.ok() || !kube::IsNotFound(answer.status())) return {};
  MutexLock lock(mu_);
  gone_nodes_.emplace(name);
  return {.health = job::NodeHealth::kGone};
}

std::vector<std::string> Surroundings::ListMarkedNodes() const {
  std::set<std::string> names;
  for (const auto& node : nodes_.cache().List()) {
    if (!accelerators_.FindMark(*node).empty()) names.insert(node->meta.name);
  }
  const absl::Time now = clock_.Now();
  MutexLock lock(mu_);
  for (const auto& [where, lack] : lacks_) {
    if (now <= lack.avoid_until) names.insert(where.first);
  }
  return {names.begin(), names.end()};
}

void Surroundings::WantLoad() {
  MutexLock lock(mu_);
  if (!std::exchange(load_wanted_, true) && running_) load_.Start();
}

std::unique_ptr<std::vector<std::shared_ptr<const LoadPod>>> Surroundings::ListLoad() {
  WantLoad();
  if (!load_.HasSynced() || !nodes_.HasSynced()) return nullptr;
  return std::make_unique<std::vector<std::shared_ptr<const LoadPod>>>(load_.cache().List());
}

absl::Status Surroundings::WaitForLoad(absl::Duration timeout) {
  WantLoad();
  TY_RETURN_IF_ERROR(nodes_.WaitForSync(timeout));
  return load_.WaitForSync(timeout);
}

void Surroundings::NodeChanged(const kube::Change<kube::CompactNode>& change) {
  const std::string& name = change.Any().meta.name;
  {
    MutexLock lock(mu_);
    gone_nodes_.erase(name);
  }
  const bool same = change.before != nullptr && change.after != nullptr &&
                    change.before->IsReady() == change.after->IsReady() &&
                    change.before->troubles == change.after->troubles &&
                    change.before->taints == change.after->taints &&
                    change.before->allocatable == change.after->allocatable;
  if (same) return;
  for (const auto& handler : handlers_) handler(name);
}

}  // namespace trainyard::reconcile
