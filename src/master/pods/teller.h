// Writes where a job stands into a ConfigMap, for whoever follows it.
#pragma once

#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "kube/api.h"
#include "master/master.h"
#include "master/pods/keeper.h"

namespace trainyard::master {

inline constexpr std::string_view kProgressKey = "progress";
// "mnist-progress"
std::string ProgressName(std::string_view job);

// One line of JSON.
std::string PrintProgress(const Progress& progress, const PodsReport& pods);

struct TellerOptions {
  std::string ns;
  std::string job;
  std::string pod;  // that owns what is written
  std::string pod_uid;
  absl::Duration every = absl::Milliseconds(250);
};

// Of a job that could not even begin.
absl::Status TellFailure(kube::Api& api, const TellerOptions& options, const std::string& reason);

class ProgressTeller {
 public:
  using Options = TellerOptions;
  // All outlive it.
  ProgressTeller(kube::Api& api, Master& master, std::vector<PodKeeper*> keepers, Options options);
  // Tells the last word.
  ~ProgressTeller();

 private:
  void Run();
  void Tell();

  kube::Api& api_;
  Master& master_;
  const std::vector<PodKeeper*> keepers_;
  const Options options_;
  std::string told_;  // of the thread
  Mutex mu_;
  CondVar changed_;
  bool stopping_ TY_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace trainyard::master
