// How operators are computed. A kernel is made for one operator of one program and run many times, so it
// keeps what it can use again: a library's prepared primitives, room for intermediate values.
//
// Another device is another KernelTable.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "graph/ir/program.h"
#include "graph/kernel/services.h"
#include "graph/kernel/tensor.h"

namespace trainyard::graph {

// Where a variable's value lies. `absent` until something is put there.
struct Variable {
  Value value;
  bool absent = true;
};

// The operator's variables in one run. Inputs have the types that the schema wants and outputs have already
// been given their type and dims: a kernel writes elements, and checks nothing that the schema's type rule
// has checked. Elements of an output are whatever they were.
class OpRun {
 public:
  struct BoundSlot {
    std::string name;
    absl::InlinedVector<Variable*, 2> variables;
  };
  OpRun(const Op& op, std::vector<BoundSlot> inputs, std::vector<BoundSlot> outputs)
      : op_(op), inputs_(std::move(inputs)), outputs_(std::move(outputs)) {}

  const Op& op() const { return op_; }

  int CountIn(std::string_view slot) const { return CountOf(inputs_, slot); }
  int CountOut(std::string_view slot) const { return CountOf(outputs_, slot); }
  bool HasIn(std::string_view slot) const { return CountIn(slot) > 0; }
  bool HasOut(std::string_view slot) const { return CountOut(slot) > 0; }

  // Of a dense variable that is there.
  const Tensor& In(std::string_view slot, int i = 0) const {
    return std::get<Tensor>(InVariable(slot, i).value);
  }
  Tensor& Out(std::string_view slot, int i = 0) const { return std::get<Tensor>(OutVariable(slot, i).value); }
  bool IsSparse(std::string_view slot, int i = 0) const {
    return std::holds_alternative<SparseRows>(InVariable(slot, i).value);
  }
  bool IsSparseOut(std::string_view slot, int i = 0) const {
    return std::holds_alternative<SparseRows>(OutVariable(slot, i).value);
  }
  const SparseRows& InRows(std::string_view slot, int i = 0) const {
    return std::get<SparseRows>(InVariable(slot, i).value);
  }
  SparseRows& OutRows(std::string_view slot, int i = 0) const {
    return std::get<SparseRows>(OutVariable(slot, i).value);
  }

  const Variable& InVariable(std::string_view slot, int i = 0) const { return *At(inputs_, slot, i); }
  Variable& OutVariable(std::string_view slot, int i = 0) const { return *At(outputs_, slot, i); }

  Services& services() const { return *services_; }

  const std::vector<BoundSlot>& inputs() const { return inputs_; }
  const std::vector<BoundSlot>& outputs() const { return outputs_; }
  void set_services(Services* services) { services_ = services; }

 private:
  static int CountOf(const std::vector<BoundSlot>& slots, std::string_view slot);
  static Variable* At(const std::vector<BoundSlot>& slots, std::string_view slot, int i);

  const Op& op_;
  std::vector<BoundSlot> inputs_;
  std::vector<BoundSlot> outputs_;
  Services* services_ = nullptr;
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  // An error says what was wrong with the values; whoever runs the program adds which operator it was.
  virtual absl::Status Run(OpRun& run) = 0;
};

using MakeKernel = std::function<std::unique_ptr<Kernel>(const Op& op)>;

class KernelTable {
 public:
  void Add(std::string type, MakeKernel make);
  // A kernel without anything to keep.
  void Add(std::string type, absl::Status (*run)(OpRun&));
  const MakeKernel* Find(std::string_view type) const;

 private:
  std::map<std::string, MakeKernel, std::less<>> kernels_;
};

// The kernels of the CPU. Operators that run blocks (while, conditional_block, iterate, listen_and_serv) are
// the executor's own and have none.
const KernelTable& CpuKernels();

void AddMatmulKernels(KernelTable& table);
void AddMathKernels(KernelTable& table);
void AddActivationKernels(KernelTable& table);
void AddConvolutionKernels(KernelTable& table);
void AddPoolKernels(KernelTable& table);
void AddNormKernels(KernelTable& table);
void AddLookupKernels(KernelTable& table);
void AddLossKernels(KernelTable& table);
void AddShapeKernels(KernelTable& table);
void AddFillKernels(KernelTable& table);
void AddOptimizerKernels(KernelTable& table);
void AddControlKernels(KernelTable& table);
void AddRemoteKernels(KernelTable& table);

}  // namespace trainyard::graph
