// A node in a compact form: whether it can run pods, and how much of what it has.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kube/object_meta.h"
#include "kube/pod.h"

namespace trainyard::kube {

// Of a node: a folder that every node of the cluster sees under this path, where jobs keep what must outlive
// their pods.
inline constexpr std::string_view kStorageAnnotation = "trainyard.dev/storage";

// What nodeInfo.containerRuntimeVersion of a node begins with whose pods are processes of its machine.
inline constexpr std::string_view kProcessRuntime = "trainyard://";

struct Taint {
  SharedText key;
  SharedText value;
  SharedText effect;  // "NoSchedule", "PreferNoSchedule", "NoExecute"
  bool operator==(const Taint&) const = default;
};

struct CompactNode {
  ObjectMeta meta;
  Condition ready;
  std::vector<SharedText> troubles;  // other conditions that are true: "MemoryPressure", ...
  std::vector<Taint> taints;
  bool unschedulable = false;
  std::vector<ResourceAmount> allocatable;  // by name

  bool IsReady() const { return ready.status == ConditionStatus::kTrue; }
  bool operator==(const CompactNode&) const = default;
};

// InvalidArgument: the text is no node; it names the field.
absl::StatusOr<CompactNode> ParseNode(std::string json, const MetaOptions& options = {});

}  // namespace trainyard::kube
