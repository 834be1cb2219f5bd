#include "client/graph_jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"
#include "kube/names.h"

namespace trainyard::client {
namespace {

using ::testing::HasSubstr;

TEST(JobNames, AreWhatALabelMayBe) {
  for (const char* name : {"mnist", "test_1", "A.b-c", "7"}) EXPECT_TRUE(CheckJobName(name).ok()) << name;
  for (const char* name : {"", "-a", "a b", "a/b", "ü"}) {
    const absl::Status status = CheckJobName(name);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << name;
    EXPECT_THAT(Message(status), HasSubstr("the job's name"));
  }
  EXPECT_FALSE(CheckJobName(std::string(64, 'a')).ok());
}

TEST(JobNames, StayWhatTheyAreWhereAnObjectMayBeCalledSo) { EXPECT_EQ(ObjectName("mnist-2"), "mnist-2"); }

TEST(JobNames, GiveEveryJobAnObjectOfItsOwn) {
  EXPECT_NE(ObjectName("test_1"), ObjectName("test-1"));
  EXPECT_NE(ObjectName("test_1"), ObjectName("test.1"));
  EXPECT_NE(ObjectName("Test"), ObjectName("test"));
  EXPECT_NE(ObjectName(std::string(60, 'a')), ObjectName(std::string(61, 'a')));
  EXPECT_THAT(ObjectName("test_1"), HasSubstr("test-1-"));
}

TEST(JobNames, LeaveRoomForThePodsOfAGroup) {
  for (const std::string& name : {std::string(63, 'x'), std::string("1"), std::string("A_B.C")}) {
    EXPECT_EQ(kube::FindDns1035LabelProblem(ObjectName(name) + "-pserver-1234"), "") << name;
  }
}

}  // namespace
}  // namespace trainyard::client
