#include "job/names.h"

#include "gtest/gtest.h"

namespace trainyard::job {
namespace {

TEST(ParsePodName, FindsTheSeatThatANameWasMadeFor) {
  const NameRule with_uid{.job = "a-b", .uid = "0a1b2c3d"};
  const NameRule plain{.job = "a-b", .uid = ""};
  for (const NameRule& rule : {with_uid, plain}) {
    for (const char* role : {"worker", "my-ps"}) {
      const auto seat = ParsePodName(rule, PodName(rule, role, 12));
      ASSERT_TRUE(seat) << role;
      EXPECT_EQ(seat->role, role);
      EXPECT_EQ(seat->index, 12);
    }
  }
  for (const char* name : {"", "a-b", "a-b-", "a-b-worker", "a-b-worker-", "a-b-worker-01", "a-b--1",
                           "x-worker-1", "a-b-worker-1-0a1b2"}) {
    EXPECT_FALSE(ParsePodName(plain, name)) << name;
  }
  EXPECT_FALSE(ParsePodName(with_uid, "a-b-worker-1")) << "of another job";
  EXPECT_FALSE(ParsePodName(with_uid, "a-b-worker-1-fffff"));
}

}  // namespace
}  // namespace trainyard::job
