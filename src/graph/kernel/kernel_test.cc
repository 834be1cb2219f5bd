#include "graph/kernel/kernel.h"

#include <set>
#include <string>

#include "graph/op/schema.h"
#include "gtest/gtest.h"

namespace trainyard::graph {
namespace {

TEST(CpuKernels, HaveEveryOperatorThatRunsNoBlock) {
  const std::set<std::string> of_the_executor = {"while", "conditional_block", "iterate", "listen_and_serv"};
  for (const auto& [type, schema] : Ops().all())
    EXPECT_EQ(CpuKernels().Find(type) == nullptr, of_the_executor.contains(type)) << type;
}

TEST(CpuKernels, HaveNothingForAnOperatorThatIsNone) { EXPECT_EQ(CpuKernels().Find("fly"), nullptr); }

}  // namespace
}  // namespace trainyard::graph
