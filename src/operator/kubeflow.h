// What the kinds of kubeflow.org share: their translation into the job model and back, but for what each of
// them reads of its spec and tells its containers.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "job/status_document.h"
#include "operator/kubeflow_spec.h"
#include "reconcile/kind.h"

namespace trainyard::ops {

// Labels of pods and services.
struct SeatLabels {
  std::pair<std::string_view, std::string_view>
      all;  // that those of all jobs of the kind carry, and its value
  std::string_view job;
  std::string_view role;
  std::string_view index;
};

class KubeflowKind : public reconcile::Kind {
 public:
  const kube::Resource& resource() const final { return resource_; }
  const std::vector<std::string>& names() const final { return names_; }
  bool IsMain(std::string_view container) const final { return container == main_; }
  job::Telling telling() const final { return job::Telling::kByState; }
  std::string_view label_selector() const final { return selector_; }
  std::vector<std::string> place_labels() const final;
  std::optional<reconcile::Place> FindPlace(const kube::ObjectMeta& meta) const final;
  Object LabelsOf(const kube::ObjectMeta& job) const final;
  Object LabelsOf(const kube::ObjectMeta& job, const reconcile::Place& place) const final;
  absl::StatusOr<reconcile::CompactJob> Decode(std::string json) const final;
  Document PrintStatus(const reconcile::CompactJob& job, const job::JobStatus& status) const final;

  // Whose rules a job follows.
  virtual const Dialect& DialectOf(const Document& job) const = 0;
  virtual const Dialect& FindDialect(std::string_view version) const = 0;

 protected:
  KubeflowKind(kube::Resource resource, std::vector<std::string> names, std::string_view main,
               const SeatLabels& labels, const job::StatusSpelling& spelling);
  virtual ParsedSpec ParseSpec(const Dialect& dialect, const kube::ObjectKey& job,
                               const Document* spec) const = 0;

 private:
  job::StatusSpelling SpellingOf(const Dialect& dialect) const;

  const kube::Resource resource_;
  const std::vector<std::string> names_;
  const std::string_view main_;
  const SeatLabels labels_;
  const std::string selector_;
  const job::StatusSpelling spelling_;  // of the newest version
};

class KubeflowMaker : public reconcile::ObjectMaker {
 public:
  // Both must outlive it.
  KubeflowMaker(const KubeflowKind& kind, const reconcile::CompactJob& job);

  std::string MakePod(const job::CreatePod& create) const final;
  std::string MakeService(const job::CreateService& create) const final;
  Object MakeConfigData() const override { return {}; }

 protected:
  struct Role {
    const job::RoleSpec* spec = nullptr;
    const Document* pod_template = nullptr;
    std::int32_t port = 0;
  };

  // What the kind tells a container; `main`: the one that does the work.
  virtual void AddVariables(Array& env, const reconcile::Place& place, bool main) const = 0;

  std::string Name(std::string_view role, int index) const;
  // Null: the job has no such role.
  const Role* FindRole(std::string_view slug) const;
  const reconcile::CompactJob& job() const { return job_; }
  const Dialect& dialect() const { return dialect_; }
  const Document& spec() const { return spec_; }

 private:
  Object PodLabels(const reconcile::Place& place) const;
  Object Owner() const;
  void FillContainer(Object& container, const Role& from, const reconcile::Place& place, int attempt) const;

  const KubeflowKind& kind_;
  const reconcile::CompactJob& job_;
  const Dialect& dialect_;
  const Document spec_;
  std::map<std::string, Role, std::less<>> roles_;
};

}  // namespace trainyard::ops
