#include "node/volumes.h"

#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "base/files.h"
#include "base/status.h"
#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "node/plan_testing.h"
#include "tests/support/temp_folder.h"

namespace trainyard::node {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class Volumes : public testing::Test {
 protected:
  absl::StatusOr<std::vector<VolumeContent>> Plan(std::string_view volumes) {
    const PlannedPod pod(StrCat(
        R"({"containers":[{"name":"main","resources":{"limits":{"cpu":"2"}}}],"volumes":[)", volumes, "]}"));
    return PlanVolumes(pod.spec_, objects_, {.pod_ip = "127.64.0.1"},
                       [](const PodSpec&) { return "token!"; });
  }
  // "path=bytes mode" of each file of the only volume.
  std::vector<std::string> Files(std::string_view volume) {
    const auto planned = Plan(volume);
    EXPECT_TRUE(planned.ok()) << planned.status();
    std::vector<std::string> out;
    if (!planned.ok() || planned->size() != 1) return out;
    for (const VolumeFile& file : (*planned)[0].files) {
      char mode[8];
      std::snprintf(mode, sizeof mode, "%o", static_cast<unsigned>(file.mode));
      out.push_back(StrCat(file.path, "=", file.bytes, " ", mode));
    }
    return out;
  }
  std::string Error(std::string_view volume) { return std::string(Message(Plan(volume).status())); }

  ClusterObjects objects_;
};

TEST_F(Volumes, HoldAllKeysOrThoseThatAreAskedFor) {
  objects_.config_maps[{"ns", "c"}] = {.data = {{"a", "1"}, {"b", "2"}},
                                       .binary = {{"z", std::string("\0x", 2)}}};
  EXPECT_THAT(Files(R"({"name":"v","configMap":{"name":"c"}})"),
              ElementsAre("a=1 644", "b=2 644", std::string("z=\0x 644", 8)));
  EXPECT_THAT(Files(R"({"name":"v","configMap":{"name":"c","defaultMode":256,
                    "items":[{"key":"b","path":"sub/bee"},{"key":"a","path":"a","mode":511}]}})"),
              ElementsAre("a=1 777", "sub/bee=2 400"));
}

TEST_F(Volumes, HoldSecretsFieldsAndProjections) {
  objects_.secrets[{"ns", "s"}].data = {{"k", "geheim"}};
  EXPECT_THAT(Files(R"({"name":"v","secret":{"secretName":"s"}})"), ElementsAre("k=geheim 644"));
  EXPECT_THAT(
      Files(R"({"name":"v","downwardAPI":{"items":[{"path":"name","fieldRef":{"fieldPath":"metadata.name"}},
                    {"path":"cpu","resourceFieldRef":{"containerName":"main","resource":"limits.cpu"}}]}})"),
      ElementsAre("cpu=2 644", "name=p 644"));
  EXPECT_THAT(Files(R"({"name":"v","projected":{"sources":[{"secret":{"name":"s"}},
                    {"serviceAccountToken":{"path":"token"}},
                    {"downwardAPI":{"items":[{"path":"ns","fieldRef":{"fieldPath":"metadata.namespace"}}]}}]}})"),
              ElementsAre("k=geheim 644", "ns=ns 644", "token=token! 644"));
}

TEST_F(Volumes, SayWhatTheyWaitForUnlessItIsOptional) {
  objects_.config_maps[{"ns", "c"}].data = {{"a", "1"}};
  EXPECT_EQ(Error(R"({"name":"v","configMap":{"name":"none"}})"),
            "MountVolume.SetUp failed for volume \"v\" : configmap \"none\" not found");
  EXPECT_THAT(Error(R"({"name":"v","secret":{"secretName":"none"}})"),
              HasSubstr("secret \"none\" not found"));
  EXPECT_THAT(Error(R"({"name":"v","configMap":{"name":"c","items":[{"key":"x","path":"x"}]}})"),
              HasSubstr("references non-existent config key: x"));
  EXPECT_THAT(Files(R"({"name":"v","configMap":{"name":"none","optional":true}})"), IsEmpty());
  EXPECT_THAT(
      Files(R"({"name":"v","configMap":{"name":"c","optional":true,"items":[{"key":"x","path":"x"}]}})"),
      IsEmpty());
}

