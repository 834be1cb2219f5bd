// What an Executor of Python is made of: variables, and the programs that have been run over them. It knows
// nothing of Python, and is called without the interpreter's lock.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "array_view.h"
#include "base/mutex.h"
#include "graph/exec/executor.h"
#include "graph/exec/scope.h"
#include "ps/record_batches.h"

namespace trainyard::python {

using Feeds = std::vector<std::pair<std::string, ArrayView>>;
using SharedProgram = std::shared_ptr<const graph::Program>;

// All calls may be made from many threads; one is done at a time.
class Session {
 public:
  explicit Session(graph::ExecutorOptions options) : options_(options) {}

  // Runs a startup program.
  absl::Status Start(const graph::Program& startup);
  // Runs block 0 once; it is prepared, and the records that it reads are opened, the first time that this
  // very program is given. What is fed is for this run alone, unless it is a persistable variable. The values
  // are copies. OutOfRange: a pass over the records has ended; the next run begins the next.
  absl::StatusOr<std::vector<graph::Tensor>> Run(const SharedProgram& program, const Feeds& feeds,
                                                 const std::vector<std::string>& fetches);

  // A copy of a persistable variable's value.
  absl::StatusOr<graph::Tensor> Get(const std::string& name) const;
  // InvalidArgument: the variable has a value of another type or shape.
  absl::Status Set(const std::string& name, const ArrayView& value);
  // Those that have a value, in order.
  std::vector<std::string> Names() const;

  // As graph/exec/saved.h says.
  absl::Status Save(const std::string& folder) const;
  absl::Status Load(const std::string& folder, bool allow_missing);

 private:
  struct Prepared {
    std::unique_ptr<graph::PreparedBlock> block;
    std::unique_ptr<ps::RecordBatches> batches;  // null: it reads nothing
    graph::Services services;
  };

  absl::StatusOr<Prepared*> Prepare(const SharedProgram& program) TY_REQUIRES(mu_);
  absl::Status Feed(Prepared& prepared, const graph::Program& program, const Feeds& feeds) TY_REQUIRES(mu_);
  absl::Status CheckFits(const std::string& name, const graph::VarType& type) const TY_REQUIRES(mu_);

  const graph::ExecutorOptions options_;
  mutable Mutex mu_;
  graph::Scope scope_ TY_GUARDED_BY(mu_);
  // Programs that nobody else has any more are forgotten when another one is prepared.
  std::map<std::weak_ptr<const graph::Program>, Prepared, std::owner_less<>> prepared_ TY_GUARDED_BY(mu_);
};

}  // namespace trainyard::python
