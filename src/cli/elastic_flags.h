// The flags of `trainyard train`, `evaluate` and `predict`, and the job that they ask for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/command.h"
#include "client/elastic_job.h"
#include "master/spec.h"

namespace trainyard::cli {

class ElasticFlags {
 public:
  explicit ElasticFlags(master::JobKind kind);
  void Declare(Flags& flags);

  client::ClusterOptions Cluster() const { return cluster_; }
  // What was asked for, found and checked as far as this machine can. A usage error says which flag is wrong.
  absl::StatusOr<client::ElasticSettings> Settings();

 private:
  void DeclareModel(Flags& flags);
  void DeclareData(Flags& flags);
  void DeclareLearning(Flags& flags);
  void DeclareResults(Flags& flags);
  void DeclareWorkers(Flags& flags);
  void DeclarePlace(Flags& flags);
  absl::Status TakeNumbers();
  absl::Status CheckWithoutModel();
  absl::Status TakeModel(client::ElasticSettings& settings);
  void TakeData();
  absl::Status TakeDataOfProgram();

  master::JobSpec spec_;
  client::ClusterOptions cluster_;
  std::string model_;
  std::vector<std::string> params_;
  std::vector<std::string> training_;
  std::vector<std::string> validation_;
  std::vector<std::string> prediction_;
  std::vector<std::string> env_;
  std::string service_account_;
  std::string image_pull_policy_;
  std::string on_nonfinite_;
  std::string python_ = "/usr/bin/python3";
  std::string store_;
  struct Whole {
    std::string flag;
    std::int64_t* bound = nullptr;
    int* small = nullptr;
    std::optional<std::int64_t> given;
  };
  std::vector<Whole> numbers_;
  struct Time {
    absl::Duration* bound = nullptr;
    std::optional<absl::Duration> given;
  };
  std::vector<Time> times_;
};

}  // namespace trainyard::cli
