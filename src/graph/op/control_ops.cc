// What decides what runs, and what a program takes in and gives out.
#include "base/status.h"
#include "base/text.h"
#include "graph/ir/wrong.h"
#include "graph/op/infer.h"
#include "graph/op/schema.h"

namespace trainyard::graph {
namespace {

absl::Status InferIncrement(Typing& typing) {
  TY_RETURN_IF_ERROR(ExpectScalar(typing, "X", typing.In("X").data_type));
  if (typing.In("X").data_type == DataType::kBool) return Wrong("X must be a number");
  typing.SetOut("Out", typing.In("X"));
  return absl::OkStatus();
}

absl::Status InferLessThan(Typing& typing) {
  TY_RETURN_IF_ERROR(ExpectScalar(typing, "X", typing.In("X").data_type));
  TY_RETURN_IF_ERROR(ExpectScalar(typing, "Y", typing.In("X").data_type));
  typing.SetOut("Out", {.data_type = DataType::kBool, .dims = {1}});
  return absl::OkStatus();
}

absl::Status InferLogic(Typing& typing) {
  TY_RETURN_IF_ERROR(ExpectScalar(typing, "X", DataType::kBool));
  if (typing.Has("Y")) TY_RETURN_IF_ERROR(ExpectScalar(typing, "Y", DataType::kBool));
  typing.SetOut("Out", {.data_type = DataType::kBool, .dims = {1}});
  return absl::OkStatus();
}

absl::Status InferCondition(Typing& typing) { return ExpectScalar(typing, "Condition", DataType::kBool); }

// One item of a field: "784", "3x32x32".
absl::StatusOr<Dims> ParseShape(std::string_view text) {
  Dims dims;
  for (const std::string_view part : Split(text, 'x')) {
    const auto size = ParseNumber<std::int64_t>(part);
    if (!size || *size < 1 || *size > kMaxElements)
      return Wrong("\"", text.substr(0, 32), "\" is no shape: write 784 or 3x32x32");
    dims.Append(*size);
  }
  if (dims.rank() >= kMaxRank) return Wrong("\"", text.substr(0, 32), "\" has too many dims");
  return dims;
}

absl::Status InferRead(Typing& typing) {
  const Op& op = typing.op();
  const std::size_t fields = op.Out("Out").size();
  if (op.Int("batch_size") < 1 || op.Int("batch_size") > (1 << 24))
    return Wrong("batch_size is ", op.Int("batch_size"));
  if (op.StringList("sources").empty()) return Wrong("sources names no file");
  if (op.StringList("shapes").size() != fields || op.StringList("types").size() != fields) {
    return Wrong("shapes and types must have one entry for each of the ", fields, " outputs");
  }
  for (std::size_t i = 0; i < fields; ++i) {
    const std::optional<DataType> type = ParseDataType(op.StringList("types")[i]);
    if (!type || *type == DataType::kBool) return Wrong("types must be f32 or i64");
    TY_ASSIGN_OR_RETURN(const Dims item, ParseShape(op.StringList("shapes")[i]));
    Dims dims = {kUnknownDim};
    for (const std::int64_t size : item) dims.Append(size);
    typing.SetOut("Out", {.data_type = *type, .dims = dims}, static_cast<int>(i));
  }
  return absl::OkStatus();
}

absl::Status InferLoad(Typing& typing) {
  const std::optional<DataType> type = ParseDataType(typing.op().String("dtype"));
  if (!type) return Wrong("dtype must be f32, i64 or bool");
  std::int64_t count = 1;
  for (const std::int64_t size : typing.op().IntList("shape")) {
    if (size < kUnknownDim || size > kMaxElements || (size > 0 && count > kMaxElements / size))
      return Wrong("shape has too many elements, or a dim below -1");
    if (size > 0) count *= size;
  }
  if (typing.op().IntList("shape").size() > kMaxRank) return Wrong("shape has more than ", kMaxRank, " dims");
  typing.SetOut("Out", {.data_type = *type, .dims = Dims(typing.op().IntList("shape"))});
  return absl::OkStatus();
}

}  // namespace

void AddControlOps(OpTable& table) {
  table.Add({.type = "increment",
             .inputs = {{"X"}},
             .outputs = {{"Out"}},
             .attrs = {{"step", 1.0}},
             .infer = InferIncrement});
  table.Add({.type = "less_than", .inputs = {{"X"}, {"Y"}}, .outputs = {{"Out"}}, .infer = InferLessThan});
  table.Add({.type = "logical_not", .inputs = {{"X"}}, .outputs = {{"Out"}}, .infer = InferLogic});
  table.Add({.type = "logical_and", .inputs = {{"X"}, {"Y"}}, .outputs = {{"Out"}}, .infer = InferLogic});
  // Runs its block as long as Condition holds, in one scope that is used again: nothing is kept of a step.
  table.Add({.type = "while",
             .inputs = {{"Condition"}},
             .attrs = {{"block", BlockRef{}, true}},
             .infer = InferCondition});
  table.Add({.type = "conditional_block",
             .inputs = {{"Condition"}},
             .attrs = {{"block", BlockRef{}, true}},
             .infer = InferCondition});
  // Runs its block once for each batch of each pass over the data; the block's `read` says where a pass ends.
  table.Add({.type = "iterate", .attrs = {{"block", BlockRef{}, true}, {"passes", std::int64_t{1}}}});
  // The next batch. `sources` are lists of files whose records go together by number; field i comes from
  // source sources_of[i], begins at column or byte begins[i], and is multiplied by scales[i].
  table.Add({.type = "read",
             .outputs = {{"Out", Arity::kMany}},
             .attrs = {{"sources", Strings(), true},
                       {"format", std::string("auto")},
                       {"batch_size", std::int64_t{1}, true},
                       {"shapes", Strings(), true},
                       {"types", Strings(), true},
                       {"sources_of", Ints()},
                       {"begins", Ints()},
                       {"scales", Floats()},
                       {"shuffle_seed", std::int64_t{0}},
                       {"skip_header", false}},
             .infer = InferRead});
  // Appends the values to the graph's outputs, every `every` steps.
  table.Add({.type = "output", .inputs = {{"X", Arity::kMany}}, .attrs = {{"every", std::int64_t{1}}}});
  table.Add({.type = "print", .inputs = {{"X"}}, .attrs = {{"message", std::string()}}});
  table.Add({.type = "save", .inputs = {{"X"}}, .attrs = {{"file", std::string(), true}}});
  table.Add({.type = "load",
             .outputs = {{"Out"}},
             .attrs = {{"file", std::string(), true}, {"shape", Ints(), true}, {"dtype", std::string("f32")}},
             .infer = InferLoad});
}

}  // namespace trainyard::graph
