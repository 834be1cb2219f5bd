#include "node/node_keeper.h"

#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::node {
namespace {

// A status that says nothing new is written this often, as a kubelet does.
constexpr absl::Duration kStatusPeriod = absl::Minutes(5);

}  // namespace

std::string_view PrintNodeState(NodeState state) {
  switch (state) {
    case NodeState::kRunning:
      return "running";
    case NodeState::kStopped:
      return "stopped";
    case NodeState::kKilled:
      return "killed";
  }
  return "?";
}

NodeKeeper::NodeKeeper(Loop& loop, const NodeAgentOptions& options, MachineFacts facts, ApiSender& sender,
                       Heartbeats& heartbeats)
    : loop_(loop),
      clock_(loop.clock()),
      options_(options),
      facts_(std::move(facts)),
      sender_(sender),
      heartbeats_(heartbeats) {
  for (const NodeConfig& config : options.nodes) {
    nodes_[config.name] = {.config = config, .ready_since = clock_.Now()};
  }
}

NodeKeeper::~NodeKeeper() {
  if (timer_ != 0) loop_.Cancel(timer_);
}

bool NodeKeeper::SetState(std::string_view node, NodeState state) {
  Node& known = nodes_.find(node)->second;
  if (known.state == state) return false;
  known.state = state;
  if (state == NodeState::kRunning) {
    known.status_due = true;
    known.ready_since = clock_.Now();
    WriteDue();
  } else {
    heartbeats_.StopNode(known.config.name);
  }
  return true;
}

bool NodeKeeper::NoteAnnotation(std::string_view node, const std::string& value) {
  Node& known = nodes_.find(node)->second;
  if (known.annotation == value) return false;
  known.annotation = value;
  return true;
}

void NodeKeeper::NoteListed(const std::vector<Document>& nodes) {
  for (auto& [name, node] : nodes_) node.exists = false;
  for (const Document& node : nodes) {
    const auto known = nodes_.find(StringAt(node, {"metadata", "name"}));
    if (known != nodes_.end()) known->second.exists = true;
  }
  // The list that says whether a node is up comes before its first heartbeat.
  if (timer_ == 0) timer_ = loop_.At(clock_.Steady(), [this] { WriteDue(); });
}

void NodeKeeper::NoteSeen(const Document& node) {
  Node& known = nodes_.find(StringAt(node, {"metadata", "name"}))->second;
  known.exists = true;
  if (known.writing || known.state != NodeState::kRunning || SaysReady(node)) return;
  known.status_due = true;
  known.ready_since = clock_.Now();
  WriteNode(known);
}

void NodeKeeper::NoteDeleted(std::string_view node) {
  const auto known = nodes_.find(node);
  if (known == nodes_.end()) return;
  known->second.exists = false;
  known->second.annotation.clear();
  known->second.status_due = true;
}

void NodeKeeper::WriteDue() {
  if (timer_ != 0) loop_.Cancel(timer_);
  const SteadyTime now = clock_.Steady();
  timer_ = loop_.At(now + options_.heartbeat, [this] {
    timer_ = 0;
    WriteDue();
  });
  const bool all_due = now - last_status_ >= kStatusPeriod;
  if (all_due) last_status_ = now;
  for (auto& [name, node] : nodes_) {
    if (node.state != NodeState::kRunning) continue;
    heartbeats_.StartNode(name);
    if (all_due) node.status_due = true;
    if (node.status_due || !node.exists) WriteNode(node);
  }
}

void NodeKeeper::WriteNode(Node& node) {
  if (node.writing) return;
  node.writing = true;
  node.creating = !node.exists;
  const std::string& name = node.config.name;
  const absl::Time now = clock_.Now();
  std::vector<kube::Operation> operations;
  if (node.creating) {
    operations.push_back(kube::CreateOperation(
        kube::Resource::Nodes(), "", PrintJson(MakeNode(node.config, facts_, options_.release, now))));
  } else {
    operations.push_back(kube::PatchOperation(kube::Resource::Nodes(), {.name = name},
                                              PrintJson(NodePatch(node.config, facts_)),
                                              {.type = kube::PatchType::kMerge}));
    operations.push_back(kube::PatchOperation(
        kube::Resource::Nodes(), {.name = name},
        PrintJson(NodeStatusPatch(node.config, facts_, options_.release, node.ready_since, now)),
        {.type = kube::PatchType::kStrategic}, "status"));
  }
  sender_.Send(std::move(operations),
               [this, name](const ApiSender::Results& results) { OnNodeWritten(name, results); });
}

void NodeKeeper::OnNodeWritten(const std::string& name, const ApiSender::Results& results) {
  Node& node = nodes_[name];
  node.writing = false;
  const absl::Status& status = results.back().status();
  // The watch may have told of it before the answer came.
  const bool created = std::exchange(node.creating, false);
  if (kube::IsNotFound(status)) {
    node.exists = false;
  } else if (status.ok() || kube::IsAlreadyExists(status)) {
    node.exists = true;
    // What a node is created with does not include its status everywhere; so it is written once more.
    node.status_due = created;
  }
  if (!status.ok() && !kube::IsAlreadyExists(status)) {
    log::Debug("cannot write a node; trying again", {{"node", name}, {"error", Message(status)}});
  } else if (created) {
    WriteNode(node);
  }
}

}  // namespace trainyard::node
