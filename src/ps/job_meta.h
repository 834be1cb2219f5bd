// What all graphs of a job go by: how many there are, how parameters are cut, and which generation it is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "graph/exec/finite.h"
#include "graph/pass/transpile.h"

namespace trainyard::ps {

enum class JobState : std::uint8_t { kWaiting, kRunning, kComplete, kFailed };

// A layout that the job had before, and the step of the checkpoints that it was left with.
struct PreviousLayout {
  std::string layout;
  int pservers = 1;
  std::int64_t step = 0;
  bool operator==(const PreviousLayout&) const = default;
};

struct JobMeta {
  JobState state = JobState::kWaiting;
  std::string reason;       // of a failure
  bool foreground = false;  // the job ends with its client
  graph::SyncMode mode = graph::SyncMode::kSync;
  int trainers = 1;
  int least_trainers = 0;  // so many must have been seen before the first step; 0: all
  int most_trainers = 0;   // to so many it may grow by itself; 0: as many as there are
  int slots = 0;           // for so many trainers the pservers have room; 0: for those that there are
  int pservers = 1;
  // Raised whenever what was sent before must not count any more.
  std::int64_t generation = 1;
  // The last time that the job went back to a checkpoint: to which step, and which generation began so. Later
  // generations went on where the one before was.
  std::optional<std::int64_t> rolled_back_to;
  std::int64_t rolled_back_in = 0;
  // Names how parameters are cut: checkpoints of another layout are cut anew before they are used.
  std::string layout;
  std::optional<PreviousLayout> previous;
  graph::OnNonFinite on_nonfinite = graph::OnNonFinite::kFail;
  std::int64_t checkpoint_every = 100;  // steps
  std::int64_t checkpoints_asked = 0;   // beside those that are due: how often, and how often the lead had
  std::int64_t checkpoints_made = 0;    // them written
  std::int64_t passes = 1;              // over the data
  std::int64_t steps = 0;               // of a job that is complete: how many it had

  graph::Cut Cut() const { return {.pservers = pservers, .slots = slots == 0 ? trainers : slots}; }
  bool operator==(const JobMeta&) const = default;
};

std::string EncodeMeta(const JobMeta& meta);
absl::StatusOr<JobMeta> DecodeMeta(std::string_view text);

}  // namespace trainyard::ps
