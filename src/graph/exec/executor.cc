#include "graph/exec/executor.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "graph/exec/finite.h"
#include "graph/ir/validate.h"
#include "graph/kernel/threads.h"
#include "graph/op/check.h"

namespace trainyard::graph {
namespace {

absl::Status CheckFinite(const OpRun::BoundSlot& slot, const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < slot.variables.size(); ++i) {
    const Value& value = slot.variables[i]->value;
    const auto* rows = std::get_if<SparseRows>(&value);
    const std::string bad = FindNonFinite(names[i], rows != nullptr ? rows->value : std::get<Tensor>(value));
    if (!bad.empty()) return absl::FailedPreconditionError(bad);
  }
  return absl::OkStatus();
}

absl::Status CheckWrittenOnce(const Op& op) {
  std::set<std::string_view> written;
  for (const auto& [slot, names] : op.outputs) {
    for (const std::string& name : names) {
      if (!written.insert(name).second)
        return absl::InvalidArgumentError(StrCat("it writes ", name, " twice"));
    }
  }
  return absl::OkStatus();
}

// Gives an output the type that follows from the inputs. Dims that are not known yet are the kernel's to set.
void Shape(Variable& variable, const VarType& type) {
  if (type.kind == VarKind::kSparseRows) {
    if (!std::holds_alternative<SparseRows>(variable.value)) variable.value = SparseRows();
    std::get<SparseRows>(variable.value).height = type.dims[0];
    return;
  }
  if (!std::holds_alternative<Tensor>(variable.value)) variable.value = Tensor();
  auto& tensor = std::get<Tensor>(variable.value);
  if (!type.dims.Known()) {
    if (tensor.type() != type.data_type) tensor = Tensor(type.data_type, {0});
  } else if (tensor.type() != type.data_type || tensor.dims() != type.dims || variable.absent) {
    tensor.Resize(type.data_type, type.dims);
  }
}

}  // namespace

// One block of a program, and those inside it.
class PreparedBlock::Frame {
 public:
  Frame(const Program& program, int block, Scope& scope, const ExecutorOptions& options, Frame* around)
      : program_(program), block_(block), scope_(scope), options_(options), around_(around) {
    for (const Var& var : program.blocks[static_cast<std::size_t>(block)].vars) {
      if (!var.persistable) own_.Get(var.name);
    }
  }

