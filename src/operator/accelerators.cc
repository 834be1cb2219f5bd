#include "operator/accelerators.h"

#include <algorithm>

#include "base/text.h"

namespace trainyard::ops {

std::vector<std::string> AcceleratorSigns::FindAsked(const std::vector<kube::ResourceAmount>& amounts) const {
  std::vector<std::string> asked;
  for (const std::string& resource : resources) {
    if (kube::FindAmount(amounts, resource) > 0) asked.push_back(resource);
  }
  return asked;
}

std::string AcceleratorSigns::FindMark(const kube::CompactNode& node) const {
  for (const kube::SharedText& trouble : node.troubles) {
    if (std::ranges::find(conditions, trouble.view()) != conditions.end())
      return StrCat("condition ", trouble.view());
  }
  const bool tainted = std::ranges::any_of(
      node.taints, [](const kube::Taint& taint) { return taint.key == kAcceleratorTaint; });
  return tainted ? StrCat("taint ", kAcceleratorTaint) : "";
}

std::string AcceleratorSigns::FindTrouble(
    const kube::CompactNode& node, const std::vector<std::string>& asked,
    const std::vector<std::shared_ptr<const kube::CompactPod>>& bound) const {
  if (std::string mark = FindMark(node); !mark.empty()) return mark;
  for (const std::string& resource : asked) {
    std::int64_t taken = 0;
    for (const auto& pod : bound) {
      if (!pod->IsFinished()) taken += kube::FindAmount(pod->requests, resource);
    }
    const std::int64_t left = kube::FindAmount(node.allocatable, resource);
    if (left < taken) return StrCat(left / 1000, " of ", resource, " are left for ", taken / 1000);
  }
  return "";
}

}  // namespace trainyard::ops
