// How a node is shown.
#include <algorithm>

#include "apiserver/printers/printers.h"
#include "base/text.h"

namespace trainyard::apiserver {
namespace {

constexpr std::string_view kRolePrefix = "node-role.kubernetes.io/";

std::string NodeStatusOf(const Document& node) {
  std::string status = "Unknown";
  if (const Array* conditions = ArrayAt(node, {"status", "conditions"})) {
    for (const Document& condition : *conditions) {
      if (StringAt(condition, {"type"}) == "Ready")
        status = StringAt(condition, {"status"}) == "True" ? "Ready" : "NotReady";
    }
  }
  if (BoolAt(node, {"spec", "unschedulable"})) status += ",SchedulingDisabled";
  return status;
}

std::string RolesOf(const Document& node) {
  std::vector<std::string> roles;
  if (const Object* labels = ObjectAt(node, {"metadata", "labels"})) {
    for (const auto& label : *labels) {
      if (Key(label).starts_with(kRolePrefix)) roles.emplace_back(Key(label).substr(kRolePrefix.size()));
    }
  }
  std::sort(roles.begin(), roles.end());
  std::string text;
  for (const std::string& role : roles) StrAppend(text, text.empty() ? "" : ",", role);
  return text.empty() ? "<none>" : text;
}

std::string_view AddressOf(const Document& node, std::string_view type) {
  if (const Array* addresses = ArrayAt(node, {"status", "addresses"})) {
    for (const Document& address : *addresses) {
      if (StringAt(address, {"type"}) == type) return StringAt(address, {"address"});
    }
  }
  return "<none>";
}

Array NodeCells(const Document& node, absl::Time now) {
  const auto info = [&](std::string_view field) {
    return StringAt(node, {"status", "nodeInfo", field}, "<unknown>");
  };
  return {StringAt(node, {"metadata", "name"}),
          NodeStatusOf(node),
          RolesOf(node),
          PrintAgeOf(node, now),
          StringAt(node, {"status", "nodeInfo", "kubeletVersion"}),
          AddressOf(node, "InternalIP"),
          AddressOf(node, "ExternalIP"),
          info("osImage"),
          info("kernelVersion"),
          info("containerRuntimeVersion")};
}

}  // namespace

const Printer& NodePrinter() {
  static const Printer printer{
      .columns = {NameColumn(),
                  {.name = "Status", .description = "Whether it can run pods."},
                  {.name = "Roles", .description = "What it is for."},
                  AgeColumn(),
                  {.name = "Version", .description = "The version of its agent."},
                  {.name = "Internal-IP", .description = "Its address in the cluster.", .priority = 1},
                  {.name = "External-IP", .description = "Its address for others.", .priority = 1},
                  {.name = "OS-Image", .description = "Its operating system.", .priority = 1},
                  {.name = "Kernel-Version", .description = "Its kernel.", .priority = 1},
                  {.name = "Container-Runtime", .description = "What runs its containers.", .priority = 1}},
      .cells = NodeCells};
  return printer;
}

}  // namespace trainyard::apiserver
