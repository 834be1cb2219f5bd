#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "graph/kernel/kernel_testing.h"

namespace trainyard::graph {
namespace {

Tensor Table() { return F32({4, 2}, {0, 1, 10, 11, 20, 21, 30, 31}); }

OpCall Lookup(Tensor ids, Attrs attrs = {}) {
  return {
      .type = "lookup_table", .in = {{"W", {Table()}}, {"Ids", {std::move(ids)}}}, .attrs = std::move(attrs)};
}

OpCall LookupGradient(Tensor ids, Tensor from, Attrs attrs = {}) {
  OpCall call = Lookup(std::move(ids), std::move(attrs));
  call.type = "lookup_table_grad";
  call.in["Out@GRAD"] = {std::move(from)};
  return call;
}

const SparseRows& RowsOf(const OpResults& results, const std::string& slot, std::size_t i = 0) {
  return std::get<SparseRows>(results.at(slot)[i]);
}

TEST(LookupTable, GivesTheRowsOfTheIds) {
  const Tensor out = Output(Lookup(I64({3, 1}, {2, 0, 2})));
  EXPECT_EQ(out.dims(), (Dims{3, 2}));
  EXPECT_EQ(ValuesOf<float>(out), (std::vector<float>{20, 21, 0, 1, 20, 21}));
}

TEST(LookupTable, GivesZeroForThePaddingId) {
  const Attrs attrs = {{"padding_idx", std::int64_t{1}}};
  EXPECT_EQ(ValuesOf<float>(Output(Lookup(I64({2}, {1, 3}), attrs))), (std::vector<float>{0, 0, 30, 31}));
}

TEST(LookupTable, TakesAPaddingIdThatIsNoRow) {
  const Attrs attrs = {{"padding_idx", std::int64_t{4}}};
  EXPECT_EQ(ValuesOf<float>(Output(Lookup(I64({2}, {4, 3}), attrs))), (std::vector<float>{0, 0, 30, 31}));
}

TEST(LookupTable, RefusesIdsThatAreNoRows) {
  for (const std::int64_t id : {-1, 4, -7}) {
    for (const std::int64_t padding : {-1, -7, 2}) {
      const auto results = RunOp(Lookup(I64({2}, {0, id}), {{"padding_idx", padding}}));
      ASSERT_FALSE(results.ok());
      EXPECT_TRUE(absl::IsInvalidArgument(results.status()));
      EXPECT_NE(Message(results.status()).find(StrCat("id ", id, " ")), std::string_view::npos)
          << results.status();
    }
  }
}

TEST(LookupTable, HasNoRowsForNoIds) { EXPECT_EQ(Output(Lookup(I64({0}, {}))).dims(), (Dims{0, 2})); }

TEST(LookupTableGradient, AddsUpTheRowsOfAnId) {
  const OpCall call = LookupGradient(I64({3}, {2, 0, 2}), F32({3, 2}, {1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(ValuesOf<float>(Output(call, "W@GRAD")), (std::vector<float>{3, 4, 0, 0, 6, 8, 0, 0}));
}

TEST(LookupTableGradient, IsOnlyTheRowsThatWereUsedIfSparse) {
  const auto results =
      RunOp(LookupGradient(I64({3}, {2, 0, 2}), F32({3, 2}, {1, 2, 3, 4, 5, 6}), {{"is_sparse", true}}));
  ASSERT_TRUE(results.ok()) << results.status();
  const SparseRows& rows = RowsOf(*results, "W@GRAD");
  EXPECT_EQ(rows.height, 4);
  EXPECT_EQ(rows.rows, (std::vector<std::int64_t>{2, 0, 2}));
  EXPECT_EQ(ValuesOf<float>(rows.value), (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

TEST(LookupTableGradient, HasNothingForThePaddingId) {
  for (const bool sparse : {false, true}) {
    const Attrs attrs = {{"padding_idx", std::int64_t{2}}, {"is_sparse", sparse}};
    const auto results = RunOp(LookupGradient(I64({3}, {2, 0, 2}), F32({3, 2}, {1, 2, 3, 4, 5, 6}), attrs));
    ASSERT_TRUE(results.ok()) << results.status();
    EXPECT_EQ(ValuesOf<float>(WholeOf(results->at("W@GRAD")[0])),
              (std::vector<float>{3, 4, 0, 0, 0, 0, 0, 0}));
    if (sparse) {
      EXPECT_EQ(RowsOf(*results, "W@GRAD").rows, (std::vector<std::int64_t>{0}));
    }
  }
}

TEST(LookupTableGradient, EqualsDifferences) {
  for (const bool sparse : {false, true}) {
    for (const std::int64_t padding : {-1, 3}) {
      OpCall call =
          Lookup(I64({6, 1}, {3, 1, 1, 0, 3, 1}), {{"is_sparse", sparse}, {"padding_idx", padding}});
      call.in["W"] = {RandomTensor({5, 7}, 1)};
      CheckGradient(call);
    }
  }
}

TEST(LookupTableGradient, RefusesIdsThatAreNoRows) {
  for (const bool sparse : {false, true}) {
    const auto results = RunOp(LookupGradient(I64({1}, {4}), F32({1, 2}, {1, 2}), {{"is_sparse", sparse}}));
    EXPECT_TRUE(absl::IsInvalidArgument(results.status())) << results.status();
  }
}

TEST(LookupRowsGradient, IsTheRowsThatWereUsedOfATableElsewhere) {
  OpCall call = {.type = "lookup_rows_grad",
                 .in = {{"Ids", {I64({2, 1}, {5, 2})}}, {"Out@GRAD", {F32({2, 2}, {1, 2, 3, 4})}}},
                 .attrs = {{"height", std::int64_t{6}}}};
  const auto results = RunOp(call);
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ(RowsOf(*results, "W@GRAD").height, 6);
  EXPECT_EQ(RowsOf(*results, "W@GRAD").rows, (std::vector<std::int64_t>{5, 2}));
  EXPECT_EQ(ValuesOf<float>(RowsOf(*results, "W@GRAD").value), (std::vector<float>{1, 2, 3, 4}));
  call.in["Ids"] = {I64({2}, {6, 2})};
  EXPECT_TRUE(absl::IsInvalidArgument(RunOp(call).status()));
  call.in["Ids"] = {I64({3}, {1, 2, 3})};
  EXPECT_TRUE(absl::IsInvalidArgument(RunOp(call).status()));
}

TEST(LookupSparseTable, GivesTheRowsOfAShard) {
  OpCall call = {.type = "lookup_sparse_table", .in = {{"W", {Table()}}, {"Ids", {I64({2, 1}, {3, 1})}}}};
  EXPECT_EQ(ValuesOf<float>(Output(call)), (std::vector<float>{30, 31, 10, 11}));
  call.in["Ids"] = {I64({1}, {4})};
  EXPECT_TRUE(absl::IsInvalidArgument(RunOp(call).status()));
}

OpCall SplitIds(Value ids, int shards) {
  return {.type = "split_ids", .in = {{"Ids", {std::move(ids)}}}, .outs = {{"Out", shards}}};
}

TEST(SplitIds, DealsIdsOutByTheirRemainderAndNumbersThemAnew) {
  const auto results = RunOp(SplitIds(I64({6, 1}, {4, 0, 7, 4, 2, 9}), 3));
  ASSERT_TRUE(results.ok()) << results.status();
  const std::vector<std::vector<std::int64_t>> wanted = {{0, 3}, {1, 2, 1}, {0}};
  for (std::size_t shard = 0; shard < 3; ++shard)
    EXPECT_EQ(ValuesOf<std::int64_t>(std::get<Tensor>(results->at("Out")[shard])), wanted[shard]);
}

TEST(SplitIds, DealsSparseRowsOutLikewise) {
  const auto results = RunOp(SplitIds(Sparse(5, {4, 1, 2}, F32({3, 2}, {1, 2, 3, 4, 5, 6})), 2));
  ASSERT_TRUE(results.ok()) << results.status();
  const SparseRows& even = RowsOf(*results, "Out", 0);
  EXPECT_EQ(even.height, 3);
  EXPECT_EQ(even.rows, (std::vector<std::int64_t>{2, 1}));
  EXPECT_EQ(ValuesOf<float>(even.value), (std::vector<float>{1, 2, 5, 6}));
  const SparseRows& odd = RowsOf(*results, "Out", 1);
  EXPECT_EQ(odd.rows, (std::vector<std::int64_t>{0}));
  EXPECT_EQ(ValuesOf<float>(odd.value), (std::vector<float>{3, 4}));
}

TEST(SplitIds, RefusesIdsBelowZeroAndRowsBeyondTheHeight) {
  EXPECT_TRUE(absl::IsInvalidArgument(RunOp(SplitIds(I64({1}, {-1}), 2)).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(RunOp(SplitIds(Sparse(2, {2}, F32({1, 1}, {1})), 2)).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(RunOp(SplitIds(Sparse(2, {-1}, F32({1, 1}, {1})), 2)).status()));
}

OpCall MergeIds(Tensor ids, std::vector<Value> rows) {
  return {.type = "merge_ids", .in = {{"Ids", {std::move(ids)}}, {"X", std::move(rows)}}};
}

TEST(MergeIds, PutsTheRowsOfShardsBackIntoTheOrderOfTheIds) {
  const Tensor out = Output(MergeIds(I64({4, 1}, {5, 2, 5, 8}), {F32({2, 1}, {2, 8}), F32({2, 1}, {5, 55})}));
  EXPECT_EQ(out.dims(), (Dims{4, 1}));
  EXPECT_EQ(ValuesOf<float>(out), (std::vector<float>{5, 2, 55, 8}));
}

TEST(MergeIds, UndoesSplitIdsAndLookupOfEachShard) {
  const std::vector<std::int64_t> ids = {3, 0, 3, 6, 5, 4, 1, 0};
  const Tensor whole = RandomTensor({7, 3}, 1);
  constexpr int kShards = 3;
  const auto split = RunOp(SplitIds(I64({8}, ids), kShards));
  ASSERT_TRUE(split.ok()) << split.status();
  std::vector<Value> rows;
  for (std::int64_t shard = 0; shard < kShards; ++shard) {
    Tensor part(DataType::kFloat32, {3, 3});
    for (std::int64_t row = shard; row < 7; row += kShards)
      std::copy_n(whole.data<float>() + row * 3, 3, part.data<float>() + row / kShards * 3);
    rows.emplace_back(
        Output({.type = "lookup_sparse_table",
                .in = {{"W", {part}}, {"Ids", {split->at("Out")[static_cast<std::size_t>(shard)]}}}}));
  }
  const Tensor direct = Output({.type = "lookup_table", .in = {{"W", {whole}}, {"Ids", {I64({8}, ids)}}}});
  EXPECT_EQ(ValuesOf<float>(Output(MergeIds(I64({8}, ids), rows))), ValuesOf<float>(direct));
}

TEST(MergeIds, RefusesShardsWithTooFewOrTooManyRowsOrAnotherWidth) {
  const Tensor ids = I64({2}, {0, 1});
  for (const std::vector<Value>& rows : {std::vector<Value>{F32({1, 1}, {1}), F32({0, 1}, {})},
                                         std::vector<Value>{F32({1, 1}, {1}), F32({2, 1}, {1, 2})},
                                         std::vector<Value>{F32({1, 1}, {1}), F32({1, 2}, {1, 2})}}) {
    const auto results = RunOp(MergeIds(ids, rows));
    EXPECT_TRUE(absl::IsInvalidArgument(results.status())) << results.status();
    EXPECT_NE(Message(results.status()).find("shard 1"), std::string_view::npos) << results.status();
  }
  EXPECT_TRUE(absl::IsInvalidArgument(RunOp(MergeIds(I64({1}, {-1}), {F32({1, 1}, {1})})).status()));
}

OpCall SplitRows(SparseRows rows, Ints sections) {
  const int count = static_cast<int>(sections.size());
  return {.type = "split_selected_rows",
          .in = {{"X", {std::move(rows)}}},
          .attrs = {{"height_sections", std::move(sections)}},
          .outs = {{"Out", count}}};
}

TEST(SplitSelectedRows, CutsRowsByTheirNumbersAndNumbersThemAnew) {
  const auto results = RunOp(SplitRows(Sparse(9, {8, 0, 4, 3}, F32({4, 1}, {8, 0, 4, 3})), {4, 0, 3, 2}));
  ASSERT_TRUE(results.ok()) << results.status();
  const std::vector<std::vector<std::int64_t>> rows = {{0, 3}, {}, {0}, {1}};
  const std::vector<std::vector<float>> values = {{0, 3}, {}, {4}, {8}};
  const std::vector<std::int64_t> heights = {4, 0, 3, 2};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(RowsOf(*results, "Out", i).rows, rows[i]);
    EXPECT_EQ(ValuesOf<float>(RowsOf(*results, "Out", i).value), values[i]);
    EXPECT_EQ(RowsOf(*results, "Out", i).height, heights[i]);
  }
}

TEST(SplitSelectedRows, RefusesRowsBeyondTheSections) {
  const auto results = RunOp(SplitRows(Sparse(9, {8}, F32({1, 1}, {1})), {4, 4}));
  EXPECT_TRUE(absl::IsInvalidArgument(results.status())) << results.status();
  EXPECT_NE(Message(results.status()).find("row 8"), std::string_view::npos) << results.status();
}

}  // namespace
}  // namespace trainyard::graph
