// How a failed accelerator of a node shows. Nobody says so of a single one: it is the node that is marked, or
// that has less of them to give than it has given.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kube/node.h"
#include "kube/pod.h"

namespace trainyard::reconcile {

inline constexpr std::string_view kAcceleratorTaint = "trainyard.dev/gpu-failed";

struct AcceleratorSigns {
  std::vector<std::string> resources = {"nvidia.com/gpu", "amd.com/gpu"};
  // Conditions of a node that, when true, say that an accelerator has failed.
  std::vector<std::string> conditions = {"GPUFailed",  "GpuFailed", "GPUUnhealthy",   "GpuUnhealthy",
                                         "GPUProblem", "XidError",  "NvidiaXidError", "GPUXidError"};

  // Those of the resources that are among the amounts, and not 0.
  std::vector<std::string> FindAsked(const std::vector<kube::ResourceAmount>& amounts) const;
  // By which condition or taint the node is marked: "condition GPUFailed"; empty: by none.
  std::string FindMark(const kube::CompactNode& node) const;
};

// That the node has less of the resource than its pods take of it, in thousandths: "3 of nvidia.com/gpu are
// left for 4". Empty: it has enough.
std::string FindLack(const kube::CompactNode& node, const std::string& resource, std::int64_t taken);

}  // namespace trainyard::reconcile
