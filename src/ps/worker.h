// One pod runs one graph: a trainer or a pserver, as its description in the store says.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kv/store.h"
#include "ps/job.h"  // IsFinal(), of what RunWorker() returns
#include "ps/tables.h"

namespace trainyard::ps {

struct WorkerOptions {
  JobKeys keys;
  std::string graph;
  std::string pod_name;
  std::string pod_ip = "127.0.0.1";
  std::string listen = "127.0.0.1:0";  // of a pserver
  std::string token;
  std::string checkpoint_directory;  // of a pserver
  absl::Duration lease = absl::Seconds(2);
  int threads = 1;
  bool check_finite = false;
};

// Runs the graph to its end. Another thread may stop it through what `on_running` is given. OK: the job is
// complete, or has no place for this graph any more. Cancelled: it was stopped. NotFound: there is no such
// job, or not any more. An end that is final (IsFinal(): a graph that is wrong, data that is not there or
// differs, a number that is none where that is checked, a job that has failed) fails the whole job with its
// reason: all graphs end with it, and none should be started again.
//
// A trainer that the job has no place for yet, and that it may grow by, makes a place for itself.
absl::Status RunWorker(kv::Store& store, const WorkerOptions& options,
                       const std::function<void(std::function<void()> stop)>& on_running);

}  // namespace trainyard::ps
