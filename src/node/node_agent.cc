#include "node/node_agent.h"

#include <algorithm>
#include <map>
#include <set>
#include <thread>

#include "base/crc32c.h"
#include "base/executor.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "node/api_sender.h"
#include "node/heartbeats.h"
#include "node/node_keeper.h"
#include "node/node_state.h"
#include "node/object_feed.h"
#include "node/pod_worker.h"

namespace trainyard::node {
namespace {

constexpr std::size_t kMaxBatch = 500;

kube::ObjectKey KeyOf(const Document& object) {
  return {.ns = std::string(StringAt(object, {"metadata", "namespace"})),
          .name = std::string(StringAt(object, {"metadata", "name"}))};
}

class Agent final : public NodeAgent {
 public:
  Agent(kube::Api& api, Clock& clock, NodeAgentOptions options)
      : api_(api), clock_(clock), options_(std::move(options)) {}
  ~Agent() override;

  absl::Status Begin();
  const std::vector<std::string>& shortcomings() const override { return shortcomings_; }
  void SimulateKill(const std::string& node) override { SetLater(node, NodeState::kKilled); }
  void StopNode(const std::string& node) override { SetLater(node, NodeState::kStopped); }
  void StartNode(const std::string& node) override { SetLater(node, NodeState::kRunning); }

 private:
  absl::Status MakeContext();
  void SetLater(const std::string& node, NodeState state) {
    loop_->Post([this, node, state] { SetState(node, state); });
  }

  // ---- what comes from the API server
  template <typename T>
  std::unique_ptr<ObjectFeed> FeedObjects(const kube::Resource& resource, std::map<kube::ObjectKey, T>& all,
                                          T (*parse)(const Document&), bool names);
  void StartFeeds();
  void NoteListed();
  void OnPodsListed(std::vector<Document> pods);
  void OnPod(Document pod);
  void OnPodDeleted(const Document& pod);
  void OnNode(const Document& node);
  void OnObjects(const std::string& ns, bool names);
  void AdoptAll();

  // ---- nodes and pods
  PodWorker* AddWorker(Document pod, const std::string& saved_address);
  bool IsFrozen(const PodSpec& spec) const;
  void SetState(const std::string& node, NodeState state);
  void PlanSoon(PodWorker& worker);
  void WriteSoon(PodWorker& worker);
  void Plan();
  void Write();
  void Drop(const std::string& uid);

  kube::Api& api_;
  Clock& clock_;
  const NodeAgentOptions options_;
  std::vector<std::string> shortcomings_;
  std::unique_ptr<Loop> loop_;
  std::optional<NodeContext> context_;
  std::optional<NodeKeeper> keeper_;
  std::map<std::string, std::unique_ptr<PodWorker>> workers_;  // by uid
  std::map<std::string, Document> waiting_;                    // pods seen before all lists were, by uid
  int lists_missing_ = 0;
  std::set<std::string> to_plan_;
  std::set<std::string> to_write_;
  bool turn_posted_ = false;
  bool writing_ = false;
  bool objects_changed_ = false;
  std::set<std::string> changed_namespaces_;
  bool names_changed_ = false;
  Loop::TimerId retry_ = 0;

