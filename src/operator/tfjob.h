// TFJob, kubeflow.org/v1 and v1alpha2, translated into the job model and back.
#pragma once

#include "base/document.h"
#include "kube/resource.h"
#include "operator/kubeflow.h"
#include "operator/kubeflow_spec.h"

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

// ---- The spec of a TFJob of either version, read and judged.

// v1alpha2 and v1.
const Dialect& TfDialect(std::string_view version);
// Whose rules the job follows, whichever version it is read in: the API server notes in spec.dialect which
// version it was created through. A manifest that no server has seen follows its own; a job that was stored
// before there was a v1 follows v1alpha2.
const Dialect& TfDialectOf(const Document& job);

ParsedSpec ParseTfJobSpec(const Dialect& dialect, const kube::ObjectKey& job, const Document* spec);

}  // namespace trainyard::ops
