// What makes values of nothing: constants and random numbers.
//
// A random element is a function of the seed and of the element's number in the whole variable, so a slice
// that is made alone has the very values that it has in the whole. `offset` is the number of the slice's
// first element. With `row_stride` n > 1 the variable is every n-th row of the whole, from the one that
// `offset` begins on.
#include "base/status.h"
#include "graph/ir/wrong.h"
#include "graph/op/infer.h"
#include "graph/op/schema.h"

namespace trainyard::graph {
namespace {

absl::StatusOr<Dims> ShapeOf(const Op& op) {
  const Ints& shape = op.IntList("shape");
  if (shape.size() > kMaxRank) return Wrong("shape has more than ", kMaxRank, " dims");
  std::int64_t count = 1;
  for (const std::int64_t size : shape) {
    if (size < 0 || size > kMaxElements || (size > 0 && count > kMaxElements / size))
      return Wrong("shape has a dim of ", size);
    if (size > 0) count *= size;
  }
  return Dims(shape);
}

absl::Status InferFill(Typing& typing) {
  TY_ASSIGN_OR_RETURN(const Dims dims, ShapeOf(typing.op()));
  const std::optional<DataType> type = ParseDataType(typing.op().String("dtype"));
  if (!type) return Wrong("dtype must be f32, i64 or bool");
  typing.SetOut("Out", {.data_type = *type, .dims = dims});
  return absl::OkStatus();
}

absl::Status InferRandom(Typing& typing) {
  TY_ASSIGN_OR_RETURN(const Dims dims, ShapeOf(typing.op()));
  if (typing.op().Int("offset") < 0 || typing.op().Int("offset") > kMaxElements)
    return Wrong("offset is ", typing.op().Int("offset"));
  if (typing.op().Int("row_stride") < 1 || typing.op().Int("row_stride") > kMaxElements)
    return Wrong("row_stride must be at least 1");
  typing.SetOut("Out", {.dims = dims});
  return absl::OkStatus();
}

absl::Status InferAssignValue(Typing& typing) {
  TY_ASSIGN_OR_RETURN(const Dims dims, ShapeOf(typing.op()));
  if (static_cast<std::int64_t>(typing.op().FloatList("values").size()) != dims.Count()) {
    return Wrong("values has ", typing.op().FloatList("values").size(), " numbers for the shape ",
                 Print(dims));
  }
  typing.SetOut("Out", {.dims = dims});
  return absl::OkStatus();
}

OpSchema Random(std::string type, std::vector<AttrSpec> attrs) {
  attrs.insert(attrs.end(), {{"shape", Ints(), true},
                             {"seed", std::int64_t{0}},
                             {"offset", std::int64_t{0}},
                             {"row_stride", std::int64_t{1}}});
  return {.type = std::move(type), .outputs = {{"Out"}}, .attrs = std::move(attrs), .infer = InferRandom};
}

}  // namespace

void AddFillOps(OpTable& table) {
  table.Add({.type = "fill_constant",
             .outputs = {{"Out"}},
             .attrs = {{"shape", Ints(), true}, {"value", 0.0}, {"dtype", std::string("f32")}},
             .infer = InferFill});
  table.Add({.type = "fill_zeros_like", .inputs = {{"X"}}, .outputs = {{"Out"}}, .infer = SameAs("X")});
  table.Add({.type = "assign_value",
             .outputs = {{"Out"}},
             .attrs = {{"shape", Ints(), true}, {"values", Floats(), true}},
             .infer = InferAssignValue});
  table.Add(Random("uniform_random", {{"min", -1.0}, {"max", 1.0}}));
  table.Add(Random("gaussian_random", {{"mean", 0.0}, {"std", 1.0}}));
}

}  // namespace trainyard::graph
