// TFJob, kubeflow.org/v1alpha2, translated into the job model and back.
#pragma once

#include "reconcile/kind.h"

namespace trainyard::ops {

class TfJobKind final : public reconcile::Kind {
 public:
  const kube::Resource& resource() const override;
  const std::vector<std::string>& names() const override;
  bool IsMain(std::string_view container) const override;
  job::Telling telling() const override { return job::Telling::kByState; }
  std::string_view label_selector() const override;
  std::vector<std::string> place_labels() const override;
  std::optional<reconcile::Place> FindPlace(const kube::ObjectMeta& meta) const override;
  Object LabelsOf(const kube::ObjectMeta& job) const override;
  Object LabelsOf(const kube::ObjectMeta& job, const reconcile::Place& place) const override;
  absl::StatusOr<reconcile::CompactJob> Decode(std::string json) const override;
  Document PrintStatus(const job::JobStatus& status) const override;
  std::unique_ptr<reconcile::ObjectMaker> NewMaker(const reconcile::CompactJob& job) const override;
};

}  // namespace trainyard::ops
