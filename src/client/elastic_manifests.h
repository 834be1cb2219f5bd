// The objects that an elastic job is made of: an AITrainingJob with the groups master, worker and pserver,
// and, owned by it, a Secret with its token and a ConfigMap with what it is to do. Pure: settings in,
// documents out.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/document.h"
#include "client/manifests.h"
#include "master/spec.h"

namespace trainyard::client {

inline constexpr int kMasterPort = 50001;

struct ElasticSettings {
  PodSettings pods;
  master::JobSpec spec;
  std::string model_text;  // of a model in Python: the file itself
  std::string state_dir;   // of this very run, where containers see it
  std::string store_url;   // where the queue is kept; "": in state_dir
  std::string python = "/usr/bin/python3";
  std::string python_path;                 // where the package is, if it is not where Python finds it
  std::map<std::string, std::string> env;  // of workers
  std::string service_account;             // of the master; "": the namespace's default
  std::string image_pull_policy;
};

// The paths of the spec as pods find them: on this machine those of the folder that this process runs in,
// elsewhere those of the storage. InvalidArgument: what is to be written lies outside the storage.
absl::Status ResolvePaths(ElasticSettings& settings);

// Marks the AITrainingJob and its pods; its value is the job's name.
inline constexpr std::string_view kElasticJobLabel = "trainyard.dev/elastic-job";

// "mnist-job", "mnist-token".
std::string ConfigName(std::string_view job);
std::string TokenName(std::string_view job);

Document JobConfig(const ElasticSettings& settings);
// The AITrainingJob. Its worker group is empty: the master starts the workers when it is ready for them.
Document ElasticJobObject(const ElasticSettings& settings);

}  // namespace trainyard::client
