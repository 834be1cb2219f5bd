// Writes where a job stands into a ConfigMap, for whoever follows it.
#pragma once

#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/pace.h"
#include "kube/api.h"
#include "master/master.h"
#include "master/pods/keeper.h"

namespace trainyard::master {

inline constexpr std::string_view kProgressKey = "progress";
// "mnist-progress"
std::string ProgressName(std::string_view job);

// "loss=0.2107 accuracy_0=0.96": how well it goes. Empty: that is not known yet.
std::string PrintMetrics(const Progress& progress);
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
  void Tell(bool last);
  void LogMetrics(const Progress& progress, bool last);

  kube::Api& api_;
  Master& master_;
  const std::vector<PodKeeper*> keepers_;
  const Options options_;
  // Of the thread.
  std::string told_;
  Pace pace_;
  std::string logged_;
  std::int64_t logged_version_ = 0;
  Mutex mu_;
  CondVar changed_;
  bool stopping_ TY_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace trainyard::master