  absl::Status Prepare() {
    const std::vector<Op>& ops = program_.blocks[static_cast<std::size_t>(block_)].ops;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (absl::Status prepared = Prepare(ops[i]); !prepared.ok()) return At(i, prepared);
    }
    return absl::OkStatus();
  }

  absl::Status Run(Services& services) {
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      if (absl::Status run = Run(steps_[i], services); !run.ok()) [[unlikely]] {
        // The end of a pass is news for the loop around, not an error of this operator.
        return absl::IsOutOfRange(run) ? run : At(i, run);
      }
    }
    return absl::OkStatus();
  }

  Variable* Find(std::string_view name) {
    for (Frame* frame = this; frame != nullptr; frame = frame->around_) {
      if (Variable* variable = frame->own_.Find(name)) return variable;
      if (frame->program_.blocks[static_cast<std::size_t>(frame->block_)].Find(name) != nullptr)
        return &scope_.Get(name);
    }
    // Of a block that is prepared by itself, the variables of those around it are the scope's.
    return program_.Find(block_, name) != nullptr ? &scope_.Get(name) : scope_.Find(name);
  }

  const ExecutorOptions& options() const { return options_; }
  // Of the outermost frame: the checked program that all frames refer to.
  std::shared_ptr<const Program> owned;

 private:
  struct Step {
    OpRun run;
    std::unique_ptr<Kernel> kernel;
    std::unique_ptr<Frame> inside;  // of an operator that runs a block
    Typing::Types last;             // the input types that `outputs` follow from
    Typing::Types outputs;
  };

  absl::Status At(std::size_t i, const absl::Status& status) const {
    return Annotate(status, StrCat("program ", program_.id, ", block ", block_, ", operator ", i, " (",
                                   program_.blocks[static_cast<std::size_t>(block_)].ops[i].type, ")"));
  }

  std::vector<OpRun::BoundSlot> Bind(const Slots& slots) {
    std::vector<OpRun::BoundSlot> bound;
    for (const auto& [slot, names] : slots) {
      OpRun::BoundSlot& out = bound.emplace_back(OpRun::BoundSlot{.name = slot});
      for (const std::string& name : names) out.variables.push_back(Find(name));
    }
    return bound;
  }

  absl::Status Prepare(const Op& op) {
    TY_RETURN_IF_ERROR(CheckWrittenOnce(op));
    Step& step = steps_.emplace_back(Step{.run = OpRun(op, Bind(op.inputs), Bind(op.outputs))});
    if (const std::optional<int> inside = op.Block("block")) {
      step.inside = std::make_unique<Frame>(program_, *inside, scope_, options_, this);
      return step.inside->Prepare();
    }
    const MakeKernel* make = options_.kernels->Find(op.type);
    if (make == nullptr) return absl::UnimplementedError("there is no kernel for it on this device");
    step.kernel = (*make)(op);
    return absl::OkStatus();
  }

  absl::Status Run(Step& step, Services& services) {
    step.run.set_services(&services);
    if (step.inside != nullptr) return RunInside(step, services);
    TY_RETURN_IF_ERROR(Shape(step));
    TY_RETURN_IF_ERROR(step.kernel->Run(step.run));
    for (const OpRun::BoundSlot& slot : step.run.outputs()) {
      for (Variable* variable : slot.variables) variable->absent = false;
      if (options_.check_finite) TY_RETURN_IF_ERROR(CheckFinite(slot, step.run.op().Out(slot.name)));
      if (step.run.op().role == Role::kLoss && options_.on_loss)
        TY_RETURN_IF_ERROR(options_.on_loss(step.run.op().Out(slot.name).front(),
                                            std::get<Tensor>(slot.variables.front()->value)));
    }
    return absl::OkStatus();
  }

  // Finds the types of the outputs, unless the inputs have those of the last run.
  absl::Status Shape(Step& step) {
    const bool skip_absent = step.run.op().Bool("skip_absent");
    bool same = !step.outputs.empty() || step.run.op().outputs.empty();
    for (const OpRun::BoundSlot& slot : step.run.inputs()) {
      std::vector<VarType>& types = step.last[slot.name];
      if (skip_absent) types.clear();
      for (std::size_t i = 0; i < slot.variables.size(); ++i) {
        const Variable& variable = *slot.variables[i];
        if (variable.absent) {
          if (skip_absent) continue;
          return absl::FailedPreconditionError(
              StrCat("its input ", step.run.op().In(slot.name)[i],
                     " has no value yet: feed it, or run the startup program first"));
        }
        same = Update(types, skip_absent ? types.size() : i, variable.value) && same && !skip_absent;
      }
    }
    if (!same) {
      TY_ASSIGN_OR_RETURN(step.outputs, InferTypes(step.run.op(), step.last));
    }
    for (const OpRun::BoundSlot& slot : step.run.outputs()) {
      const std::vector<VarType>& types = step.outputs.find(slot.name)->second;
      TY_RETURN_IF_ERROR(CheckInPlace(step, slot, types));
      for (std::size_t i = 0; i < slot.variables.size(); ++i) graph::Shape(*slot.variables[i], types[i]);
    }
    return absl::OkStatus();
  }

  // An operator may write what it reads only as it is: its kernel would find other dims than those that were
  // checked.
  static absl::Status CheckInPlace(const Step& step, const OpRun::BoundSlot& out,
                                   const std::vector<VarType>& types) {
    for (std::size_t i = 0; i < out.variables.size(); ++i) {
      for (const OpRun::BoundSlot& in : step.run.inputs()) {
        const bool same =
            std::find(in.variables.begin(), in.variables.end(), out.variables[i]) != in.variables.end();
        if (!same || out.variables[i]->absent || !types[i].dims.Known() ||
            types[i] == TypeOf(out.variables[i]->value))
          continue;
        return absl::InvalidArgumentError(StrCat("it reads and writes ", step.run.op().Out(out.name)[i],
                                                 " and would make it ", Print(types[i])));
      }
    }
    return absl::OkStatus();
  }

  // Whether types[i] is already the type of the value; it is afterwards.
  static bool Update(std::vector<VarType>& types, std::size_t i, const Value& value) {
    if (types.size() <= i) types.resize(i + 1, VarType{.dims = {kUnknownDim}});
    VarType& type = types[i];
    if (const auto* tensor = std::get_if<Tensor>(&value)) {
      if (type.kind == VarKind::kDense && type.data_type == tensor->type() && type.dims == tensor->dims())
        return true;
    }
    VarType now = TypeOf(value);
    if (now == type) return true;
    type = std::move(now);
    return false;
  }

  absl::Status RunInside(Step& step, Services& services) {
    const std::string& type = step.run.op().type;
    if (type == "iterate") return Iterate(step, services);
    while (step.run.In("Condition").data<bool>()[0]) {
      TY_RETURN_IF_ERROR(step.inside->Run(services));
      if (type == "conditional_block") break;
    }
    return absl::OkStatus();
  }

  absl::Status Iterate(Step& step, Services& services) {
    if (services.batches == nullptr)
      return absl::FailedPreconditionError("it has no data: give it a source of batches");
    const std::int64_t passes = step.run.op().Int("passes");
    while (services.batches->pass() < passes) {
      absl::Status run = step.inside->Run(services);
      if (run.ok()) ++services.step;
      if (!run.ok() && !absl::IsOutOfRange(run)) return run;
    }
    return absl::OkStatus();
  }

  const Program& program_;
  const int block_;
  Scope& scope_;
  const ExecutorOptions options_;
  Frame* const around_;
  Scope own_;
  std::vector<Step> steps_;
};

