#include "graph/kernel/random_block.h"

#include <vector>

#include "base/philox.h"
#include "graph/kernel/random.h"
#include "gtest/gtest.h"

namespace trainyard::graph {
namespace {

TEST(MakePhiloxBlock, HasTheWordsOfEachCounter) {
  // The low half of the counter overflows within the block.
  const RandomRun run = {.seed = 5, .stream = 0x123456789abcdef, .first = 0xffffffff - 20};
  for (const int lanes : {1, 13, kPhiloxLanes}) {
    PhiloxBlock block;
    MakePhiloxBlock(run, lanes, block);
    for (int i = 0; i < lanes; ++i) {
      const auto words = Philox(run.seed, run.stream, run.first + static_cast<std::uint64_t>(i));
      for (std::size_t k = 0; k < 4; ++k) ASSERT_EQ(block.words[k][i], words[k]) << "lane " << i;
    }
  }
}

TEST(FillUniform, GivesEachElementItsNumberWhereverTheRunBegins) {
  for (const std::uint64_t first : {0, 1, 2, 127, 1000001}) {
    for (const std::int64_t count : {0, 1, 2, 127, 128, 129, 1000}) {
      std::vector<float> values(static_cast<std::size_t>(count) + 1, 99);
      FillUniform({.seed = 11, .stream = 0, .first = first}, -0.25, 3, count, values.data());
      for (std::int64_t i = 0; i < count; ++i) {
        const double unit = UniformAt(11, 0, first + static_cast<std::uint64_t>(i));
        ASSERT_EQ(values[static_cast<std::size_t>(i)], static_cast<float>(-0.25 + (3 - -0.25) * unit));
      }
      EXPECT_EQ(values.back(), 99) << "it wrote beyond the end";
    }
  }
}

TEST(FillNormal, GivesEachElementItsNumberWhereverTheRunBegins) {
  for (const std::uint64_t first : {0, 1, 500}) {
    for (const std::int64_t count : {1, 2, 131}) {
      std::vector<float> values(static_cast<std::size_t>(count) + 1, 99);
      FillNormal({.seed = 12, .stream = 0, .first = first}, 1, 0.5, count, values.data());
      for (std::int64_t i = 0; i < count; ++i) {
        const double normal = NormalAt(12, 0, first + static_cast<std::uint64_t>(i));
        ASSERT_FLOAT_EQ(values[static_cast<std::size_t>(i)], static_cast<float>(1 + 0.5 * normal));
      }
      EXPECT_EQ(values.back(), 99) << "it wrote beyond the end";
    }
  }
}

}  // namespace
}  // namespace trainyard::graph
