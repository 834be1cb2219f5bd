#include "ps/rpc/process.h"

#include <stdlib.h>

#include "absl/synchronization/mutex.h"

namespace trainyard::ps {

void TuneProcess(Connections connections) {
  // By itself gRPC waits for all connections together, and whichever thread hears of something wakes the one
  // that it is for. Here each thread waits for its own. Whoever has set it otherwise has reasons.
  constexpr int kUnlessSet = 0;
  if (connections == Connections::kFew) ::setenv("GRPC_POLL_STRATEGY", "poll", kUnlessSet);
  // Debian's build of Abseil looks for circles at every lock that gRPC takes.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
}

}  // namespace trainyard::ps
