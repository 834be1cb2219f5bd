// What moves elements and does not compute: joining, cutting, reshaping, converting.
#include <algorithm>
#include <numeric>

#include "base/status.h"
#include "base/text.h"
#include "graph/ir/wrong.h"
#include "graph/op/check.h"
#include "graph/op/infer.h"
#include "graph/op/schema.h"

namespace trainyard::graph {
namespace {

absl::StatusOr<int> AxisOf(const Typing& typing) {
  const std::int64_t axis = typing.op().Int("axis");
  const int rank = typing.In("X").dims.rank();
  if (axis < 0 || axis >= rank) return Wrong("axis is ", axis, " and X is ", Print(typing.In("X").dims));
  return static_cast<int>(axis);
}

absl::Status InferConcat(Typing& typing) {
  if (!typing.Has("X")) return Wrong("it has nothing to join");
  TY_ASSIGN_OR_RETURN(const int axis, AxisOf(typing));
  VarType out = typing.In("X");
  if (out.kind != VarKind::kDense) return Wrong("X must be dense and is ", Print(out));
  std::int64_t length = 0;
  for (int i = 0; i < typing.CountOf("X"); ++i) {
    VarType type = typing.In("X", i);
    if (type.dims.rank() != out.dims.rank())
      return Wrong("it cannot join ", Print(out), " and ", Print(type));
    length = length == kUnknownDim || type.dims[axis] == kUnknownDim ? kUnknownDim : length + type.dims[axis];
    type.dims[axis] = out.dims[axis];
    if (!Agrees(out, type))
      return Wrong("it cannot join ", Print(out), " and ", Print(typing.In("X", i)), " along dim ", axis);
  }
  out.dims[axis] = length;
  typing.SetOut("Out", out);
  return absl::OkStatus();
}

// The lengths of the parts: `sections`, or as many equal ones as there are outputs.
absl::StatusOr<Ints> SectionsOf(const Typing& typing, std::int64_t length) {
  const auto parts = static_cast<std::int64_t>(typing.op().Out("Out").size());
  Ints sections = typing.op().IntList("sections");
  if (sections.empty() && parts > 0 && length != kUnknownDim && length % parts == 0) {
    sections.assign(static_cast<std::size_t>(parts), length / parts);
  }
  std::int64_t total = 0;
  for (const std::int64_t section : sections) {
    if (section < 0 || section > kMaxElements) return Wrong("a section is ", section);
    total += section;
  }
  if (static_cast<std::int64_t>(sections.size()) != parts || !MayEqual(total, length)) {
    return Wrong("its ", sections.size(), " sections of together ", total, " do not cut a length of ", length,
                 " in ", parts);
  }
  return sections;
}

absl::Status InferSplitAlong(Typing& typing, int axis) {
  const VarType& x = typing.In("X");
  if (x.kind != VarKind::kDense) return Wrong("X must be dense and is ", Print(x));
  TY_ASSIGN_OR_RETURN(const Ints sections, SectionsOf(typing, x.dims[axis]));
  for (std::size_t i = 0; i < sections.size(); ++i) {
    VarType part = x;
    part.dims[axis] = sections[i];
    typing.SetOut("Out", part, static_cast<int>(i));
  }
  return absl::OkStatus();
}

absl::Status InferSplit(Typing& typing) {
  TY_ASSIGN_OR_RETURN(const int axis, AxisOf(typing));
  return InferSplitAlong(typing, axis);
}

absl::Status InferSplitByRef(Typing& typing) {
  if (typing.In("X").dims.rank() < 1) return Wrong("X has no dim to be cut along");
  return InferSplitAlong(typing, 0);
}

// In `shape` 0 is X's own dim and one -1 is whatever is left.
absl::Status InferReshape(Typing& typing) {
  const Dims& x = typing.In("X").dims;
  const Ints& shape = typing.op().IntList("shape");
  if (shape.size() > kMaxRank) return Wrong("shape has more than ", kMaxRank, " dims");
  Dims out;
  int open = -1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::int64_t size = shape[i];
    if (size < -1 || size > kMaxElements) return Wrong("shape has a dim of ", size);
    if (size == 0 && static_cast<int>(i) >= x.rank())
      return Wrong("shape keeps dim ", i, ", and X is ", Print(x));
    if (size == -1 && open >= 0) return Wrong("shape has more than one dim of -1");
    if (size == -1) open = static_cast<int>(i);
    out.Append(size == 0 ? x[static_cast<int>(i)] : size);
  }
  const std::int64_t all = ProductOf(x, 0, x.rank());
  if (open >= 0 && all != kUnknownDim) {
    Dims others = out;
    others[open] = 1;
    const std::int64_t rest = ProductOf(others, 0, others.rank());
    if (rest == kUnknownDim || (rest != 0 && all % rest != 0) || (rest == 0 && all != 0))
      return Wrong("X ", Print(x), " has no shape ", Print(out));
    out[open] = rest == 0 ? 0 : all / rest;
  }
  if (out.Known() && all != kUnknownDim && out.Count() != all)
    return Wrong("X ", Print(x), " has no shape ", Print(out));
  VarType type = typing.In("X");
  if (type.kind != VarKind::kDense) return Wrong("X must be dense and is ", Print(type));
  type.dims = out;
  typing.SetOut("Out", type);
  return absl::OkStatus();
}

absl::Status InferTranspose(Typing& typing) {
  TY_RETURN_IF_ERROR(ExpectDense(typing, "X"));
  const Dims& x = typing.In("X").dims;
  const Ints& axis = typing.op().IntList("axis");
  Ints sorted = axis;
  std::sort(sorted.begin(), sorted.end());
  Ints all(static_cast<std::size_t>(x.rank()));
  std::iota(all.begin(), all.end(), 0);
  if (sorted != all) return Wrong("axis must name each dim of X ", Print(x), " once");
  Dims out;
  for (const std::int64_t from : axis) out.Append(x[static_cast<int>(from)]);
  typing.SetOut("Out", {.dims = out});
  return absl::OkStatus();
}

absl::Status InferCast(Typing& typing) {
  const std::optional<DataType> type = ParseDataType(typing.op().String("to"));
  if (!type) return Wrong("to must be f32, i64 or bool");
  if (typing.In("X").kind != VarKind::kDense) return Wrong("X must be dense and is ", Print(typing.In("X")));
  typing.SetOut("Out", {.data_type = *type, .dims = typing.In("X").dims});
  return absl::OkStatus();
}

std::vector<Op> AssignGradient(const Op& forward, const GradientWish& wish) {
  if (!wish.wanted(forward.OneIn("X"))) return {};
  return {Op{.type = "assign",
             .inputs = {{"X", {GradientName(forward.OneOut("Out"))}}},
             .outputs = {{"Out", {GradientName(forward.OneIn("X"))}}},
             .role = Role::kBackward}};
}

}  // namespace

