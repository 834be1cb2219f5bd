// NaNs and infinities in what is learnt: found, named by element and variable, and undone where the job
// wants that.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/exec/executor.h"
#include "graph/ir/program.h"
#include "graph/kernel/kernel.h"

namespace trainyard::graph {

// What a job does when a loss or a variable becomes NaN or infinite: ends, goes on, or goes on without the
// update.
enum class OnNonFinite : std::uint8_t { kFail, kWarn, kSkip };
std::string_view Name(OnNonFinite policy);  // "fail", "warn", "skip"
std::optional<OnNonFinite> ParseOnNonFinite(std::string_view name);

// Ends every message with which a job fails because of one.
inline constexpr std::string_view kNonFiniteHint =
    "lower the learning rate, or give --on-nonfinite warn or skip";

std::string_view PrintNonFinite(double number);  // "nan", "inf", "-inf"

// "element 3 of w is nan"; empty: all elements are finite, as those of whole numbers always are.
std::string FindNonFinite(std::string_view name, const Tensor& tensor);
std::string FindNonFinite(const std::map<std::string, Tensor>& variables);

// Checks what the updates of a block have made of its persistable variables. The block outlives it.
class UpdateGuard {
 public:
  UpdateGuard(const Program& program, int block, PreparedBlock& prepared, OnNonFinite policy);

  // Before a run of the block: keeps what a skipped update goes back to.
  void Remember();
  // After the run: the first non-finite element, as FindNonFinite() names it; empty: there is none. An
  // operator that has made one is undone under kSkip: the variables that it writes are as they were. Of
  // variables that learn by rows, the rows of the gradient are looked at.
  std::string Check();

 private:
  // What one operator writes: a parameter, and what its optimizer keeps for it.
  struct Update {
    std::vector<std::pair<std::string, Variable*>> written;
    const Variable* gradient = nullptr;
    std::vector<Tensor> before;
  };

  const OnNonFinite policy_;
  std::vector<Update> updates_;
};

}  // namespace trainyard::graph
