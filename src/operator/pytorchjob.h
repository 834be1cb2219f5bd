// PyTorchJob, kubeflow.org/v1, translated into the job model and back.
#pragma once

#include <string>

#include "base/document.h"
#include "kube/resource.h"
#include "operator/kubeflow.h"
#include "operator/kubeflow_spec.h"

namespace trainyard::ops {

class PyTorchJobKind final : public KubeflowKind {
 public:
  PyTorchJobKind();
  bool is_elastic() const override { return true; }
  std::unique_ptr<reconcile::ObjectMaker> NewMaker(const reconcile::CompactJob& job) const override;
  const Dialect& DialectOf(const Document& job) const override;
  const Dialect& FindDialect(std::string_view version) const override;

 private:
  ParsedSpec ParseSpec(const Dialect& dialect, const kube::ObjectKey& job,
                       const Document* spec) const override;
};

// ---- The spec of a PyTorchJob, read and judged.

const Dialect& PyTorchDialect();

ParsedSpec ParsePyTorchJobSpec(const kube::ObjectKey& job, const Document* spec);

// Processes of each pod, as torchrun reads it: "auto", "cpu", "gpu" or a number.
std::string ProcessesPerNode(const Document& spec);

}  // namespace trainyard::ops
