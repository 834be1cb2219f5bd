#include "session.h"

#include <optional>

#include "base/status.h"
#include "base/text.h"
#include "graph/exec/saved.h"

namespace trainyard::python {
namespace {

using namespace graph;

VarType TypeOf(const Tensor& tensor) { return {.data_type = tensor.type(), .dims = tensor.dims()}; }

// The records that the program reads; null if it reads none.
absl::StatusOr<std::unique_ptr<ps::RecordBatches>> OpenRecords(const Program& program) {
  const Op* read = nullptr;
  for (const Block& block : program.blocks) {
    for (const Op& op : block.ops) {
      if (op.type != "read") continue;
      if (read != nullptr)
        return absl::InvalidArgumentError(
            StrCat("program ", program.id, " reads twice: a reader of several sources reads them together"));
      read = &op;
    }
  }
  if (read == nullptr) return nullptr;
  TY_ASSIGN_OR_RETURN(std::unique_ptr<ps::RecordBatches> batches, ps::RecordBatches::Open(*read));
  batches->AssignAll();
  return batches;
}

}  // namespace

absl::Status Session::Start(const Program& startup) {
  const MutexLock lock(mu_);
  Services services{.seed = startup.seed};
  return RunOnce(startup, scope_, services, options_);
}

absl::StatusOr<Session::Prepared*> Session::Prepare(const SharedProgram& program) {
  if (const auto found = prepared_.find(program); found != prepared_.end()) return &found->second;
  std::erase_if(prepared_, [](const auto& entry) { return entry.first.expired(); });
  TY_ASSIGN_OR_RETURN(std::unique_ptr<PreparedBlock> block,
                      PreparedBlock::Make(*program, 0, scope_, options_));
  TY_ASSIGN_OR_RETURN(std::unique_ptr<ps::RecordBatches> batches, OpenRecords(*program));
  const Services services = {.batches = batches.get(), .seed = program->seed};
  return &prepared_.emplace(program, Prepared{std::move(block), std::move(batches), services}).first->second;
}

absl::Status Session::Feed(Prepared& prepared, const Program& program, const Feeds& feeds) {
  for (const auto& [name, view] : feeds) {
    const Var* var = program.Find(0, name);
    Tensor tensor;
    // The memory of the last run is used again, but never that of a parameter: it must outlive an error.
    if (Variable* variable = prepared.block->Find(name); variable != nullptr && var != nullptr &&
                                                         !var->persistable && variable->absent &&
                                                         std::holds_alternative<Tensor>(variable->value)) {
      tensor = std::move(std::get<Tensor>(variable->value));
    }
    view.CopyTo(tensor);
    TY_RETURN_IF_ERROR(prepared.block->Feed(name, std::move(tensor)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> Session::Run(const SharedProgram& program, const Feeds& feeds,
                                                 const std::vector<std::string>& fetches) {
  const MutexLock lock(mu_);
  TY_ASSIGN_OR_RETURN(Prepared * prepared, Prepare(program));
  absl::Status run = Feed(*prepared, *program, feeds);
  if (run.ok()) run = prepared->block->Run(prepared->services);
  std::vector<Tensor> values;
  for (std::size_t i = 0; run.ok() && i < fetches.size(); ++i) {
    const absl::StatusOr<Tensor> value = prepared->block->Fetch(fetches[i]);
    if (value.ok()) values.push_back(value->Clone());
    run.Update(value.status());
  }
  // Or the next run would go on with old values if it were fed too little.
  for (const auto& [name, unused] : feeds) {
    const Var* var = program->Find(0, name);
    if (var != nullptr && !var->persistable) prepared->block->Find(name)->absent = true;
  }
  if (!run.ok()) return run;
  return values;
}

absl::StatusOr<Tensor> Session::Get(const std::string& name) const {
  const MutexLock lock(mu_);
  const Tensor* tensor = scope_.FindTensor(name);
  if (tensor == nullptr) {
    return absl::NotFoundError(StrCat("the executor has no value of \"", Escaped(name),
                                      "\": only persistable variables stay, once start has made them"));
  }
  return tensor->Clone();
}

absl::Status Session::CheckFits(const std::string& name, const VarType& type) const {
  const Tensor* now = scope_.FindTensor(name);
  if (now == nullptr || TypeOf(*now) == type) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat("variable ", name, " is ", Print(TypeOf(*now)), " and cannot be set to ", Print(type)));
}

absl::Status Session::Set(const std::string& name, const ArrayView& value) {
  const MutexLock lock(mu_);
  TY_RETURN_IF_ERROR(CheckFits(name, {.data_type = value.type, .dims = value.dims}));
  Tensor tensor;
  value.CopyTo(tensor);
  scope_.Put(name, std::move(tensor));
  return absl::OkStatus();
}

std::vector<std::string> Session::Names() const {
  const MutexLock lock(mu_);
  std::vector<std::string> names = scope_.Names();
  std::erase_if(names,
                [&](const std::string& name) TY_REQUIRES(mu_) { return scope_.FindTensor(name) == nullptr; });
  return names;
}

absl::Status Session::Save(const std::string& folder) const {
  const MutexLock lock(mu_);
  return SaveVariables(scope_, folder);
}

absl::Status Session::Load(const std::string& folder, bool allow_missing) {
  const MutexLock lock(mu_);
  return LoadVariables(scope_, folder, allow_missing);
}

}  // namespace trainyard::python
