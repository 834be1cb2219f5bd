// AITrainingJob, elasticdeeplearning.ai/v1, translated into the job model and back.
#pragma once

#include <string>
#include <vector>

#include "reconcile/kind.h"

namespace trainyard::ops {

class AiJobKind final : public reconcile::Kind {
 public:
  // `accelerators` are names of resources beside those that are known.
  explicit AiJobKind(const std::vector<std::string>& accelerators = {});

  const kube::Resource& resource() const override;
  const std::vector<std::string>& names() const override;
  bool IsMain(std::string_view container) const override;
  bool is_elastic() const override { return true; }
  job::Telling telling() const override { return job::Telling::kByPhase; }
  std::string_view label_selector() const override;
  std::vector<std::string> place_labels() const override;
  std::optional<reconcile::Place> FindPlace(const kube::ObjectMeta& meta) const override;
  Object LabelsOf(const kube::ObjectMeta& job) const override;
  Object LabelsOf(const kube::ObjectMeta& job, const reconcile::Place& place) const override;
  absl::StatusOr<reconcile::CompactJob> Decode(std::string json) const override;
  Document PrintStatus(const reconcile::CompactJob& job, const job::JobStatus& status) const override;
  std::unique_ptr<reconcile::ObjectMaker> NewMaker(const reconcile::CompactJob& job) const override;

 private:
  std::vector<std::string> accelerators_;
};

}  // namespace trainyard::ops
