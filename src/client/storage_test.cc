#include "client/storage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"
#include "base/text.h"

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

TEST(Storage, HasRelativePathsBelowItAndRefusesThoseOutside) {
  const Storage folder = SharedFolder{"/mnt/yard"};
  EXPECT_EQ(*PathInStorage(folder, "--output", "out/"), "/mnt/yard/out");
  EXPECT_EQ(*PathInStorage(folder, "--output", "./a/../b"), "/mnt/yard/b");
  EXPECT_EQ(*PathInStorage(folder, "--output", "/mnt/yard/out"), "/mnt/yard/out");
  EXPECT_EQ(*PathInStorage(VolumeClaim{"data"}, "--output", "out"), MountPath(VolumeClaim{"data"}) + "/out");
  for (const char* path : {"/home/ada/out", "/mnt/yards", "../out", "/mnt/yard/../out", "/"}) {
    const auto refused = PathInStorage(folder, "--output", path);
    EXPECT_TRUE(absl::IsInvalidArgument(refused.status())) << path;
    EXPECT_THAT(Message(refused.status()), HasSubstr("is outside the storage /mnt/yard, ")) << path;
    EXPECT_THAT(Message(refused.status()), HasSubstr(StrCat("--output ", path, " "))) << path;
  }
}

}  // namespace
}  // namespace trainyard::client
