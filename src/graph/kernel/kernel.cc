#include "graph/kernel/kernel.h"

#include <utility>

#include "base/check.h"

namespace trainyard::graph {
namespace {

class FunctionKernel final : public Kernel {
 public:
  explicit FunctionKernel(absl::Status (*run)(OpRun&)) : run_(run) {}
  absl::Status Run(OpRun& run) override { return run_(run); }

 private:
  absl::Status (*run_)(OpRun&);
};

}  // namespace

int OpRun::CountOf(const std::vector<BoundSlot>& slots, std::string_view slot) {
  for (const BoundSlot& bound : slots) {
    if (bound.name == slot) return static_cast<int>(bound.variables.size());
  }
  return 0;
}

Variable* OpRun::At(const std::vector<BoundSlot>& slots, std::string_view slot, int i) {
  for (const BoundSlot& bound : slots) {
    if (bound.name == slot && static_cast<std::size_t>(i) < bound.variables.size()) {
      return bound.variables[static_cast<std::size_t>(i)];
    }
  }
  CheckFailed("slot", "a kernel asks for a variable that its operator has", __FILE__, __LINE__);
}

void KernelTable::Add(std::string type, MakeKernel make) {
  TY_CHECK(kernels_.emplace(std::move(type), std::move(make)).second, "a kernel is registered once");
}

void KernelTable::Add(std::string type, absl::Status (*run)(OpRun&)) {
  Add(std::move(type), [run](const Op&) { return std::make_unique<FunctionKernel>(run); });
}

const MakeKernel* KernelTable::Find(std::string_view type) const {
  const auto found = kernels_.find(type);
  return found == kernels_.end() ? nullptr : &found->second;
}

const KernelTable& CpuKernels() {
  static const KernelTable& table = *[] {
    auto* made = new KernelTable;
    AddMatmulKernels(*made);
    AddMathKernels(*made);
    AddActivationKernels(*made);
    AddConvolutionKernels(*made);
    AddPoolKernels(*made);
    AddNormKernels(*made);
    AddLookupKernels(*made);
    AddLossKernels(*made);
    AddShapeKernels(*made);
    AddFillKernels(*made);
    AddOptimizerKernels(*made);
    AddControlKernels(*made);
    AddRemoteKernels(*made);
    return made;
  }();
  return table;
}

}  // namespace trainyard::graph