  std::optional<ApiSender> sender_;
  std::optional<Heartbeats> heartbeats_;
  std::vector<std::unique_ptr<ObjectFeed>> feeds_;
  std::thread thread_;
  Executor slow_;  // folders are removed there
};

// Those who post to the loop first, then the loop.
Agent::~Agent() {
  feeds_.clear();
  if (sender_) sender_->Stop();
  if (heartbeats_) heartbeats_->End();
  if (thread_.joinable()) {
    loop_->Stop();
    thread_.join();
  }
  workers_.clear();
}

absl::Status Agent::MakeContext() {
  TY_ASSIGN_OR_RETURN(loop_, Loop::Make(clock_));
  TY_ASSIGN_OR_RETURN(const std::string shim, InstallShim(options_.bin));
  auto machine = ProbeMachine(shim);
  if (!machine.ok()) {
    return absl::FailedPreconditionError(
        StrCat("cannot run ", shim, ": ", Message(machine.status()), "; is its file system mounted noexec?"));
  }
  context_.emplace(NodeContext{.loop = *loop_,
                               .clock = clock_,
                               .options = options_,
                               .machine = *std::move(machine),
                               .shim = shim,
                               .addresses = PodAddresses(Crc32c(options_.home)),
                               .cgroups = Cgroups::OfHome(options_.home),
                               .plan_soon = [this](PodWorker& worker) { PlanSoon(worker); },
                               .write_soon = [this](PodWorker& worker) { WriteSoon(worker); }});
  shortcomings_ = context_->machine.shortcomings;
  if (!context_->cgroups.shortcoming().empty()) shortcomings_.push_back(context_->cgroups.shortcoming());
  return absl::OkStatus();
}

absl::Status Agent::Begin() {
  TY_RETURN_IF_ERROR(MakeContext());
  const MachineFacts facts = LookAtMachine(options_.bin);
  for (const NodeConfig& node : options_.nodes) context_->allocatable[node.name] = NodeCapacity(node, facts);
  sender_.emplace(api_, *loop_);
  heartbeats_.emplace(api_.transport(), clock_,
                      Heartbeats::Options{.interval = options_.heartbeat, .lease = options_.lease});
  keeper_.emplace(*loop_, options_, facts, *sender_, *heartbeats_);
  StartFeeds();
  thread_ = std::thread([this] { loop_->Run(); });
  return absl::OkStatus();
}

// ---- what comes from the API server

// Keeps `all` up to date. `names`: a change can change what names resolve to.
template <typename T>
std::unique_ptr<ObjectFeed> Agent::FeedObjects(const kube::Resource& resource,
                                               std::map<kube::ObjectKey, T>& all, T (*parse)(const Document&),
                                               bool names) {
  return std::make_unique<ObjectFeed>(
      api_, clock_, *loop_, resource,
      ObjectFeed::Callbacks{.listed =
                                [this, &all, parse, names](const std::vector<Document>& objects) {
                                  all.clear();
                                  for (const Document& object : objects)
                                    all.emplace(KeyOf(object), parse(object));
                                  OnObjects("", names);
                                  NoteListed();
                                },
                            .changed =
                                [this, &all, parse, names](const Document& object) {
                                  const kube::ObjectKey key = KeyOf(object);
                                  T parsed = parse(object);
                                  const auto known = all.find(key);
                                  if (known != all.end() && known->second == parsed) return;
                                  all.insert_or_assign(key, std::move(parsed));
                                  OnObjects(key.ns, names);
                                },
                            .deleted =
                                [this, &all, names](const Document& object) {
                                  const kube::ObjectKey key = KeyOf(object);
                                  if (all.erase(key) > 0) OnObjects(key.ns, names);
                                }});
}

void Agent::StartFeeds() {
  ClusterObjects& objects = context_->objects;
  lists_missing_ = 6;
  feeds_.push_back(FeedObjects(kube::Resource::ConfigMaps(), objects.config_maps, ParseConfigMap, false));
  feeds_.push_back(FeedObjects(kube::Resource::Secrets(), objects.secrets, ParseSecret, false));
  feeds_.push_back(FeedObjects(kube::Resource::Services(), objects.services, ParseService, true));
  feeds_.push_back(FeedObjects(kube::Resource::Endpoints(), objects.endpoints, ParseEndpoints, true));
  feeds_.push_back(std::make_unique<ObjectFeed>(
      api_, clock_, *loop_, kube::Resource::Nodes(),
      ObjectFeed::Callbacks{
          .listed =
              [this](const std::vector<Document>& nodes) {
                keeper_->NoteListed(nodes);
                for (const Document& node : nodes) OnNode(node);
                NoteListed();
              },
          .changed = [this](const Document& node) { OnNode(node); },
          .deleted = [this](const Document& node) { keeper_->NoteDeleted(KeyOf(node).name); }}));
  feeds_.push_back(std::make_unique<ObjectFeed>(
      api_, clock_, *loop_, kube::Resource::Pods(),
      ObjectFeed::Callbacks{.listed = [this](std::vector<Document> pods) { OnPodsListed(std::move(pods)); },
                            .changed = [this](Document pod) { OnPod(std::move(pod)); },
                            .deleted = [this](const Document& pod) { OnPodDeleted(pod); }}));
}

// Nothing is decided before everything has been seen once: not to know of a pod or a service is not to know
// that there is none.
void Agent::NoteListed() {
  if (lists_missing_ == 0 || --lists_missing_ > 0) return;
  context_->names = RenderNames(context_->objects);
  AdoptAll();
}

void Agent::AdoptAll() {
  for (const std::string& uid : ListPodFolders(options_.home)) {
    const PodFolder folder(options_.home, uid);
    auto saved = LoadPod(folder);
    if (!saved.ok()) {
      log::Warn("a pod's folder cannot be read and is removed",
                {{"folder", folder.path()}, {"error", saved.status()}});
      RemovePodFolder(folder);
      continue;
    }
    auto known = waiting_.extract(uid);
    const bool exists = !known.empty();
    PodWorker* worker = AddWorker(exists ? std::move(known.mapped()) : std::move(saved->pod), saved->address);
    if (worker == nullptr) continue;
    worker->Adopt();
    // A node that this cluster no longer has runs nothing.
    if (!exists || !keeper_->Has(worker->spec().node)) worker->NoteGone();
    if (IsFrozen(worker->spec()) && keeper_->state(worker->spec().node) == NodeState::kKilled)
      worker->KillShim();
    log::Info("took over a pod",
              {{"pod", StrCat(worker->spec().ns, "/", worker->spec().name)}, {"exists", exists}});
  }
  for (auto& [uid, pod] : std::exchange(waiting_, {})) OnPod(std::move(pod));
}

void Agent::OnPodsListed(std::vector<Document> pods) {
  std::set<std::string> listed;
  for (Document& pod : pods) {
    listed.emplace(StringAt(pod, {"metadata", "uid"}));
    OnPod(std::move(pod));
  }
  for (const auto& [uid, worker] : workers_) {
    if (!listed.contains(uid)) worker->NoteGone();
  }
  NoteListed();
}

void Agent::OnPod(Document pod) {
  const std::string uid(StringAt(pod, {"metadata", "uid"}));
  if (lists_missing_ > 0) {
    waiting_.insert_or_assign(uid, std::move(pod));
    return;
  }
  if (const auto known = workers_.find(uid); known != workers_.end()) {
    auto spec = ParsePodSpec(pod);
    if (spec.ok()) known->second->Update(std::move(pod), *std::move(spec));
    return;
  }
  if (!keeper_->Has(StringAt(pod, {"spec", "nodeName"}))) return;
  // One that has ended before this agent began, and of which nothing is left here, needs nobody.
  const bool over =
      ParsePodStatus(pod).terminal() && StringAt(pod, {"metadata", "deletionTimestamp"}).empty();
  if (over) return;
  if (PodWorker* worker = AddWorker(std::move(pod), "")) worker->Adopt();
}

void Agent::OnPodDeleted(const Document& pod) {
  const std::string uid(StringAt(pod, {"metadata", "uid"}));
  waiting_.erase(uid);
  const auto known = workers_.find(uid);
  if (known == workers_.end()) return;
  // How it was deleted says how much grace it has left.
  auto spec = ParsePodSpec(pod);
  if (spec.ok()) known->second->Update(pod, *std::move(spec));
  known->second->NoteGone();
}

void Agent::OnNode(const Document& node) {
  const std::string name(StringAt(node, {"metadata", "name"}));
  if (!keeper_->Has(name)) return;
  keeper_->NoteSeen(node);
  const std::string wanted(StringAt(node, {"metadata", "annotations", kNodeStateAnnotation}));
  if (!keeper_->NoteAnnotation(name, wanted)) return;
  SetState(name, wanted == "killed"    ? NodeState::kKilled
                 : wanted == "stopped" ? NodeState::kStopped
                                       : NodeState::kRunning);
}

void Agent::OnObjects(const std::string& ns, bool names) {
  if (lists_missing_ > 0) return;
  objects_changed_ = true;
  changed_namespaces_.insert(ns);
  names_changed_ = names_changed_ || names;
  if (!turn_posted_) {
    turn_posted_ = true;
    loop_->Post([this] { Plan(); });
  }
}

// ---- nodes and pods

PodWorker* Agent::AddWorker(Document pod, const std::string& saved_address) {
  auto spec = ParsePodSpec(pod);
  if (!spec.ok()) {
    log::Warn("a pod that cannot be read is left alone", {{"error", spec.status()}});
    return nullptr;
  }
  const std::string uid = spec->uid;
  auto worker = std::make_unique<PodWorker>(*context_, std::move(pod), *std::move(spec), saved_address);
  worker->Freeze(IsFrozen(worker->spec()));
  return (workers_[uid] = std::move(worker)).get();
}

bool Agent::IsFrozen(const PodSpec& spec) const {
  return keeper_->Has(spec.node) && keeper_->state(spec.node) != NodeState::kRunning;
}

void Agent::SetState(const std::string& node, NodeState state) {
  if (!keeper_->Has(node)) return;
  if (keeper_->SetState(node, state)) log::Info("node", {{"node", node}, {"state", PrintNodeState(state)}});
  for (const auto& [uid, worker] : workers_) {
    if (worker->spec().node != node) continue;
    worker->Freeze(state != NodeState::kRunning);
    if (state == NodeState::kKilled) worker->KillShim();
  }
}

void Agent::PlanSoon(PodWorker& worker) {
  to_plan_.insert(worker.spec().uid);
  if (turn_posted_) return;
  turn_posted_ = true;
  loop_->Post([this] { Plan(); });
}

void Agent::WriteSoon(PodWorker& worker) {
  to_write_.insert(worker.spec().uid);
  if (turn_posted_) return;
  turn_posted_ = true;
  loop_->Post([this] { Plan(); });
}

// The end of a turn: whatever happened to a pod in it, one plan; of all that is to be told, one batch.
void Agent::Plan() {
  turn_posted_ = false;
  if (std::exchange(names_changed_, false)) {
    ClusterNames names = RenderNames(context_->objects);
    if (names != context_->names) {
      context_->names = std::move(names);
      for (const auto& [uid, worker] : workers_) worker->NoteNames();
    }
  }
  if (std::exchange(objects_changed_, false)) {
    const std::set<std::string> namespaces = std::exchange(changed_namespaces_, {});
    for (const auto& [uid, worker] : workers_) {
      if (namespaces.contains("") || namespaces.contains(worker->spec().ns)) worker->NoteObjects();
    }
  }
  for (const std::string& uid : std::exchange(to_plan_, {})) {
    const auto worker = workers_.find(uid);
    if (worker != workers_.end()) worker->second->Reconcile();
  }
  Write();
}

void Agent::Write() {
  if (writing_) return;
  std::vector<kube::Operation> operations;
  std::vector<std::string> uids;
  SteadyTime retry = SteadyTime::Never();
  for (auto at = to_write_.begin(); at != to_write_.end() && operations.size() < kMaxBatch;) {
    const std::string uid = *at;
    const auto worker = workers_.find(uid);
    if (worker != workers_.end() && worker->second->write_after() > clock_.Steady()) {
      retry = std::min(retry, worker->second->write_after());
      ++at;
      continue;
    }
    at = to_write_.erase(at);
    if (worker == workers_.end()) continue;
    auto operation = worker->second->NextWrite();
    if (worker->second->over()) {
      Drop(uid);
    } else if (operation) {
      operations.push_back(*std::move(operation));
      uids.push_back(uid);
    }
  }
  if (retry != SteadyTime::Never() && retry_ == 0) {
    retry_ = loop_->At(retry, [this] {
      retry_ = 0;
      Write();
    });
  }
  if (operations.empty()) return;
  writing_ = true;
  sender_->Send(std::move(operations), [this, uids = std::move(uids)](const ApiSender::Results& results) {
    writing_ = false;
    for (std::size_t i = 0; i < uids.size(); ++i) {
      const auto worker = workers_.find(uids[i]);
      if (worker == workers_.end()) continue;
      worker->second->NoteWritten(results[i]);
      if (worker->second->over()) Drop(uids[i]);
    }
    Write();
  });
}

void Agent::Drop(const std::string& uid) {
  const auto found = workers_.find(uid);
  const PodFolder folder = found->second->folder();
  log::Info("pod is finished", {{"pod", StrCat(found->second->spec().ns, "/", found->second->spec().name)}});
  workers_.erase(found);
  context_->addresses.Release(uid);
  context_->cgroups.RemovePod(uid);
  slow_.Post([folder] { RemovePodFolder(folder); });
}

}  // namespace

absl::StatusOr<std::unique_ptr<NodeAgent>> NodeAgent::Start(kube::Api& api, Clock& clock,
                                                            NodeAgentOptions options) {
  auto agent = std::make_unique<Agent>(api, clock, std::move(options));
  TY_RETURN_IF_ERROR(agent->Begin());
  return agent;
}

}  // namespace trainyard::node
