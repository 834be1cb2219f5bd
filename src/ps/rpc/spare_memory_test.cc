#include "ps/rpc/spare_memory.h"

#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "ps/rpc/wire_options.h"

namespace trainyard::ps {
namespace {

constexpr std::int64_t kMegabyte = std::int64_t{1} << 20;

TEST(SpareMemoryJudge, GivesBackWhatWasSpareInEveryLook) {
  SpareMemoryJudge judge;
  const MemoryLook much{.resident = 300 * kMegabyte, .in_use = 10 * kMegabyte};
  const MemoryLook used{.resident = 300 * kMegabyte, .in_use = 250 * kMegabyte};
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 1; i < SpareMemoryJudge::kLooks; ++i) EXPECT_FALSE(judge.Take(much)) << i;
    EXPECT_FALSE(judge.Take(used)) << "its buffers are in use now and then";
    for (std::size_t i = 1; i < SpareMemoryJudge::kLooks; ++i) EXPECT_FALSE(judge.Take(much)) << i;
    EXPECT_TRUE(judge.Take(much));
  }
  for (int i = 0; i < 20; ++i)
    EXPECT_FALSE(judge.Take({.resident = 80 * kMegabyte, .in_use = 20 * kMegabyte}));
  for (int i = 0; i < 20; ++i)
    EXPECT_FALSE(judge.Take({.resident = 1300 * kMegabyte, .in_use = 1000 * kMegabyte})) << "a large model";
}

#ifndef TRAINYARD_SANITIZED  // their allocators keep by other rules
TEST(SpareMemory, IsNotHeldForLongAfterABurst) {
  grpc::ChannelArguments arguments;
  Tune(arguments);  // by which the process keeps what it frees
  const SpareMemory spare(absl::Milliseconds(20));
  const std::int64_t before = LookAtMemory().resident;
  {
    std::vector<std::unique_ptr<std::vector<char>>> burst;
    for (int i = 0; i < 400; ++i) burst.push_back(std::make_unique<std::vector<char>>(kMegabyte, 'x'));
    ASSERT_GT(LookAtMemory().resident, before + 300 * kMegabyte);
  }
  const SteadyTime deadline = Clock::System().Steady() + absl::Minutes(5);
  while (LookAtMemory().resident > before + 100 * kMegabyte && Clock::System().Steady() < deadline)
    std::this_thread::yield();
  EXPECT_LE(LookAtMemory().resident, before + 100 * kMegabyte);
}
#endif

}  // namespace
}  // namespace trainyard::ps
