// What a graph puts out while it runs: appended to the store in the background, a few times a second, so that
// a step never waits for it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "kv/store.h"
#include "ps/tables.h"

namespace trainyard::ps {

struct OutputOptions {
  absl::Duration every = absl::Milliseconds(100);  // how often what has come together is written
  std::int64_t history = 10000;                    // outputs that are kept; older ones are deleted
  std::size_t most_waiting = 100000;  // beyond it the oldest unwritten ones are dropped, and it is logged
};

// Append() is for the thread that runs the graph. A store that cannot be reached is tried again and again;
// nothing is lost meanwhile but what is above `most_waiting`. Sequence numbers go on where an earlier
// incarnation ended.
class Outputs {
 public:
  Outputs(kv::Store& store, Clock& clock, JobKeys keys, std::string graph, OutputOptions options = {});
  // Writes what is left, for at most a second.
  ~Outputs();

  void Append(const Output& output);
  // How many were appended and are neither written nor dropped.
  std::int64_t CountUnwritten() const;
  // Returns when all that was appended before is written, or with DeadlineExceeded.
  absl::Status Flush(absl::Duration timeout);

 private:
  class Writer;
  std::unique_ptr<Writer> writer_;
};

// Appends encoded outputs for a graph that cannot do so itself any more. Waits for the store.
absl::Status AppendOutputs(kv::Store& store, const JobKeys& keys, std::string_view graph,
                           const std::vector<std::string>& outputs);

}  // namespace trainyard::ps