void AddShapeOps(OpTable& table) {
  table.AddWithGradient({.type = "concat",
                         .inputs = {{"X", Arity::kMany}},
                         .outputs = {{"Out"}},
                         .attrs = {{"axis", std::int64_t{0}}},
                         .infer = InferConcat},
                        {.of = {"X"}});
  table.AddWithGradient({.type = "split",
                         .inputs = {{"X"}},
                         .outputs = {{"Out", Arity::kMany}},
                         .attrs = {{"axis", std::int64_t{0}}, {"sections", Ints()}},
                         .infer = InferSplit},
                        {.of = {"X"}});
  // The parts are views of X's rows.
  table.Add({.type = "split_byref",
             .inputs = {{"X"}},
             .outputs = {{"Out", Arity::kMany}},
             .attrs = {{"sections", Ints()}},
             .infer = InferSplitByRef});
  table.AddWithGradient({.type = "reshape",
                         .inputs = {{"X"}},
                         .outputs = {{"Out"}},
                         .attrs = {{"shape", Ints(), true}},
                         .infer = InferReshape},
                        {.of = {"X"}});
  table.AddWithGradient({.type = "transpose",
                         .inputs = {{"X"}},
                         .outputs = {{"Out"}},
                         .attrs = {{"axis", Ints(), true}},
                         .infer = InferTranspose},
                        {.of = {"X"}});
  table.Add({.type = "cast",
             .inputs = {{"X"}},
             .outputs = {{"Out"}},
             .attrs = {{"to", std::string(), true}},
             .infer = InferCast});
  table.Add({.type = "assign",
             .inputs = {{"X"}},
             .outputs = {{"Out"}},
             .infer = SameAs("X"),
             .gradient = AssignGradient});
}

}  // namespace trainyard::graph
