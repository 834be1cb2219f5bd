#include "graph/pass/slice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::graph {
namespace {

using testing::ElementsAre;

std::vector<std::int64_t> SizesOf(const Dims& dims, int servers, std::int64_t least) {
  std::vector<std::int64_t> sizes;
  std::int64_t offset = 0;
  for (const VarBlock& block : SliceVariable("w", dims, servers, least)) {
    EXPECT_EQ(block.offset, offset);
    EXPECT_EQ(block.index, static_cast<int>(sizes.size()));
    offset += block.count;
    sizes.push_back(block.count);
  }
  EXPECT_EQ(offset, dims.Count());
  return sizes;
}

TEST(SliceVariable, CutsSmallVariablesNotAtAll) {
  EXPECT_THAT(SizesOf({3, 5}, 10, 1024), ElementsAre(15));
  EXPECT_THAT(SizesOf({1024}, 10, 1024), ElementsAre(1024));
  EXPECT_THAT(SizesOf({8, 1020}, 10, 8192), ElementsAre(8160));
  EXPECT_THAT(SizesOf({800, 10}, 10, 8192), ElementsAre(8000));
}

TEST(SliceVariable, CutsWholeRowsAndLeavesTheRestToTheLast) {
  EXPECT_THAT(SizesOf({28, 784}, 10, 1024),
              ElementsAre(2352, 2352, 2352, 2352, 2352, 2352, 2352, 2352, 2352, 784));
  EXPECT_THAT(SizesOf({8, 1020}, 10, 1024), ElementsAre(2040, 2040, 2040, 2040));
  EXPECT_THAT(SizesOf({800, 10}, 10, 1024), ElementsAre(1150, 1150, 1150, 1150, 1150, 1150, 1100));
  EXPECT_THAT(SizesOf({28, 784}, 10, 8192), ElementsAre(10976, 10976));
  EXPECT_THAT(SizesOf({6, 33, 33, 33}, 10, 8192), ElementsAre(35937, 35937, 35937, 35937, 35937, 35937));
}

TEST(SliceVariable, MakesNoMoreBlocksThanThereAreServers) {
  EXPECT_THAT(SizesOf({100000}, 3, 1024), ElementsAre(33334, 33334, 33332));
  EXPECT_THAT(SizesOf({100000}, 1, 1024), ElementsAre(100000));
}

TEST(BlockDims, AreTheRowsOfTheBlock) {
  const std::vector<VarBlock> blocks = SliceVariable("w", {28, 784}, 10, 1024);
  EXPECT_EQ(BlockDims({28, 784}, blocks.front()), (Dims{3, 784}));
  EXPECT_EQ(BlockDims({28, 784}, blocks.back()), (Dims{1, 784}));
  EXPECT_EQ(BlockName(blocks[1], blocks.size()), "w.block1");
  EXPECT_EQ(BlockName(blocks[0], 1), "w");
}

TEST(DispatchBlocks, GoesRoundAcrossVariables) {
  EXPECT_THAT(DispatchBlocks({"a.block0", "a.block1", "b", "c.block0", "c.block1"}, 2, Dispatch::kRoundRobin),
              ElementsAre(0, 1, 0, 1, 0));
}

TEST(DispatchBlocks, ByHashDoesNotDependOnTheOthers) {
  const std::vector<int> all = DispatchBlocks({"a", "b", "c"}, 7, Dispatch::kHash);
  EXPECT_EQ(DispatchBlocks({"c"}, 7, Dispatch::kHash).front(), all.back());
}

}  // namespace
}  // namespace trainyard::graph
