// `trainyard up` as a process of a benchmark's own, as a user starts it.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/process.h"
#include "bench/https_load.h"

namespace trainyard::bench {

class LocalCluster {
 public:
  // On a new home folder, which must not be there; returns when an authenticated request has been answered.
  static absl::StatusOr<std::unique_ptr<LocalCluster>> Start(const std::string& trainyard,
                                                             const std::string& home,
                                                             const std::vector<std::string>& flags = {});
  LocalCluster(const LocalCluster&) = delete;
  LocalCluster& operator=(const LocalCluster&) = delete;
  ~LocalCluster();  // ends it and all that it runs, and removes its folder

  const HttpsTarget& target() const { return target_; }
  const std::string& home() const { return home_; }
  std::string kubeconfig() const { return home_ + "/kubeconfig"; }
  absl::Duration start_time() const { return start_time_; }  // from nothing to that answer
  // What is resident in memory now, in MiB.
  absl::StatusOr<double> ResidentMiB() const;

 private:
  LocalCluster(std::string trainyard, std::string home)
      : trainyard_(std::move(trainyard)), home_(std::move(home)) {}
  absl::Status AwaitReady();

  const std::string trainyard_;
  const std::string home_;
  std::optional<Child> process_;
  HttpsTarget target_;
  absl::Duration start_time_;
};

// What is resident in memory of a process now, in MiB.
absl::StatusOr<double> ResidentMiB(pid_t process);

// The value at quantile `q` of the numbers, which must not be none.
double Quantile(std::vector<double> numbers, double q);

}  // namespace trainyard::bench
