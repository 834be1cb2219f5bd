// A pserver's programs made ready: its variables, and for each piece of a parameter the block that updates
// it. What runs when, and who may run at once, is for its users to know.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/pace.h"
#include "graph/exec/executor.h"
#include "graph/exec/finite.h"
#include "graph/exec/scope.h"
#include "graph/pass/transpile.h"

namespace trainyard::ps {

class ParameterBlocks {
 public:
  // InvalidArgument: the graph is no pserver's.
  static absl::StatusOr<std::unique_ptr<ParameterBlocks>> Make(
      const graph::Graph& graph, graph::OnNonFinite on_nonfinite = graph::OnNonFinite::kFail);

  // One piece of a parameter. Updates of different pieces may run at once.
  struct Update {
    std::string gradient;
    std::string parameter;
    graph::VarType type;
    std::vector<std::string>
        slots;  // by trainer's number; the gradient itself where trainers are not told apart
    std::unique_ptr<graph::PreparedBlock> block;
    std::unique_ptr<graph::UpdateGuard> guard;  // of the block
  };
  struct Table {
    std::string ids;
    std::string rows;
    std::unique_ptr<graph::PreparedBlock> block;
  };

  std::vector<Update>& updates() { return updates_; }
  Table* FindTable(std::string_view name);
  graph::Scope& scope() { return scope_; }
  graph::OnNonFinite on_nonfinite() const { return on_nonfinite_; }
  const graph::Graph& graph() const { return graph_; }

  // Runs the startup program.
  absl::Status Start();
  // InvalidArgument: a variable is missing or of another shape.
  absl::Status Restore(std::map<std::string, graph::Tensor> variables);
  // Takes over what a pserver of the same layout had.
  absl::Status TakeFrom(ParameterBlocks& other);
  // Moves the learning rate on by one step.
  absl::Status RunSchedule();
  // FailedPrecondition: a variable has become NaN or infinite, and the job fails by that.
  absl::Status Run(Update& update);
  // Copies of all that a checkpoint keeps.
  std::map<std::string, graph::Tensor> Copy() const;
  std::vector<graph::Var> Kept() const;

 private:
  ParameterBlocks(const graph::Graph& graph, graph::OnNonFinite on_nonfinite)
      : graph_(graph), on_nonfinite_(on_nonfinite), nonfinite_pace_(Clock::System().Steady()) {}
  absl::Status Prepare();

  const graph::Graph graph_;
  const graph::OnNonFinite on_nonfinite_;
  Mutex mu_;
  Pace nonfinite_pace_ TY_GUARDED_BY(mu_);
  graph::Scope scope_;
  std::vector<Update> updates_;
  std::vector<std::unique_ptr<graph::PreparedBlock>> schedule_;
  std::map<std::string, Table, std::less<>> tables_;
};

}  // namespace trainyard::ps
