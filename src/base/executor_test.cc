#include "base/executor.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard {
namespace {

TEST(Executor, RunsEverythingInOrderBeforeItEnds) {
  std::vector<int> ran;
  {
    Executor executor;
    for (int i = 0; i < 100; ++i) executor.Post([&ran, i] { ran.push_back(i); });
  }
  ASSERT_EQ(ran.size(), 100u);
  EXPECT_TRUE(std::is_sorted(ran.begin(), ran.end()));
}

}  // namespace
}  // namespace trainyard
