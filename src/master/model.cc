#include "master/model.h"

#include <algorithm>
#include <atomic>

#include "base/check.h"
#include "base/status.h"
#include "base/text.h"
#include "graph/op/check.h"
#include "graph/pass/halves.h"

namespace trainyard::master {
namespace {

using graph::Op;
using graph::Program;
using graph::Role;
using graph::Tensor;

// The operators of these roles alone.
Program Only(const Program& program, bool schedule) {
  Program part = program;
  std::erase_if(part.main().ops, [&](const Op& op) { return (op.role == Role::kSchedule) != schedule; });
  return part;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> Model::Make(const Program& update, const Program& startup,
                                                   std::vector<std::string> shared, Options options) {
  std::unique_ptr<Model> model(new Model);
  const graph::ExecutorOptions executing{.threads = options.threads};
  model->on_nonfinite_ = options.on_nonfinite;
  model->startup_ = startup;
  const Program updates = Only(update, false);
  TY_ASSIGN_OR_RETURN(model->update_, graph::PreparedBlock::Make(updates, 0, model->scope_, executing));
  model->guard_ = std::make_unique<graph::UpdateGuard>(updates, 0, *model->update_, options.on_nonfinite);
  const Program schedule = Only(update, true);
  if (!schedule.main().ops.empty()) {
    TY_ASSIGN_OR_RETURN(model->schedule_, graph::PreparedBlock::Make(schedule, 0, model->scope_, executing));
  }
  for (const graph::Var& var : update.main().vars) {
    if (var.persistable) model->kept_.emplace(var.name, var.type);
  }
  // What computing needs and nothing learns is kept for it all the same.
  for (const graph::Var& var : startup.main().vars) {
    if (var.persistable) model->kept_.emplace(var.name, var.type);
  }
  for (const std::string& name : graph::SentTo(updates)) {
    model->sent_.emplace(name, update.main().Find(name)->type);
  }
  for (const Op& op : updates.main().ops) {
    for (const std::string& rate : op.In("LearningRate")) {
      if (model->kept_.contains(rate)) model->rates_.push_back(rate);
    }
    // A parameter's own rate is made of the common one.
    for (const std::string& rate : op.In("X")) {
      if (op.OneOut("Out").ends_with("@RATE")) model->rates_.push_back(rate);
    }
  }
  std::ranges::sort(model->rates_);
  const auto [first, last] = std::ranges::unique(model->rates_);
  model->rates_.erase(first, last);
  for (const std::string& name : shared) {
    const auto found = model->kept_.find(name);
    if (found == model->kept_.end() || !found->second.dims.Known())
      return absl::InvalidArgumentError(StrCat("the model keeps no variable ", name, " for its workers"));
  }
  std::ranges::sort(shared);
  model->shared_ = std::move(shared);
  return model;
}

absl::Status Model::Start(const Variables& values) {
  graph::Services services{.seed = startup_.seed};
  TY_RETURN_IF_ERROR(graph::RunOnce(startup_, scope_, services));
  TY_RETURN_IF_ERROR(Put(values));
  for (const auto& [name, type] : kept_) {
    if (scope_.FindTensor(name) == nullptr)
      return absl::InvalidArgumentError(StrCat("variable ", name, " has no first value"));
  }
  version_ = 0;
  return absl::OkStatus();
}

absl::Status Model::Restore(std::int64_t version, const Variables& variables) {
  for (const auto& [name, type] : kept_) {
    if (!variables.contains(name))
      return absl::InvalidArgumentError(StrCat("variable ", name, " is missing: is it another model's?"));
  }
  TY_RETURN_IF_ERROR(Put(variables));
  version_ = version;
  return absl::OkStatus();
}

absl::Status Model::Put(const Variables& variables) {
  for (const auto& [name, tensor] : variables) {
    const auto found = kept_.find(name);
    if (found == kept_.end()) return absl::InvalidArgumentError(StrCat("the model has no variable ", name));
    const graph::VarType type = {.data_type = tensor.type(), .dims = tensor.dims()};
    if (!graph::Agrees(found->second, type)) {
      return absl::InvalidArgumentError(StrCat("variable ", name, " is ", graph::Print(found->second),
                                               " and cannot be ", graph::Print(type)));
    }
  }
  for (const auto& [name, tensor] : variables) scope_.Put(name, tensor.Clone());
  return absl::OkStatus();
}

absl::StatusOr<std::string> Model::Apply(Gradients gradients, double rate) {
  Unshare();
  for (auto& [name, value] : gradients) {
    graph::Variable* const variable = update_->Find(name);
    TY_CHECK(variable != nullptr, "gradients were checked when they came");
    variable->value = std::move(value);
    variable->absent = false;
  }
  // A variable that no worker had a gradient of has none this time.
  for (const auto& [name, type] : sent_) {
    if (gradients.contains(name)) continue;
    graph::Variable* const variable = update_->Find(name);
    variable->value = Tensor(type.data_type, type.dims);
    variable->absent = false;
  }
  services_.step = version_;
  if (schedule_ != nullptr) TY_RETURN_IF_ERROR(schedule_->Run(services_));
  std::vector<std::pair<std::string, float>> before;
  if (rate != 1) {
    for (const std::string& name : rates_) {
      auto& tensor = std::get<Tensor>(scope_.Get(name).value);
      before.emplace_back(name, *tensor.data<float>());
      *tensor.data<float>() = static_cast<float>(*tensor.data<float>() * rate);
    }
  }
  services_.step = version_;
  guard_->Remember();
  TY_RETURN_IF_ERROR(update_->Run(services_));
  std::string nonfinite = guard_->Check();
  if (!nonfinite.empty() && on_nonfinite_ == graph::OnNonFinite::kFail)
    return absl::FailedPreconditionError(
        StrCat("step ", version_ + 1, ": ", nonfinite, ": ", graph::kNonFiniteHint));
  for (const auto& [name, value] : before) *std::get<Tensor>(scope_.Get(name).value).data<float>() = value;
  ++version_;
  return nonfinite;
}

// Whoever still has a view of a value keeps it as it is.
void Model::Unshare() {
  for (const auto& [name, type] : kept_) {
    graph::Variable* const variable = scope_.Find(name);
    if (variable == nullptr || variable->absent) continue;
    auto& tensor = std::get<Tensor>(variable->value);
    if (tensor.owner().use_count() > 1) tensor = tensor.Clone();
  }
  std::atomic_thread_fence(std::memory_order_acquire);  // after what others have read who let go
}

NamedValues Model::TakeShared() const {
  NamedValues values;
  for (const std::string& name : shared_) values.emplace_back(name, *scope_.FindTensor(name));
  return values;
}

Model::Variables Model::TakeAll() const {
  Variables variables;
  for (const auto& [name, type] : kept_) variables.emplace(name, *scope_.FindTensor(name));
  return variables;
}

}  // namespace trainyard::master
