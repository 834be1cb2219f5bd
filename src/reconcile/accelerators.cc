#include "reconcile/accelerators.h"

#include <algorithm>

#include "base/text.h"

namespace trainyard::reconcile {

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

std::string FindLack(const kube::CompactNode& node, const std::string& resource, std::int64_t taken) {
  constexpr std::int64_t kMilli = 1000;
  const std::int64_t left = kube::FindAmount(node.allocatable, resource);
  return left < taken ? StrCat(left / kMilli, " of ", resource, " are left for ", taken / kMilli) : "";
}

}  // namespace trainyard::reconcile
