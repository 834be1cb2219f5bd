#include "graph/kernel/sparse.h"

#include <map>

#include "graph/kernel/kernel_testing.h"
#include "gtest/gtest.h"

namespace trainyard::graph {
namespace {

using Numbers = std::vector<std::int64_t>;

TEST(RowMerger, AddsRowsOfTheSameNumberInAscendingOrder) {
  RowMerger merger;
  const SparseRows rows = Sparse(10, {7, 2, 7, 0}, F32({4, 2}, {1, 2, 3, 4, 10, 20, 5, 6}));
  const auto merged = merger.Merge(rows);
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ((*merged)->rows, (Numbers{0, 2, 7}));
  EXPECT_EQ((*merged)->height, 10);
  EXPECT_EQ((*merged)->value.dims(), (Dims{3, 2}));
  ExpectNear((*merged)->value, {5, 6, 3, 4, 11, 22}, 0);
}

TEST(RowMerger, LeavesRowsAloneThatAreInOrderAlready) {
  RowMerger merger;
  const SparseRows rows = Sparse(10, {0, 3, 9}, F32({3, 1}, {1, 2, 3}));
  EXPECT_EQ(*merger.Merge(rows), &rows);
  const SparseRows none = Sparse(10, {}, F32({0, 4}, {}));
  EXPECT_EQ(*merger.Merge(none), &none);
}

TEST(RowMerger, AddsInTheOrderThatTheRowsCameIn) {
  // In floats (1e8 + 1) - 1e8 is 0 and (1e8 - 1e8) + 1 is 1.
  RowMerger merger;
  const SparseRows one = Sparse(5, {4, 4, 4, 1}, F32({4, 1}, {1e8F, 1, -1e8F, 0}));
  EXPECT_EQ((*merger.Merge(one))->value.data<float>()[1], 0);
  const SparseRows other = Sparse(5, {4, 4, 4, 1}, F32({4, 1}, {1e8F, -1e8F, 1, 0}));
  EXPECT_EQ((*merger.Merge(other))->value.data<float>()[1], 1);
}

TEST(RowMerger, SortsNumbersOfAnySize) {
  const std::int64_t height = std::int64_t{1} << 40;
  Numbers numbers;
  for (std::uint64_t i = 0; i < 5000; ++i) {
    const double share = i % 3 == 0 ? 1e-9 : 1;  // some come often
    numbers.push_back(static_cast<std::int64_t>(UniformAt(1, 0, i) * share * static_cast<double>(height)));
  }
  const auto count = static_cast<std::int64_t>(numbers.size());
  const SparseRows rows = Sparse(height, numbers, RandomTensor({count, 3}, 2));
  std::map<std::int64_t, std::vector<float>> wanted;
  for (std::int64_t i = 0; i < count; ++i) {
    std::vector<float>& sum = wanted[numbers[static_cast<std::size_t>(i)]];
    sum.resize(3);
    for (std::int64_t k = 0; k < 3; ++k)
      sum[static_cast<std::size_t>(k)] += rows.value.data<float>()[i * 3 + k];
  }
  RowMerger merger;
  const auto merged = merger.Merge(rows);
  ASSERT_TRUE(merged.ok()) << merged.status();
  ASSERT_EQ((*merged)->rows.size(), wanted.size());
  std::size_t at = 0;
  for (const auto& [number, sum] : wanted) {
    EXPECT_EQ((*merged)->rows[at], number);
    for (std::size_t k = 0; k < 3; ++k) EXPECT_EQ((*merged)->value.span<float>()[at * 3 + k], sum[k]);
    ++at;
  }
}

TEST(RowMerger, CanBeUsedAgainForMoreAndForFewerRows) {
  RowMerger merger;
  for (const std::int64_t count : {3, 100, 2}) {
    const Numbers numbers(static_cast<std::size_t>(count), 1);
    const SparseRows rows = Sparse(2, numbers, F32({count}, std::vector<float>(numbers.size(), 1)));
    const auto merged = merger.Merge(rows);
    ASSERT_TRUE(merged.ok()) << merged.status();
    EXPECT_EQ((*merged)->rows, Numbers{1});
    ExpectNear((*merged)->value, {static_cast<float>(count)});
  }
}

TEST(RowMerger, NamesARowThatIsOutsideTheMatrix) {
  RowMerger merger;
  for (const std::int64_t row : {std::int64_t{-1}, std::int64_t{4}, std::int64_t{1} << 50}) {
    const SparseRows rows = Sparse(4, {0, row}, F32({2, 1}, {1, 2}));
    const absl::Status status = merger.Merge(rows).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_NE(Message(status).find(StrCat("row ", row)), std::string_view::npos) << status;
  }
}

TEST(CheckRows, WantsOneNumberForEachRow) {
  EXPECT_FALSE(CheckRows(Sparse(4, {0}, F32({2, 1}, {1, 2}))).ok());
  EXPECT_FALSE(CheckRows(Sparse(4, {0, 1, 2}, F32({2, 1}, {1, 2}))).ok());
  EXPECT_TRUE(CheckRows(Sparse(4, {0, 1}, F32({2, 1}, {1, 2}))).ok());
}

TEST(AddRowsTo, AddsEveryRowOnceForEachTimeItComes) {
  Tensor whole = F32({3, 2}, {1, 1, 1, 1, 1, 1});
  AddRowsTo(Sparse(3, {2, 0, 2}, F32({3, 2}, {1, 2, 3, 4, 5, 6})), whole);
  ExpectNear(whole, {4, 5, 1, 1, 7, 9}, 0);
}

}  // namespace
}  // namespace trainyard::graph
