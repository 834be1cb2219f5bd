// What graphs say to each other. A peer is named by its graph's id; where it runs is found out when it is
// called.
#include "base/status.h"
#include "graph/ir/wrong.h"
#include "graph/op/infer.h"
#include "graph/op/schema.h"

namespace trainyard::graph {
namespace {

absl::Status ExpectGraphs(const Typing& typing, std::size_t count) {
  const std::size_t graphs = typing.op().StringList("graphs").size();
  if (graphs == count) return absl::OkStatus();
  return Wrong("graphs names ", graphs, " graphs for ", count, " variables");
}

absl::Status InferSend(Typing& typing) { return ExpectGraphs(typing, typing.op().In("X").size()); }

// What is received is of the type that the variable is declared as: `shapes` in the program's own words.
absl::Status InferRecv(Typing& typing) {
  TY_RETURN_IF_ERROR(ExpectGraphs(typing, typing.op().Out("Out").size()));
  if (typing.CountOf("Into") != static_cast<int>(typing.op().Out("Out").size()))
    return Wrong("Into and Out must name the same variables");
  for (int i = 0; i < typing.CountOf("Into"); ++i) typing.SetOut("Out", typing.In("Into", i), i);
  return absl::OkStatus();
}

absl::Status InferSplitSelectedRows(Typing& typing) {
  const VarType& x = typing.In("X");
  if (x.kind != VarKind::kSparseRows) return Wrong("X must be sparse and is ", Print(x));
  const Ints& sections = typing.op().IntList("height_sections");
  if (sections.size() != typing.op().Out("Out").size())
    return Wrong("height_sections must have one entry for each output");
  for (std::size_t i = 0; i < sections.size(); ++i) {
    if (sections[i] < 0 || sections[i] > kMaxElements) return Wrong("a section is ", sections[i]);
    VarType part = x;
    part.dims[0] = sections[i];
    typing.SetOut("Out", part, static_cast<int>(i));
  }
  return absl::OkStatus();
}

// Ids, or the rows of a sparse gradient, by their number modulo the count of outputs. A shard's rows are
// numbered anew: id / count.
absl::Status InferSplitIds(Typing& typing) {
  const VarType& ids = typing.In("Ids");
  const auto shards = static_cast<std::int64_t>(typing.op().Out("Out").size());
  if (shards == 0) return Wrong("it has no output");
  for (std::int64_t i = 0; i < shards; ++i) {
    VarType part = ids;
    if (ids.kind == VarKind::kSparseRows) {
      if (ids.dims[0] != kUnknownDim) part.dims[0] = (ids.dims[0] + shards - 1) / shards;
    } else {
      TY_RETURN_IF_ERROR(ExpectDense(typing, "Ids", DataType::kInt64));
      part.dims = {kUnknownDim};
    }
    typing.SetOut("Out", part, static_cast<int>(i));
  }
  return absl::OkStatus();
}

absl::Status InferMergeIds(Typing& typing) {
  TY_RETURN_IF_ERROR(ExpectDense(typing, "Ids", DataType::kInt64));
  TY_RETURN_IF_ERROR(ExpectDense(typing, "X"));
  if (!typing.Has("X")) return Wrong("it has no rows to put together");
  TY_RETURN_IF_ERROR(ExpectRank(typing, "X", 2));
  typing.SetOut("Out", {.dims = {ProductOf(typing.In("Ids").dims, 0, typing.In("Ids").dims.rank()),
                                 typing.In("X").dims[1]}});
  return absl::OkStatus();
}

absl::Status InferPrefetch(Typing& typing) {
  TY_RETURN_IF_ERROR(ExpectDense(typing, "Ids", DataType::kInt64));
  TY_RETURN_IF_ERROR(ExpectGraphs(typing, typing.op().In("Ids").size()));
  if (typing.op().Out("Out").size() != typing.op().In("Ids").size())
    return Wrong("Out must have one entry for each of Ids");
  const std::int64_t width = typing.op().Int("width");
  if (width < 1 || width > kMaxElements) return Wrong("width is ", width);
  for (int i = 0; i < typing.CountOf("Ids"); ++i) {
    typing.SetOut(
        "Out", {.dims = {ProductOf(typing.In("Ids", i).dims, 0, typing.In("Ids", i).dims.rank()), width}}, i);
  }
  return absl::OkStatus();
}

absl::Status InferLookupRowsGradient(Typing& typing) {
  TY_RETURN_IF_ERROR(ExpectDense(typing, "Ids", DataType::kInt64));
  TY_RETURN_IF_ERROR(ExpectDense(typing, "Out@GRAD"));
  TY_RETURN_IF_ERROR(ExpectRank(typing, "Out@GRAD", 2));
  const std::int64_t height = typing.op().Int("height");
  if (height < 1 || height > kMaxElements) return Wrong("height is ", height);
  typing.SetOut("W@GRAD", {.kind = VarKind::kSparseRows, .dims = {height, typing.In("Out@GRAD").dims[1]}});
  return absl::OkStatus();
}

absl::Status InferLookupSparseTable(Typing& typing) {
  TY_RETURN_IF_ERROR(ExpectDense(typing, "W"));
  TY_RETURN_IF_ERROR(ExpectRank(typing, "W", 2));
  TY_RETURN_IF_ERROR(ExpectDense(typing, "Ids", DataType::kInt64));
  const Dims& ids = typing.In("Ids").dims;
  typing.SetOut("Out", {.dims = {ProductOf(ids, 0, ids.rank()), typing.In("W").dims[1]}});
  return absl::OkStatus();
}

}  // namespace

void AddRemoteOps(OpTable& table) {
  // X[i] goes to graphs[i]. Returns at once; send_barrier, or the next recv, waits.
  table.Add({.type = "send",
             .inputs = {{"X", Arity::kMany}},
             .attrs = {{"graphs", Strings(), true}},
             .infer = InferSend});
  table.Add({.type = "send_barrier", .attrs = {{"graphs", Strings(), true}}});
  // Into are the same variables as Out: their types, and the memory that is received into. Returns at once
  // unless it is to wait for all that is being received; fetch_barrier waits too.
  table.Add({.type = "recv",
             .inputs = {{"Into", Arity::kMany}},
             .outputs = {{"Out", Arity::kMany}},
             .attrs = {{"graphs", Strings(), true}, {"wait", false}},
             .infer = InferRecv});
  table.Add({.type = "fetch_barrier", .attrs = {{"graphs", Strings(), true}}});
  table.Add({.type = "split_selected_rows",
             .inputs = {{"X"}},
             .outputs = {{"Out", Arity::kMany}},
             .attrs = {{"height_sections", Ints(), true}},
             .infer = InferSplitSelectedRows});
  table.Add(
      {.type = "split_ids", .inputs = {{"Ids"}}, .outputs = {{"Out", Arity::kMany}}, .infer = InferSplitIds});
  table.Add({.type = "merge_ids",
             .inputs = {{"Ids"}, {"X", Arity::kMany}},
             .outputs = {{"Out"}},
             .infer = InferMergeIds});
  table.Add({.type = "prefetch",
             .inputs = {{"Ids", Arity::kMany}},
             .outputs = {{"Out", Arity::kMany}},
             .attrs = {{"graphs", Strings(), true},
                       {"table", std::string(), true},
                       {"width", std::int64_t{1}, true}},
             .infer = InferPrefetch});
  table.Add({.type = "lookup_sparse_table",
             .inputs = {{"W"}, {"Ids"}},
             .outputs = {{"Out"}},
             .infer = InferLookupSparseTable});
  // The gradient of a table of `height` rows that is elsewhere: the rows that were looked up.
  table.Add({.type = "lookup_rows_grad",
             .inputs = {{"Ids"}, {"Out@GRAD"}},
             .outputs = {{"W@GRAD"}},
             .attrs = {{"height", std::int64_t{1}, true}},
             .infer = InferLookupRowsGradient});
  // A pserver's whole life. optimize_blocks[i] updates one parameter when gradients[i] has come;
  // schedule_blocks run first.
  table.Add({.type = "listen_and_serv",
             .attrs = {{"optimize_blocks", std::vector<BlockRef>()},
                       {"gradients", Strings()},
                       {"schedule_blocks", std::vector<BlockRef>()},
                       {"prefetch_blocks", std::vector<BlockRef>()},
                       {"tables", Strings()},
                       {"fanin", std::int64_t{1}},
                       {"sync", true}}});
}

}  // namespace trainyard::graph
