#include "session.h"

#include <filesystem>
#include <limits>
#include <optional>
#include <system_error>

#include "base/files.h"
#include "base/status.h"
#include "base/text.h"
#include "graph/kernel/tensor_file.h"

namespace trainyard::python {
namespace {

using namespace graph;

constexpr std::string_view kSuffix = ".tensor";

VarType TypeOf(const Tensor& tensor) { return {.data_type = tensor.type(), .dims = tensor.dims()}; }

absl::Status SystemError(std::string_view what, const std::string& path, const std::error_code& error) {
  return ErrnoStatus(error.value(), StrCat(what, " ", path));
}

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

// The files of a folder that hold a tensor, by the name of its variable.
absl::StatusOr<std::map<std::string, std::string>> TensorFiles(const std::string& folder) {
  std::map<std::string, std::string> files;
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string file = entry->path().filename();
    if (file.size() > kSuffix.size() && file.ends_with(kSuffix))
      files.emplace(file.substr(0, file.size() - kSuffix.size()), entry->path());
  }
  if (error) return SystemError("cannot read the folder", folder, error);
  return files;
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
  constexpr mode_t kMode = 0644;
  const MutexLock lock(mu_);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return SystemError("cannot make the folder", folder, error);
  bool any = false;
  for (const std::string& name : scope_.Names()) {
    const Tensor* tensor = scope_.FindTensor(name);
    if (tensor == nullptr) continue;
    any = true;
    TY_RETURN_IF_ERROR(
        ReplaceFile(StrCat(folder, "/", name, kSuffix), EncodeTensor(*tensor), kMode, Durability::kPower));
  }
  return any ? absl::OkStatus()
             : absl::FailedPreconditionError("there is nothing to save: start a program first");
}

absl::StatusOr<Session::Loaded> Session::ReadAll(const std::string& folder) const {
  TY_ASSIGN_OR_RETURN(const auto files, TensorFiles(folder));
  if (files.empty())
    return absl::NotFoundError(StrCat("the folder ", folder, " has no file that ends in ", kSuffix));
  Loaded loaded;
  for (const auto& [name, file] : files) {
    const Tensor* now = scope_.FindTensor(name);
    const std::size_t most =
        now == nullptr ? std::numeric_limits<std::size_t>::max() : EncodedBytes(now->type(), now->dims());
    TY_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(file, most));
    absl::StatusOr<Tensor> tensor = DecodeTensor(bytes);
    if (!tensor.ok()) return Annotate(tensor.status(), file);
    if (absl::Status fits = CheckFits(name, TypeOf(*tensor)); !fits.ok()) return Annotate(fits, file);
    loaded.emplace(name, *std::move(tensor));
  }
  return loaded;
}

absl::Status Session::Load(const std::string& folder, bool allow_missing) {
  const MutexLock lock(mu_);
  TY_ASSIGN_OR_RETURN(Loaded loaded, ReadAll(folder));
  for (const std::string& name : scope_.Names()) {
    if (!allow_missing && scope_.FindTensor(name) != nullptr && !loaded.contains(name))
      return absl::NotFoundError(StrCat("the folder ", folder, " has no ", name, kSuffix));
  }
  for (auto& [name, tensor] : loaded) scope_.Put(name, std::move(tensor));
  return absl::OkStatus();
}

}  // namespace trainyard::python
