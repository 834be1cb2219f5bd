// Runs programs. What can be done once is done when a block is prepared: operators are checked, kernels made,
// names resolved. A run then goes from operator to operator.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/exec/scope.h"
#include "graph/ir/program.h"
#include "graph/kernel/kernel.h"

namespace trainyard::graph {

struct ExecutorOptions {
  int threads = 1;            // inside one operator
  bool check_finite = false;  // an operator that makes a NaN or an infinity is an error that names it
  // Called with each loss that is computed; its error ends the run.
  std::function<absl::Status(const std::string& name, const Tensor& loss)> on_loss;
  const KernelTable* kernels = nullptr;  // null: the CPU's
};

// The program completed and found good, for whoever prepares several of its blocks. InvalidArgument: what is
// wrong with which operator.
absl::StatusOr<std::shared_ptr<const Program>> CheckWhole(const Program& program);

// A block that is ready to run. Its persistable variables are the scope's; the others are its own, and keep
// their memory from run to run. One thread at a time. The scope must outlive it.
class PreparedBlock {
 public:
  // Checks the whole program. InvalidArgument: what is wrong with which operator.
  static absl::StatusOr<std::unique_ptr<PreparedBlock>> Make(const Program& program, int block, Scope& scope,
                                                             const ExecutorOptions& options = {});
  // The same of a program that CheckWhole() gave.
  static absl::StatusOr<std::unique_ptr<PreparedBlock>> Make(std::shared_ptr<const Program> checked,
                                                             int block, Scope& scope,
                                                             const ExecutorOptions& options = {});
  ~PreparedBlock();

  // Runs every operator in order; the first error ends it and names the operator. Raises services.step by
  // one.
  absl::Status Run(Services& services);

  // A variable that the block's operators see: its own or the scope's; null if there is none.
  Variable* Find(std::string_view name);
  // Gives a variable its value for the next runs.
  absl::Status Feed(std::string_view name, Tensor value);
  // The dense value that it has now.
  absl::StatusOr<Tensor> Fetch(std::string_view name);

 private:
  class Frame;
  explicit PreparedBlock(std::unique_ptr<Frame> frame);
  std::unique_ptr<Frame> frame_;
};

// Runs block 0 once, for programs that are run once: startup programs.
absl::Status RunOnce(const Program& program, Scope& scope, Services& services,
                     const ExecutorOptions& options = {});

}  // namespace trainyard::graph