PreparedBlock::PreparedBlock(std::unique_ptr<Frame> frame) : frame_(std::move(frame)) {}
PreparedBlock::~PreparedBlock() = default;

absl::StatusOr<std::shared_ptr<const Program>> CheckWhole(const Program& program) {
  TY_RETURN_IF_ERROR(Validate(program));
  TY_ASSIGN_OR_RETURN(Program checked, CheckProgram(program));
  return std::make_shared<const Program>(std::move(checked));
}

absl::StatusOr<std::unique_ptr<PreparedBlock>> PreparedBlock::Make(const Program& program, int block,
                                                                   Scope& scope,
                                                                   const ExecutorOptions& options) {
  TY_ASSIGN_OR_RETURN(std::shared_ptr<const Program> checked, CheckWhole(program));
  return Make(std::move(checked), block, scope, options);
}

absl::StatusOr<std::unique_ptr<PreparedBlock>> PreparedBlock::Make(std::shared_ptr<const Program> checked,
                                                                   int block, Scope& scope,
                                                                   const ExecutorOptions& options) {
  ExecutorOptions complete = options;
  if (complete.kernels == nullptr) complete.kernels = &CpuKernels();
  auto frame = std::make_unique<Frame>(*checked, block, scope, complete, nullptr);
  frame->owned = std::move(checked);
  TY_RETURN_IF_ERROR(frame->Prepare());
  return std::unique_ptr<PreparedBlock>(new PreparedBlock(std::move(frame)));
}

absl::Status PreparedBlock::Run(Services& services) {
  SetThreads(frame_->options().threads);
  TY_RETURN_IF_ERROR(frame_->Run(services));
  ++services.step;
  return absl::OkStatus();
}

Variable* PreparedBlock::Find(std::string_view name) { return frame_->Find(name); }

absl::Status PreparedBlock::Feed(std::string_view name, Tensor value) {
  Variable* variable = Find(name);
  if (variable == nullptr)
    return absl::NotFoundError(StrCat("the program has no variable ", name, " to feed"));
  const Var* var = frame_->owned->Find(0, name);
  const VarType type = {.data_type = value.type(), .dims = value.dims()};
  if (var != nullptr && !Agrees(var->type, type)) {
    return absl::InvalidArgumentError(
        StrCat("variable ", name, " is ", Print(var->type), " and cannot be fed ", Print(type)));
  }
  variable->value = std::move(value);
  variable->absent = false;
  return absl::OkStatus();
}

absl::StatusOr<Tensor> PreparedBlock::Fetch(std::string_view name) {
  const Variable* variable = Find(name);
  if (variable == nullptr)
    return absl::NotFoundError(StrCat("the program has no variable ", name, " to fetch"));
  if (variable->absent) return absl::FailedPreconditionError(StrCat("variable ", name, " has no value yet"));
  const auto* tensor = std::get_if<Tensor>(&variable->value);
  if (tensor == nullptr)
    return absl::InvalidArgumentError(StrCat("variable ", name, " is sparse and cannot be fetched"));
  return *tensor;
}

absl::Status RunOnce(const Program& program, Scope& scope, Services& services,
                     const ExecutorOptions& options) {
  TY_ASSIGN_OR_RETURN(const std::unique_ptr<PreparedBlock> block,
                      PreparedBlock::Make(program, 0, scope, options));
  return block->Run(services);
}

}  // namespace trainyard::graph
