// The model as the master has it: its variables, and the program that learns from gradients.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/exec/executor.h"
#include "graph/exec/finite.h"
#include "graph/ir/program.h"
#include "master/gradients.h"
#include "master/variables.h"

namespace trainyard::master {

// One thread at a time.
class Model {
 public:
  using Variables = std::map<std::string, graph::Tensor>;

  // `shared` are the variables that workers get. InvalidArgument: the programs are wrong, and in what.
  struct Options {
    int threads = 1;
    graph::OnNonFinite on_nonfinite = graph::OnNonFinite::kFail;
  };
  static absl::StatusOr<std::unique_ptr<Model>> Make(const graph::Program& update,
                                                     const graph::Program& startup,
                                                     std::vector<std::string> shared, Options options);

  // Version 0: what the startup program gives, and these values instead of those. InvalidArgument: one is of
  // another shape, or of a variable that there is not.
  absl::Status Start(const Variables& values);
  // A checkpoint's. InvalidArgument: one is missing or of another shape.
  absl::Status Restore(std::int64_t version, const Variables& variables);

  std::int64_t version() const { return version_; }
  // Dense f32 of known dims; of gradients also sparse.
  const std::map<std::string, graph::VarType>& sent() const { return sent_; }

  // One step. `rate`: times the learning rate. Afterwards the version is one higher. Returns what has become
  // non-finite, as graph::FindNonFinite() names it, if that does not fail the job; under kSkip that update is
  // undone. An error names the operator or the variable, and the model is of no more use.
  absl::StatusOr<std::string> Apply(Gradients gradients, double rate = 1);

  // What workers get, and all that a checkpoint has; neither changes when the model does.
  NamedValues TakeShared() const;
  Variables TakeAll() const;

 private:
  Model() = default;
  absl::Status Put(const Variables& variables);
  void Unshare();

  graph::Program startup_;
  graph::Scope scope_;
  std::unique_ptr<graph::PreparedBlock> schedule_;  // null: the rate stays
  std::unique_ptr<graph::PreparedBlock> update_;
  std::unique_ptr<graph::UpdateGuard> guard_;  // of update_
  graph::OnNonFinite on_nonfinite_ = graph::OnNonFinite::kFail;
  std::map<std::string, graph::VarType> kept_;  // all that is persistable
  std::map<std::string, graph::VarType> sent_;
  std::vector<std::string> shared_;
  std::vector<std::string> rates_;  // the variables that are learning rates
  graph::Services services_;
  std::int64_t version_ = 0;
};

}  // namespace trainyard::master
