// trainyard node kill|stop|start|cordon|uncordon
#include <iostream>

#include "base/document.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/cluster_common.h"
#include "cli/commands.h"
#include "node/node_state.h"

namespace trainyard::cli {
namespace {

// A node of the cluster that is told something by changing its object.
class NodeCommand final : public Command {
 public:
  struct Kind {
    std::string verb;
    std::string summary;
    std::string details;
    std::string patch;
    std::string done;
  };
  explicit NodeCommand(Kind kind) : kind_(std::move(kind)) {}

  std::string name() const override { return StrCat("node ", kind_.verb); }
  std::string summary() const override { return kind_.summary; }
  std::string details() const override { return kind_.details; }
  void Declare(Flags& flags) override {
    flags.Argument("NODE", "Its name, as kubectl get nodes shows it", node_);
    home_.Declare(flags);
  }

  absl::Status Run() override {
    if (node_.empty()) return UsageError("NODE must not be empty");
    TY_ASSIGN_OR_RETURN(const local::Home home, home_.Open());
    TY_ASSIGN_OR_RETURN(ClusterClient client, ClusterClient::Connect(home));
    const auto patched = client.api().Patch(kube::Resource::Nodes(), {.name = node_}, kind_.patch,
                                            {.type = kube::PatchType::kMerge});
    if (kube::IsNotFound(patched.status())) {
      TY_ASSIGN_OR_RETURN(const kube::ListPage nodes, client.api().ListAll(kube::Resource::Nodes(), "", {}));
      std::string names;
      for (const std::string& node : nodes.items) {
        const auto document = ParseJson(node);
        if (document.ok())
          StrAppend(names, names.empty() ? "" : ", ", StringAt(*document, {"metadata", "name"}));
      }
      return absl::NotFoundError(StrCat("there is no node '", Escaped(node_), "'; there are: ", names));
    }
    TY_RETURN_IF_ERROR(patched);
    std::cerr << node_ << kind_.done << "\n";
    return absl::OkStatus();
  }

 private:
  const Kind kind_;
  HomeFlag home_;
  std::string node_;
};

std::string StatePatch(std::string_view value) {
  return StrCat(R"({"metadata":{"annotations":{")", node::kNodeStateAnnotation, R"(":)", value, "}}}");
}

}  // namespace

std::unique_ptr<Command> NewNodeKill() {
  return std::make_unique<NodeCommand>(
      NodeCommand::Kind{.verb = "kill",
                        .summary = "Let a node die: its processes are killed, its heartbeats stop",
                        .details = "As when the power goes. The node is not ready a while later, and its "
                                   "pods stay as they are until they\n"
                                   "are evicted. `trainyard node start` brings it back.",
                        .patch = StatePatch("\"killed\""),
                        .done = " is dead; trainyard node start brings it back"});
}
std::unique_ptr<Command> NewNodeStop() {
  return std::make_unique<NodeCommand>(NodeCommand::Kind{
      .verb = "stop",
      .summary = "Cut a node off: its heartbeats stop, its processes go on",
      .details = "As when the network goes, or the node's agent. `trainyard node start` brings it back.",
      .patch = StatePatch("\"stopped\""),
      .done = " is cut off; trainyard node start brings it back"});
}
std::unique_ptr<Command> NewNodeStart() {
  return std::make_unique<NodeCommand>(NodeCommand::Kind{.verb = "start",
                                                         .summary = "Bring a node back",
                                                         .details = "",
                                                         .patch = StatePatch("null"),
                                                         .done = " is back"});
}
std::unique_ptr<Command> NewNodeCordon() {
  return std::make_unique<NodeCommand>(NodeCommand::Kind{.verb = "cordon",
                                                         .summary = "Let a node take no new pods",
                                                         .details = "",
                                                         .patch = R"({"spec":{"unschedulable":true}})",
                                                         .done = " takes no new pods"});
}
std::unique_ptr<Command> NewNodeUncordon() {
  return std::make_unique<NodeCommand>(NodeCommand::Kind{.verb = "uncordon",
                                                         .summary = "Let a node take pods again",
                                                         .details = "",
                                                         .patch = R"({"spec":{"unschedulable":null}})",
                                                         .done = " takes pods again"});
}

}  // namespace trainyard::cli
