// The life of a pserver: it serves a part of the model to workers and does what the master orders, until the
// job is over.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace trainyard::master {

struct PserverOptions {
  std::string master;  // HOST:PORT
  std::string token;
  int index = 0;
  std::string pod;
  std::string listen = "127.0.0.1:0";
  absl::Duration patience = absl::Minutes(10);  // with a master that is away
};

// OK: the job is over. Cancelled: it was stopped through what `on_running` was given. Unavailable: the master
// could not be reached for too long. Others: the master does not want it, or it could not listen.
absl::Status RunPserver(const PserverOptions& options,
                        const std::function<void(std::function<void()> stop)>& on_running);

}  // namespace trainyard::master
