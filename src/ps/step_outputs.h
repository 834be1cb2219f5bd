// What the operators of one step put out, together: it goes to the store once it is known whether the step
// counts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "graph/kernel/services.h"
#include "ps/outputs.h"

namespace trainyard::ps {

// Used by the thread that runs the graph.
class StepOutputs final : public graph::OutputSink {
 public:
  // Both outlive it.
  StepOutputs(Outputs& outputs, Clock& clock) : outputs_(outputs), clock_(clock) {}
  // Nothing is known of a step that was not settled: it is written as one that was not committed. The lead
  // writes it again if it was.
  ~StepOutputs() override { Settle(false); }

  // A step begins; the one before it was committed.
  void Begin(std::int64_t generation, std::int64_t pass, std::int64_t step);
  // InvalidArgument: the step has put out more than the store takes.
  absl::Status Append(const std::vector<std::pair<std::string, const graph::Tensor*>>& values) override;
  // What became of the step that is open, if one is.
  void Settle(bool committed);
  // The trainer has joined again, and this is the next step that it does: what comes before it was committed.
  void Resume(std::int64_t next_step) { Settle(open_ && open_->step < next_step); }
  // The step that is open as the store would have it if it were committed; "": it has put out nothing.
  std::string Pending() const;

 private:
  Outputs& outputs_;
  Clock& clock_;
  std::optional<Output> open_;
};

}  // namespace trainyard::ps
