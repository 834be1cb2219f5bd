// AITrainingJobs for tests: worlds in which one runs, and what is asked of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "job/job_testing.h"

namespace trainyard::job {

inline World RunningTrainers(int replicas, RestartPolicy restart, RestartScope scope) {
  return Running(AiJob({AiRole("trainer", replicas, restart, scope)}));
}

inline int AttemptOf(World& world, std::string_view role, int index) {
  const PodView* pod = world.Find(role, index);
  return pod == nullptr ? -1 : pod->attempt;
}

inline std::int64_t RestartsOf(const World& world, const std::string& role) {
  return world.view.status.roles.at(role).restarts;
}

// Takes steps as long as time alone moves the job on.
inline void Await(World& world, absl::Duration most = absl::Hours(1)) {
  const absl::Time until = world.now + most;
  while (world.now < until) {
    ASSERT_GE(world.Settle(), 0);
    world.RunAll();
    ASSERT_GE(world.Settle(), 0);
    if (world.view.status.IsFinished() || StateOf(world.view.status) == State::kRunning) return;
    world.Pass(absl::Seconds(5));
  }
}

}  // namespace trainyard::job
