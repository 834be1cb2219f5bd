#include "master/state_folder.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "base/files.h"
#include "tests/support/temp_folder.h"

namespace trainyard::master {
namespace {

std::string Read(const StateFolder& folder, const char* name) {
  return ReadFile(folder.path() + "/" + name, 100).value_or("");
}

void Write(const StateFolder& folder, const char* name, std::string_view text) {
  std::filesystem::create_directories(folder.path());
  std::ofstream(folder.path() + "/" + name) << text;
}

class StateFolderTest : public testing::Test {
 protected:
  StateFolder TakeOver(const std::string& pod) {
    return StateFolder::TakeOver(folder_ / "queue", pod, absl::ZeroDuration()).value();
  }
  testing_support::TempFolder folder_;
};

TEST_F(StateFolderTest, StaysWithThePodWhoseMasterIsStartedAgain) {
  Write(TakeOver("a"), "log", "1");
  const StateFolder again = TakeOver("a");
  EXPECT_EQ(Read(again, "log"), "1");
  EXPECT_TRUE(again.IsOwned());
}

TEST_F(StateFolderTest, GoesToAnotherPodWithAllThatWasStored) {
  const StateFolder first = TakeOver("a");
  Write(first, "log", "1");
  const StateFolder second = TakeOver("b");
  EXPECT_EQ(Read(second, "log"), "1");
  EXPECT_TRUE(second.IsOwned());
  EXPECT_FALSE(first.IsOwned());
}

TEST_F(StateFolderTest, DoesNotShowWhatAMasterStoresThatWasCutOff) {
  const StateFolder first = TakeOver("a");
  Write(first, "log", "1");
  const StateFolder second = TakeOver("b");
  Write(first, "log", "of the past");
  EXPECT_EQ(Read(second, "log"), "1");
}

TEST_F(StateFolderTest, DoesNotGoBackToAPodThatLostIt) {
  (void)TakeOver("a");
  (void)TakeOver("b");
  const auto back = StateFolder::TakeOver(folder_ / "queue", "a", absl::ZeroDuration());
  EXPECT_TRUE(absl::IsFailedPrecondition(back.status())) << back.status();
  EXPECT_TRUE(TakeOver("b").IsOwned());
  EXPECT_TRUE(TakeOver("c").IsOwned());
}

TEST_F(StateFolderTest, IsCopiedFromTheLastPodThatHadAQueue) {
  Write(TakeOver("a"), "log", "1");
  std::filesystem::create_directory(folder_ / "queue/2");  // claimed by a pod that was lost before it copied
  std::ofstream(folder_ / "queue/2/pod") << "b";
  EXPECT_EQ(Read(TakeOver("c"), "log"), "1");
}

TEST_F(StateFolderTest, IgnoresACopyThatAMasterDidNotFinish) {
  Write(TakeOver("a"), "log", "1");
  std::filesystem::create_directory(folder_ / "queue/.unfinished-x");
  EXPECT_EQ(Read(TakeOver("b"), "log"), "1");
}

}  // namespace
}  // namespace trainyard::master
