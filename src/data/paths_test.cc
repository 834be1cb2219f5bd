#include "data/paths.h"

#include <filesystem>

#include "base/status.h"
#include "data/data_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_folder.h"

namespace trainyard::data {
namespace {

using ::testing::ElementsAre;
using testing_support::TempFolder;

TEST(ExpandPaths, KeepsTheOrderGivenAndSortsWhatAGlobMatches) {
  const TempFolder folder;
  for (const char* name : {"b-10", "b-2", "b-1", "a", "B-3", ".b-4.draft"}) WriteBytes(folder / name, "");
  EXPECT_THAT(ExpandPaths({folder / "b-*", folder / "a", folder / "[B]-?"}).value(),
              ElementsAre(folder / "b-1", folder / "b-10", folder / "b-2", folder / "a", folder / "B-3"));
  EXPECT_THAT(ExpandPaths({folder / "*"}).value(),
              ElementsAre(folder / "B-3", folder / "a", folder / "b-1", folder / "b-10", folder / "b-2"));
}

TEST(ExpandPaths, TakesAPathThatExistsForItself) {
  const TempFolder folder;
  WriteBytes(folder / "data[1]", "");
  WriteBytes(folder / "data1", "");
  EXPECT_THAT(ExpandPaths({folder / "data[1]"}).value(), ElementsAre(folder / "data[1]"));
}

TEST(ExpandPaths, TakesAFolderForItsFilesThatAreNotHidden) {
  const TempFolder folder;
  for (const char* name : {"b-10", "b-2", "B", ".draft"}) WriteBytes(folder / name, "");
  std::filesystem::create_directory(folder / "inner");
  WriteBytes(folder / "inner/a", "");
  EXPECT_THAT(ExpandPaths({folder.path(), folder / "inner/"}).value(),
              ElementsAre(folder / "B", folder / "b-10", folder / "b-2", folder / "inner/a"));
  std::filesystem::remove(folder / "inner/a");
  const auto none = ExpandPaths({folder / "inner"});
  EXPECT_EQ(none.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Message(none.status()), StrCat("there is no file in the folder ", folder / "inner"));
}

TEST(ExpandPaths, SaysWhichGlobMatchesNothing) {
  const auto files = ExpandPaths({"/no/such/folder/*.rec"});
  EXPECT_EQ(files.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Message(files.status()), "no file matches /no/such/folder/*.rec");
}

TEST(ExpandPaths, WantsAtLeastOneName) {
  EXPECT_EQ(Message(ExpandPaths({}).status()), "no record files are named: name at least one");
  EXPECT_EQ(Message(ExpandPaths({"a", ""}).status()), "the name of a record file is empty");
}

}  // namespace
}  // namespace trainyard::data
