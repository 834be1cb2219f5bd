// Arithmetic: products, sums, and what works on each element by itself.
#include <utility>

#include "base/status.h"
#include "graph/ir/wrong.h"
#include "graph/op/infer.h"
#include "graph/op/schema.h"

namespace trainyard::graph {
namespace {

absl::Status InferMul(Typing& typing) {
  TY_RETURN_IF_ERROR(ExpectDense(typing, "X"));
  TY_RETURN_IF_ERROR(ExpectDense(typing, "Y"));
  const Dims& x = typing.In("X").dims;
  const Dims& y = typing.In("Y").dims;
  const auto x_cols = static_cast<int>(typing.op().Int("x_num_col_dims"));
  const auto y_cols = static_cast<int>(typing.op().Int("y_num_col_dims"));
  if (x_cols < 1 || x_cols >= x.rank()) return Wrong("x_num_col_dims is ", x_cols, " and X is ", Print(x));
  if (y_cols < 1 || y_cols >= y.rank()) return Wrong("y_num_col_dims is ", y_cols, " and Y is ", Print(y));
  if (!MayEqual(ProductOf(x, x_cols, x.rank()), ProductOf(y, 0, y_cols))) {
    return Wrong("the columns of X ", Print(x), " are not as many as the rows of Y ", Print(y));
  }
  Dims out = x.Part(0, x_cols);
  for (const std::int64_t size : y.Part(y_cols, y.rank())) out.Append(size);
  typing.SetOut("Out", {.dims = out});
  return absl::OkStatus();
}

// Y's dims are a run of X's, from `axis` on; -1: the last ones. Or Y has one element.
absl::Status InferElementwise(Typing& typing) {
  TY_RETURN_IF_ERROR(ExpectDense(typing, "X"));
  TY_RETURN_IF_ERROR(ExpectDense(typing, "Y"));
  const Dims& x = typing.In("X").dims;
  const Dims& y = typing.In("Y").dims;
  const std::int64_t given = typing.op().Int("axis");
  const std::int64_t axis = given == -1 ? x.rank() - y.rank() : given;
  const bool fits = axis >= 0 && axis + y.rank() <= x.rank() &&
                    MayEqual(x.Part(static_cast<int>(axis), static_cast<int>(axis) + y.rank()), y);
  if (!fits && !(y.Known() && y.Count() == 1)) {
    return Wrong("Y ", Print(y), " is no run of X ", Print(x), " from dim ", axis, " on");
  }
  typing.SetOut("Out", typing.In("X"));
  return absl::OkStatus();
}

// Dense, or sparse if all are.
absl::Status InferSum(Typing& typing) {
  if (!typing.Has("X")) return Wrong("it has nothing to add");
  VarType out = typing.In("X");
  for (int i = 0; i < typing.CountOf("X"); ++i) {
    const VarType& type = typing.In("X", i);
    if (type.data_type != DataType::kFloat32 || !MayEqual(type.dims, out.dims)) {
      return Wrong("it cannot add ", Print(out), " and ", Print(type));
    }
    if (type.kind == VarKind::kDense) out.kind = VarKind::kDense;
    if (!out.dims.Known()) out.dims = type.dims;
  }
  typing.SetOut("Out", out);
  return absl::OkStatus();
}

absl::Status InferScalarOfFloats(Typing& typing) {
  if (typing.In("X").data_type != DataType::kFloat32)
    return Wrong("X must be f32 and is ", Print(typing.In("X")));
  typing.SetOut("Out", {.dims = {1}});
  return absl::OkStatus();
}

absl::Status InferMean(Typing& typing) {
  TY_RETURN_IF_ERROR(ExpectDense(typing, "X"));
  return InferScalarOfFloats(typing);
}

// Of dense and of sparse floats alike.
absl::Status InferFloats(Typing& typing) {
  if (typing.In("X").data_type != DataType::kFloat32)
    return Wrong("X must be f32 and is ", Print(typing.In("X")));
  typing.SetOut("Out", typing.In("X"));
  return absl::OkStatus();
}

absl::Status InferScaleBy(Typing& typing) {
  TY_RETURN_IF_ERROR(ExpectScalar(typing, "Factor"));
  return InferFloats(typing);
}

absl::Status InferScale(Typing& typing) {
  if (typing.Has("Factor")) TY_RETURN_IF_ERROR(ExpectScalar(typing, "Factor"));
  return InferFloats(typing);
}

absl::Status InferDenseFloats(Typing& typing) {
  TY_RETURN_IF_ERROR(ExpectDense(typing, "X"));
  typing.SetOut("Out", typing.In("X"));
  return absl::OkStatus();
}

absl::Status InferClipFactor(Typing& typing) {
  if (!typing.Has("X")) return Wrong("it has no norms to add");
  TY_RETURN_IF_ERROR(ExpectDense(typing, "X"));
  if (typing.op().Float("max_norm") <= 0) return Wrong("max_norm must be above 0");
  typing.SetOut("Out", {.dims = {1}});
  return absl::OkStatus();
}

std::vector<Op> ScaleGradient(const Op& forward, const GradientWish& wish) {
  if (!wish.wanted(forward.OneIn("X"))) return {};
  Op op{.type = "scale",
        .inputs = {{"X", {GradientName(forward.OneOut("Out"))}}},
        .outputs = {{"Out", {GradientName(forward.OneIn("X"))}}},
        .attrs = {{"scale", forward.Float("scale", 1)}},
        .role = Role::kBackward};
  if (!forward.In("Factor").empty()) op.inputs["Factor"] = forward.In("Factor");
  return {std::move(op)};
}

std::vector<Op> SumGradient(const Op& forward, const GradientWish& wish) {
  std::vector<Op> ops;
  for (const std::string& name : forward.In("X")) {
    if (!wish.wanted(name)) continue;
    ops.push_back({.type = "assign",
                   .inputs = {{"X", {GradientName(forward.OneOut("Out"))}}},
                   .outputs = {{"Out", {GradientName(name)}}},
                   .role = Role::kBackward});
  }
  return ops;
}

OpSchema OfX(std::string type, InferFunction infer, std::vector<AttrSpec> attrs = {}) {
  return {.type = std::move(type),
          .inputs = {{"X"}},
          .outputs = {{"Out"}},
          .attrs = std::move(attrs),
          .infer = std::move(infer)};
}

}  // namespace

void AddMathOps(OpTable& table) {
  table.AddWithGradient({.type = "mul",
                         .inputs = {{"X"}, {"Y"}},
                         .outputs = {{"Out"}},
                         .attrs = {{"x_num_col_dims", std::int64_t{1}}, {"y_num_col_dims", std::int64_t{1}}},
                         .infer = InferMul},
                        {.of = {"X", "Y"}});
  for (const char* type : {"elementwise_add", "elementwise_sub", "elementwise_mul", "elementwise_div"}) {
    table.AddWithGradient({.type = type,
                           .inputs = {{"X"}, {"Y"}},
                           .outputs = {{"Out"}},
                           .attrs = {{"axis", std::int64_t{-1}}},
                           .infer = InferElementwise},
                          {.of = {"X", "Y"}});
  }
  for (const char* type : {"elementwise_min", "elementwise_max", "elementwise_pow"}) {
    table.Add({.type = type,
               .inputs = {{"X"}, {"Y"}},
               .outputs = {{"Out"}},
               .attrs = {{"axis", std::int64_t{-1}}},
               .infer = InferElementwise});
  }
  // Out = scale * X + bias, or Factor * X where there is a Factor.
  table.Add({.type = "scale",
             .inputs = {{"X"}, {"Factor", Arity::kOptional}},
             .outputs = {{"Out"}},
             .attrs = {{"scale", 1.0}, {"bias", 0.0}},
             .infer = InferScale,
             .gradient = ScaleGradient});
  table.Add({.type = "scale_by", .inputs = {{"X"}, {"Factor"}}, .outputs = {{"Out"}}, .infer = InferScaleBy});
  // An input without a value is passed over if `skip_absent` is set: a trainer that did not take part.
  table.Add({.type = "sum",
             .inputs = {{"X", Arity::kMany}},
             .outputs = {{"Out"}},
             .attrs = {{"skip_absent", false}},
             .infer = InferSum,
             .gradient = SumGradient});
  table.AddWithGradient(OfX("mean", InferMean), {.of = {"X"}});
  for (const char* type : {"square", "exp", "log", "sqrt", "abs"}) {
    table.AddWithGradient(OfX(type, InferDenseFloats), {.of = {"X"}, .reads = {"Out"}});
  }
  for (const char* type : {"sign", "floor", "ceil"}) table.Add(OfX(type, InferDenseFloats));
  table.AddWithGradient(OfX("clip", InferDenseFloats, {{"min", 0.0, true}, {"max", 0.0, true}}),
                        {.of = {"X"}});
  table.Add(OfX("clip_values", InferFloats, {{"min", 0.0, true}, {"max", 0.0, true}}));
  table.Add(OfX("clip_by_norm", InferFloats, {{"max_norm", 1.0, true}}));
  table.Add(OfX("squared_l2_norm", InferScalarOfFloats));
  table.Add({.type = "clip_factor",
             .inputs = {{"X", Arity::kMany}},
             .outputs = {{"Out"}},
             .attrs = {{"max_norm", 1.0, true}},
             .infer = InferClipFactor});
}

}  // namespace trainyard::graph
