// An elastic job as a user has it: submitted, followed, deleted.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/document.h"
#include "client/cluster.h"
#include "client/elastic_manifests.h"

namespace trainyard::client {

// What is known of a job at a moment.
struct ElasticNews {
  Document progress;   // as master/pods/teller.h prints it; null: the master has said nothing yet
  std::string master;  // why the master's pod does not run; "": it does
  bool gone = false;   // the master's pod is not there any more
  bool ended = false;  // the master's pod has ended
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
