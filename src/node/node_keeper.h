// Keeps the Node objects of an agent true, and lets the nodes that are up send heartbeats.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/document.h"
#include "node/api_sender.h"
#include "node/heartbeats.h"
#include "node/loop.h"
#include "node/node_agent.h"

namespace trainyard::node {

enum class NodeState : std::uint8_t { kRunning, kStopped, kKilled };
std::string_view PrintNodeState(NodeState state);

// On the node's loop. All that it is given must outlive it.
class NodeKeeper {
 public:
  NodeKeeper(Loop& loop, const NodeAgentOptions& options, MachineFacts facts, ApiSender& sender,
             Heartbeats& heartbeats);
  ~NodeKeeper();
  NodeKeeper(const NodeKeeper&) = delete;
  NodeKeeper& operator=(const NodeKeeper&) = delete;

  bool Has(std::string_view node) const { return nodes_.contains(node); }
  NodeState state(std::string_view node) const { return nodes_.find(node)->second.state; }
  // True: it was another before.
  bool SetState(std::string_view node, NodeState state);

  // All nodes that there are: those of ours that are missing are registered.
  void NoteListed(const std::vector<Document>& nodes);
  // One of ours, as it is; what it says wrongly of itself is put right.
  void NoteSeen(const Document& node);
  void NoteDeleted(std::string_view node);
  // True: the annotation is another than it was.
  bool NoteAnnotation(std::string_view node, const std::string& value);

 private:
  struct Node {
    NodeConfig config;
    NodeState state = NodeState::kRunning;
    bool exists = false;
    bool writing = false;   // of its object or status
    bool creating = false;  // what is being written is the node itself, not its status
    bool status_due = true;
    absl::Time ready_since;
    std::string annotation;
  };
  void WriteDue();
  void WriteNode(Node& node);
  void OnNodeWritten(const std::string& name, const ApiSender::Results& results);

  Loop& loop_;
  Clock& clock_;
  const NodeAgentOptions& options_;
  const MachineFacts facts_;
  ApiSender& sender_;
  Heartbeats& heartbeats_;
  std::map<std::string, Node, std::less<>> nodes_;
  Loop::TimerId timer_ = 0;
  SteadyTime last_status_;
};

}  // namespace trainyard::node
