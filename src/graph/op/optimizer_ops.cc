// How parameters learn from gradients. A gradient may be dense or sparse; of a sparse one, rows that come
// twice are added first, and only the rows that it has are touched.
#include <algorithm>

#include "base/status.h"
#include "graph/ir/wrong.h"
#include "graph/op/infer.h"
#include "graph/op/schema.h"

namespace trainyard::graph {
namespace {

// Every accumulator in `of_param` has the parameter's dims, every one in `scalars` has one element; each X
// gives XOut.
InferFunction InferUpdate(std::vector<std::string> of_param, std::vector<std::string> scalars) {
  return [of_param = std::move(of_param), scalars = std::move(scalars)](Typing& typing) -> absl::Status {
    TY_RETURN_IF_ERROR(ExpectDense(typing, "Param"));
    if (typing.In("Grad").data_type != DataType::kFloat32)
      return Wrong("Grad must be f32 and is ", Print(typing.In("Grad")));
    TY_RETURN_IF_ERROR(ExpectSameDims(typing, "Param", "Grad"));
    for (const std::string& slot : of_param) {
      TY_RETURN_IF_ERROR(ExpectDense(typing, slot));
      TY_RETURN_IF_ERROR(ExpectSameDims(typing, "Param", slot));
      typing.SetOut(slot + "Out", typing.In(slot));
    }
    for (const std::string& slot : scalars) TY_RETURN_IF_ERROR(ExpectScalar(typing, slot));
    typing.SetOut("ParamOut", typing.In("Param"));
    return absl::OkStatus();
  };
}

OpSchema UpdateOp(std::string type, std::vector<std::string> of_param, std::vector<std::string> scalars,
                  std::vector<AttrSpec> attrs) {
  OpSchema schema{.type = std::move(type),
                  .inputs = {{"Param"}, {"Grad"}},
                  .outputs = {{"ParamOut"}},
                  .attrs = std::move(attrs)};
  for (const std::string& slot : of_param) {
    schema.inputs.push_back({slot});
    schema.outputs.push_back({slot + "Out"});
  }
  for (const std::string& slot : scalars) schema.inputs.push_back({slot});
  schema.infer = InferUpdate(std::move(of_param), std::move(scalars));
  return schema;
}

absl::Status InferSchedule(Typing& typing) {
  TY_RETURN_IF_ERROR(ExpectScalar(typing, "Step", DataType::kInt64));
  const Op& op = typing.op();
  static constexpr std::string_view kKinds[] = {"exponential", "natural_exp", "inverse_time", "polynomial",
                                                "piecewise"};
  const std::string& kind = op.String("kind");
  if (std::find(std::begin(kKinds), std::end(kKinds), kind) == std::end(kKinds))
    return Wrong("there is no schedule ", kind.substr(0, 32));
  if (kind == "piecewise") {
    const Ints& boundaries = op.IntList("boundaries");
    if (op.FloatList("values").size() != boundaries.size() + 1)
      return Wrong("piecewise needs one value more than boundaries");
    if (!std::is_sorted(boundaries.begin(), boundaries.end())) return Wrong("boundaries must ascend");
  } else if (op.Int("decay_steps") < 1) {
    return Wrong("decay_steps must be at least 1");
  }
  typing.SetOut("Out", {.dims = {1}});
  return absl::OkStatus();
}

}  // namespace

void AddOptimizerOps(OpTable& table) {
  const std::vector<std::string> rate = {"LearningRate"};
  table.Add(UpdateOp("sgd", {}, rate, {}));
  table.Add(UpdateOp("momentum", {"Velocity"}, rate, {{"mu", 0.9}, {"use_nesterov", false}}));
  table.Add(UpdateOp("adagrad", {"Moment"}, rate, {{"epsilon", 1e-6}}));
  table.Add(UpdateOp("adam", {"Moment1", "Moment2"}, {"LearningRate", "Beta1Pow", "Beta2Pow"},
                     {{"beta1", 0.9}, {"beta2", 0.999}, {"epsilon", 1e-8}}));
  table.Add(UpdateOp("rmsprop", {"MeanSquare", "Moment"}, rate,
                     {{"rho", 0.95}, {"epsilon", 1e-6}, {"momentum", 0.0}}));
  // Param = momentum * Param + (1 - momentum) * Grad: what batch_norm keeps of its batches.
  table.Add(UpdateOp("moving_average", {}, {}, {{"momentum", 0.9}}));
  table.Add({.type = "learning_rate",
             .inputs = {{"Step"}},
             .outputs = {{"Out"}},
             .attrs = {{"kind", std::string(), true},
                       {"base", 0.0},
                       {"decay_steps", std::int64_t{1}},
                       {"decay_rate", 0.0},
                       {"staircase", false},
                       {"end", 0.0001},
                       {"power", 1.0},
                       {"cycle", false},
                       {"boundaries", Ints()},
                       {"values", Floats()}},
             .infer = InferSchedule});
}

}  // namespace trainyard::graph
