// TFJob, kubeflow.org/v1 and v1alpha2, translated into the job model and back.
#pragma once

#include "operator/kubeflow.h"

namespace trainyard::ops {

class TfJobKind final : public KubeflowKind {
 public:
  TfJobKind();
  bool Serves(std::string_view api_version) const override;
  std::unique_ptr<reconcile::ObjectMaker> NewMaker(const reconcile::CompactJob& job) const override;
  const Dialect& DialectOf(const Document& job) const override;
  const Dialect& FindDialect(std::string_view version) const override;

 private:
  ParsedSpec ParseSpec(const Dialect& dialect, const kube::ObjectKey& job,
                       const Document* spec) const override;
};

}  // namespace trainyard::ops
