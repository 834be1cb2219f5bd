// PyTorchJob, kubeflow.org/v1, translated into the job model and back.
#pragma once

#include "operator/kubeflow.h"

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

}  // namespace trainyard::ops
