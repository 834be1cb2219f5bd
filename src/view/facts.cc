#include <algorithm>

#include "base/check.h"
#include "base/letters.h"
#include "base/text.h"
#include "job/names.h"
#include "view/job.h"

namespace trainyard::view {
namespace {

const std::vector<KindFacts>& AllFacts() {
  static const std::vector<KindFacts>* const all = new std::vector<KindFacts>{
      {.kind = Kind::kTfJob,
       .name = "tfjob",
       .others = {"tfjobs", "tfj"},
       .history = "tfjob",
       .status = job::kTfJobStatus,
       .resource = {"kubeflow.org", "v1", "tfjobs", "TFJob"},
       .roles = "tfReplicaSpecs",
       .job_label = "tf_job_name",
       .role_label = "tf-replica-type",
       .index_label = "tf-replica-index"},
      {.kind = Kind::kPyTorchJob,
       .name = "pytorchjob",
       .others = {"pytorchjobs", "ptj"},
       .history = "pytorchjob",
       .status = job::kPyTorchJobStatus,
       .resource = {"kubeflow.org", "v1", "pytorchjobs", "PyTorchJob"},
       .roles = "pytorchReplicaSpecs",
       .job_label = "training.kubeflow.org/job-name",
       .role_label = "training.kubeflow.org/replica-type",
       .index_label = "training.kubeflow.org/replica-index"},
      {.kind = Kind::kAiTrainingJob,
       .name = "aitrainingjob",
       .others = {"aitrainingjobs", "aitj", "aitjs"},
       .history = "aitrainingjob",
       .status = job::kAiTrainingJobStatus,
       .resource = {"elasticdeeplearning.ai", "v1", "aitrainingjobs", "AITrainingJob"},
       .roles = "replicaSpecs",
       .object_selector = "!trainyard.dev/elastic-job,!trainyard.dev/launch-task,!trainyard.dev/service",
       .job_label = job::kJobNameLabel,
       .role_label = job::kRoleLabel,
       .index_label = job::kIndexLabel},
      {.kind = Kind::kElastic,
       .name = "elastic",
       .others = {"elasticjob", "elasticjobs"},
       .history = "aitrainingjob",
       .status = job::kAiTrainingJobStatus,
       .reporter = job::Reporter::kMaster,
       .resource = {"elasticdeeplearning.ai", "v1", "aitrainingjobs", "AITrainingJob"},
       .roles = "replicaSpecs",
       .object_selector = "trainyard.dev/elastic-job",
       .job_label = job::kJobNameLabel,
       .role_label = job::kRoleLabel,
       .index_label = job::kIndexLabel},
      {.kind = Kind::kTask,
       .name = "task",
       .others = {"tasks", "launch"},
       .history = "aitrainingjob",
       .status = job::kAiTrainingJobStatus,
       .reporter = job::Reporter::kLauncher,
       .resource = {"elasticdeeplearning.ai", "v1", "aitrainingjobs", "AITrainingJob"},
       .roles = "replicaSpecs",
       .object_selector = "trainyard.dev/launch-task",
       .job_label = "trainyard.dev/launch-task",
       .role_label = job::kRoleLabel,
       .index_label = job::kIndexLabel}};
  return *all;
}

}  // namespace

const KindFacts& FactsOf(Kind kind) {
  const auto found = std::ranges::find(AllFacts(), kind, &KindFacts::kind);
  TY_CHECK(found != AllFacts().end(), "every kind has its facts");
  return *found;
}

std::optional<Kind> ParseKind(std::string_view name) {
  for (const KindFacts& facts : AllFacts()) {
    const auto is = [&](std::string_view known) { return LowerCase(known) == LowerCase(name); };
    if (is(facts.name) || std::ranges::any_of(facts.others, is)) return facts.kind;
  }
  return std::nullopt;
}

std::string Job::Id() const { return StrCat(FactsOf(kind).name, "/", name); }

bool NameLess(std::string_view a, std::string_view b) {
  const std::size_t dash_a = a.rfind('-');
  const std::size_t dash_b = b.rfind('-');
  if (dash_a != std::string_view::npos && dash_b != std::string_view::npos &&
      a.substr(0, dash_a) == b.substr(0, dash_b)) {
    const auto number_a = ParseNumber<int>(a.substr(dash_a + 1));
    const auto number_b = ParseNumber<int>(b.substr(dash_b + 1));
    if (number_a && number_b) return *number_a < *number_b;
  }
  return a < b;
}

}  // namespace trainyard::view
