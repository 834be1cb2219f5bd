#include "node/cgroups.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "node/plan_testing.h"

namespace trainyard::node {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Version = CgroupPlace::Version;

constexpr std::string_view kV2Mounts =
    "29 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
    "30 23 0:27 / /proc rw - proc proc rw\n";
constexpr std::string_view kV1Mounts =
    "29 23 0:26 / /sys/fs/cgroup/cpu,cpuacct rw shared:1 - cgroup cgroup rw,cpu,cpuacct\n"
    "30 23 0:27 / /sys/fs/cgroup/memory rw shared:2 - cgroup cgroup rw,memory\n"
    "31 23 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

TEST(FindCgroups, KnowsTheUnifiedHierarchy) {
  const CgroupPlace place = FindCgroups("0::/user.slice/user-1000.slice/x.scope\n", kV2Mounts);
  EXPECT_EQ(place.version, Version::k2);
  EXPECT_EQ(place.memory, "/sys/fs/cgroup/user.slice/user-1000.slice/x.scope");
  EXPECT_EQ(FindCgroups("0::/\n", kV2Mounts).memory, "/sys/fs/cgroup");
}

TEST(FindCgroups, TakesTheControllersOfVersion1WhereTheyAreMountedAlsoWhenMixed) {
  const CgroupPlace place =
      FindCgroups("9:name=systemd:/\n4:memory:/a/b\n1:cpu,cpuacct:/\n0::/\n", kV1Mounts);
  EXPECT_EQ(place, (CgroupPlace{.version = Version::k1,
                                .memory = "/sys/fs/cgroup/memory/a/b",
                                .cpu = "/sys/fs/cgroup/cpu,cpuacct"}));
}

TEST(FindCgroups, FindsNoneWhereThereAreNone) {
  EXPECT_EQ(FindCgroups("", "").version, Version::kNone);
  EXPECT_EQ(FindCgroups("nonsense\n::\n", "a b\n - \n").version, Version::kNone);
  EXPECT_EQ(FindCgroups("4:memory:/a\n", "30 23 0:27 / /proc rw - proc proc rw\n").version, Version::kNone)
      << "not mounted";
}

TEST(FindLimits, ReadsWhatTheContainerMayAndWants) {
  const auto limits = [](std::string_view resources) {
    return FindLimits(PlannedPod(StrCat(R"({"containers":[{"name":"m","resources":)", resources, "}]}"))
                          .spec_.containers[0]);
  };
  EXPECT_TRUE(limits("{}").empty());
  EXPECT_EQ(limits(R"({"limits":{"memory":"64Mi","cpu":"1500m"},"requests":{"cpu":"250m"}})"),
            (CgroupLimits{.memory_bytes = 64 << 20, .cpu_milli = 1500, .cpu_request_milli = 250}));
  EXPECT_EQ(limits(R"({"limits":{"cpu":"2"}})"),
            (CgroupLimits{.cpu_milli = 2000, .cpu_request_milli = 2000}));
}

TEST(PlanLimits, WritesWhatEachVersionUnderstands) {
  const CgroupLimits limits{.memory_bytes = 1000, .cpu_milli = 1500, .cpu_request_milli = 500};
  EXPECT_THAT(
      PlanLimits(Version::k1, limits),
      ElementsAre(CgroupWrite{"memory.limit_in_bytes", "1000"}, CgroupWrite{"cpu.cfs_period_us", "100000"},
                  CgroupWrite{"cpu.cfs_quota_us", "150000"}, CgroupWrite{"cpu.shares", "512"}));
  EXPECT_THAT(PlanLimits(Version::k2, limits),
              ElementsAre(CgroupWrite{"memory.max", "1000"}, CgroupWrite{"cpu.max", "150000 100000"},
                          CgroupWrite{"cpu.weight", "20"}));
  EXPECT_THAT(PlanLimits(Version::k2, {}), IsEmpty());
}

TEST(Cgroups, SayWhyThereAreNoneAndDoNothing) {
  Cgroups cgroups = Cgroups::Open({.version = Version::k1, .memory = "/proc/nowhere"}, "t");
  EXPECT_THAT(cgroups.shortcoming(), testing::AllOf(HasSubstr("/proc/nowhere"), HasSubstr("not enforced")));
  EXPECT_THAT(cgroups.Make("u", "m.0", {.memory_bytes = 1}), IsEmpty());
  EXPECT_THAT(Cgroups::Open({}, "t").shortcoming(), HasSubstr("this machine has none"));
}

}  // namespace
}  // namespace trainyard::node
