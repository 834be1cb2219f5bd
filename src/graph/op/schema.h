// What an operator is: its slots and attributes, the types that it makes of types, and its gradient. Pure;
// how it is computed is in graph/kernel/.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "graph/ir/program.h"

namespace trainyard::graph {

enum class Arity : std::uint8_t { kOne, kOptional, kMany };

struct SlotSpec {
  std::string name;
  Arity arity = Arity::kOne;
};

// An attribute that is not given has the value `standard`, whose kind is the attribute's.
struct AttrSpec {
  std::string name;
  Attr standard;
  bool required = false;
};

// The types of an operator's variables, slot by slot: those of the inputs are given, those of the outputs are
// found. Dims may be unknown while a program is built and never are while it runs.
class Typing {
 public:
  using Types = std::map<std::string, std::vector<VarType>, std::less<>>;
  Typing(const Op& op, Types inputs);

  const Op& op() const { return op_; }
  bool Has(std::string_view slot) const { return CountOf(slot) > 0; }
  int CountOf(std::string_view slot) const;
  // Of an input that is there.
  const VarType& In(std::string_view slot, int i = 0) const;
  // An output that the operator does not name is passed over.
  void SetOut(std::string_view slot, VarType type, int i = 0);
  const Types& outputs() const { return outputs_; }

 private:
  const Op& op_;
  Types inputs_;
  Types outputs_;
};

// InvalidArgument: the input types do not go together, and why.
using InferFunction = std::function<absl::Status(Typing&)>;

// Which of an operator's inputs a gradient is wanted for, and which outputs have one.
struct GradientWish {
  std::function<bool(std::string_view variable)> wanted;
  std::function<bool(std::string_view variable)> has_gradient;
};
// The operators that compute the wanted gradients, in order. The gradient of a variable is called
// GradientName(it).
using GradientFunction = std::function<std::vector<Op>(const Op& forward, const GradientWish& wish)>;

std::string GradientName(std::string_view variable);
// "X" -> "X@GRAD", of slots and of variables alike.
inline constexpr std::string_view kGradientSuffix = "@GRAD";

struct OpSchema {
  std::string type;
  std::vector<SlotSpec> inputs;
  std::vector<SlotSpec> outputs;
  std::vector<AttrSpec> attrs;
  InferFunction infer;
  GradientFunction gradient;  // none: it has no gradient, and what lies before it gets none through it

  const SlotSpec* FindInput(std::string_view slot) const;
  const SlotSpec* FindOutput(std::string_view slot) const;
};

// How the usual gradient operator looks: it is called TYPE_grad, has the attributes of its operator, reads
// `reads` (inputs or outputs of the operator) and the gradients of `from`, and writes the gradients of `of`.
struct GradientSpec {
  std::vector<std::string> of;
  std::vector<std::string> reads;  // beside `of`, which are always read
  std::vector<std::string> from = {"Out"};
};

class OpTable {
 public:
  void Add(OpSchema schema);
  // The operator and its gradient operator, whose gradients have the types of what they are gradients of.
  // `infer`, if given, says otherwise.
  void AddWithGradient(OpSchema schema, GradientSpec gradient, InferFunction infer = nullptr);

  const OpSchema* Find(std::string_view type) const;
  const std::map<std::string, OpSchema, std::less<>>& all() const { return schemas_; }

 private:
  std::map<std::string, OpSchema, std::less<>> schemas_;
};

// All operators of this program.
const OpTable& Ops();

// The families of operators, each in a file of its own.
void AddMathOps(OpTable& table);
void AddActivationOps(OpTable& table);
void AddLayerOps(OpTable& table);
void AddLossOps(OpTable& table);
void AddShapeOps(OpTable& table);
void AddFillOps(OpTable& table);
void AddOptimizerOps(OpTable& table);
void AddControlOps(OpTable& table);
void AddRemoteOps(OpTable& table);

}  // namespace trainyard::graph