TEST_F(Volumes, AreNothingToWriteIfTheyAreThePodsOwn) {
  const auto planned = Plan(R"({"name":"e","emptyDir":{}},{"name":"h","hostPath":{"path":"/tmp"}})");
  ASSERT_TRUE(planned.ok());
  EXPECT_THAT(*planned, IsEmpty());
}

std::vector<std::string> Names(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (const std::string name = entry.path().filename(); !name.starts_with("..")) names.push_back(name);
  }
  return names;
}

TEST(WriteVolume, ShowsTheFilesWithTheirModesAndReplacesThem) {
  const testing_support::TempFolder folder;
  std::filesystem::create_directory(folder / "v");
  ASSERT_TRUE(
      WriteVolume({.name = "v", .files = {{"a", "1", 0400}, {"d/b", "2", 0640}, {"d/c", "3"}}}, folder.path())
          .ok());
  EXPECT_THAT(Names(folder / "v"), UnorderedElementsAre("a", "d"));
  EXPECT_EQ(ReadFile(folder / "v/d/b", 100).value(), "2");
  struct stat info{};
  ASSERT_EQ(::stat((folder / "v/a").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0400u);
  ASSERT_TRUE(WriteVolume({.name = "v", .files = {{"a", "new"}, {"e", ""}}}, folder.path()).ok());
  EXPECT_THAT(Names(folder / "v"), UnorderedElementsAre("a", "e"));
  EXPECT_EQ(ReadFile(folder / "v/a", 100).value(), "new");
  int kept = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "v"))
    kept += entry.is_directory() && !entry.is_symlink();
  EXPECT_EQ(kept, 1) << "the old files are gone";
}

TEST(WriteVolume, NeverShowsHalfOfAChange) {
  const testing_support::TempFolder folder;
  std::filesystem::create_directory(folder / "v");
  const auto write = [&](int number) {
    return WriteVolume({.name = "v", .files = {{"a", StrCat(number)}, {"b", StrCat(number)}}}, folder.path());
  };
  ASSERT_TRUE(write(0).ok());
  std::atomic<bool> done = false;
  std::thread writer([&] {
    for (int i = 1; i < 300; ++i) EXPECT_TRUE(write(i).ok());
    done = true;
  });
  int looks = 0;
  while (!done) {
    // Through one resolution of the link, as a careful reader does.
    std::error_code code;
    const std::string data = folder / "v/..data";
    const std::string real = std::filesystem::read_symlink(data, code).string();
    const auto a = ReadFile(StrCat(folder / "v/", real, "/a"), 100);
    const auto b = ReadFile(StrCat(folder / "v/", real, "/b"), 100);
    if (a.ok() && b.ok()) {
      EXPECT_EQ(*a, *b);
      ++looks;
    }
    EXPECT_TRUE(std::filesystem::exists(std::filesystem::symlink_status(data)))
        << "there was a moment without";
  }
  writer.join();
  EXPECT_GT(looks, 0);
}

TEST(CheckHostPaths, WantsWhatTheTypeSaysAndMakesWhatItMay) {
  const testing_support::TempFolder folder;
  const auto check = [&](std::string_view name, std::string_view type) {
    const PlannedPod pod(StrCat(R"({"containers":[{"name":"m"}],"volumes":[{"name":"h","hostPath":{"path":")",
                                folder / name, R"(","type":")", type, R"("}}]})"));
    return CheckHostPaths(pod.spec_);
  };
  EXPECT_THAT(Message(check("none", "")), HasSubstr("is not a file or folder"));
  EXPECT_FALSE(check("none", "Directory").ok());
  EXPECT_TRUE(check("made", "DirectoryOrCreate").ok());
  EXPECT_TRUE(check("made", "Directory").ok());
  EXPECT_FALSE(check("made", "File").ok());
  EXPECT_TRUE(check("file", "FileOrCreate").ok());
  EXPECT_TRUE(check("file", "File").ok());
  EXPECT_TRUE(check("file", "").ok());
}

}  // namespace
}  // namespace trainyard::node
