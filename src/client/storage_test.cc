#include "client/storage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"

namespace trainyard::client {
namespace {

using ::testing::HasSubstr;

TEST(Storage, IsAFolderOrAClaim) {
  EXPECT_EQ(*ParseStorage("/mnt/yard/"), Storage(SharedFolder{"/mnt/yard"}));
  EXPECT_EQ(*ParseStorage("claim:data"), Storage(VolumeClaim{"data"}));
  EXPECT_EQ(Print(*ParseStorage("claim:data")), "claim:data");
  EXPECT_EQ(Print(*ParseStorage("/a/b")), "/a/b");
}

TEST(Storage, SaysWhatItCouldBe) {
  for (const char* text : {"", "data", "/", "claim:", "claim:A b", "/a/../b"}) {
    const auto storage = ParseStorage(text);
    EXPECT_TRUE(absl::IsInvalidArgument(storage.status())) << text;
    EXPECT_THAT(Message(storage.status()), HasSubstr("/mnt/yard, or claim:NAME")) << text;
  }
}

TEST(Storage, IsSeenAtItsOwnPathIfItHasOne) {
  EXPECT_EQ(MountPath(SharedFolder{"/mnt/yard"}), "/mnt/yard");
  EXPECT_EQ(PrintJson(VolumeOf(SharedFolder{"/mnt/yard"})),
            R"({"name":"storage","hostPath":{"path":"/mnt/yard","type":"DirectoryOrCreate"}})");
  EXPECT_EQ(PrintJson(VolumeOf(VolumeClaim{"data"})),
            R"({"name":"storage","persistentVolumeClaim":{"claimName":"data"}})");
  EXPECT_EQ(StringAt(MountOf(VolumeClaim{"data"}), {"mountPath"}), MountPath(VolumeClaim{"data"}));
}

}  // namespace
}  // namespace trainyard::client
