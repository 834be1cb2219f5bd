// A worker whose model is a program: computes gradients, evaluates and predicts on the CPU.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "master/worker/trainer.h"

namespace trainyard::master {

// Works until the job is over, or does not need this worker any more (OK). Cancelled: it was stopped through
// what `on_running` was given. FailedPrecondition: the job has failed. Unavailable: the master is away.
absl::Status RunProgramWorker(const WorkerOptions& options,
                              const std::function<void(std::function<void()> stop)>& on_running);

}  // namespace trainyard::master
