// An elastic job as a user has it: submitted, followed, deleted.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cluster.h"
#include "client/elastic_manifests.h"
#include "job/progress.h"
#include "kube/pod_history.h"

namespace trainyard::client {

// What is known of a job at a moment.
struct ElasticNews {
  std::optional<job::Progress> progress;  // none: the master has not reported yet
  std::string phase;  // of the AITrainingJob, with what it says of it: "Pending: 0/1 nodes are available"
  std::int64_t restarts = 0;            // of all pods together
  bool gone = false;                    // the job is not there any more
  bool ended = false;                   // the job has ended
  bool failed = false;                  // and not as it should
  std::vector<kube::GonePod> replaced;  // pods that were replaced since the last call
};

class ElasticJob {
 public:
  // Makes the job's objects. AlreadyExists: a job of that name runs; one that has ended is removed first.
  // Where the pods are and what they see is the cluster's: it fills in the settings.
  static absl::StatusOr<std::unique_ptr<ElasticJob>> Submit(Cluster& cluster, ElasticSettings settings);
  // One that is there. NotFound: none of that name.
  static absl::StatusOr<std::unique_ptr<ElasticJob>> Attach(Cluster& cluster, std::string_view name);
  virtual ~ElasticJob() = default;

  // What is new since the last call, or what there was if nothing is for so long.
  virtual ElasticNews Await(absl::Duration timeout) = 0;
  // Ends it, if it runs, and removes all its objects. Its checkpoints stay.
  virtual absl::Status Delete() = 0;
};

}  // namespace trainyard::client
