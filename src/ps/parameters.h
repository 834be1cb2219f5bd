// A pserver's parameters: gradients come in part by part, are applied, and parameters go out. Knows nothing
// of the network, of other pservers or of who is a member.
//
//   sync:   parts of step n's gradients ──▶ slots, one for each trainer ── Apply(n, who) ──▶ step n + 1
//   async:  parts of a trainer's gradient ──▶ a buffer ── when it is whole, at once ──▶ the parameter is
//   updated
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/exec/finite.h"
#include "graph/kernel/tensor.h"
#include "graph/pass/transpile.h"
#include "ps/inbox.h"
#include "ps/rpc/frame.h"

namespace trainyard::ps {

// All calls from any thread, but Start, Restore, Reprogram and Forget, which come while nothing else does.
class Parameters {
 public:
  // As the graph's mode is. The parameters have no values before Start() or Restore(). `threads` update at
  // once. A parameter that becomes NaN or infinite is an error of Push() and Apply(), FailedPrecondition,
  // where `on_nonfinite` says so.
  static absl::StatusOr<std::unique_ptr<Parameters>> Make(
      const graph::Graph& graph, int threads, graph::OnNonFinite on_nonfinite = graph::OnNonFinite::kFail);
  virtual ~Parameters() = default;

  // Runs the startup program: step 0.
  virtual absl::Status Start() = 0;
  // Takes the variables of a checkpoint. InvalidArgument: one is missing or of another shape.
  virtual absl::Status Restore(std::int64_t step, std::map<std::string, graph::Tensor> variables) = 0;
  // The same parameters under the programs of another generation, whose trainers differ; gradients that were
  // not applied are forgotten.
  virtual absl::Status Reprogram(const graph::Graph& graph) = 0;
  // Gradients that were not applied are forgotten, and who has sent what.
  virtual void Forget() = 0;

  // Sync: how many steps have been applied. Async: how many steps of trainers have begun to be.
  virtual std::int64_t step() const = 0;

  // Keeps one part. Sync: OK for a step that is over, since it is a repeat; Unavailable for one that is not
  // open yet. Async: returns when the gradient is applied, if this part was its last. InvalidArgument: it
  // does not fit.
  virtual absl::Status Push(const GradientPart& part) = 0;
  // Sync: applies the open step with the gradients of these trainers; OK if that has been done.
  // FailedPrecondition: a gradient is missing.
  virtual absl::Status Apply(std::int64_t step, const std::vector<int>& trainers) = 0;

  // The bytes [offset, offset + length) of a parameter. Sync: its own memory, which changes with the next
  // step. Async: a copy that no update runs through.
  virtual absl::StatusOr<std::vector<Payload>> Pull(std::string_view name, std::int64_t offset,
                                                    std::int64_t length) = 0;
  // Rows of a table's shard, by their numbers in it.
  virtual absl::StatusOr<graph::Tensor> Prefetch(std::string_view table, const graph::Tensor& ids) = 0;

  struct Snapshot {
    std::int64_t step = 0;
    std::map<std::string, graph::Tensor> variables;
  };
  // A copy of all that a checkpoint keeps, no parameter half updated. Async: under the step `as`, if that is
  // given, from which it then counts on.
  virtual Snapshot Copy(std::optional<std::int64_t> as = std::nullopt) = 0;
};

}  // namespace trainyard::ps
