#include "base/files.h"

#include <filesystem>
#include <fstream>

#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard {
namespace {

using ::testing::HasSubstr;

TEST(ReadFile, ReadsItWholeUpToTheBound) {
  const std::string path = testing::TempDir() + "files_test";
  std::ofstream(path, std::ios::binary) << std::string(100000, 'x') << '\0';
  EXPECT_EQ(ReadFile(path, 100001)->size(), 100001u);
  EXPECT_THAT(Message(ReadFile(path, 1000).status()), HasSubstr(path + " has more than 1000 B"));
}

TEST(ReadFile, NamesWhatCannotBeRead) {
  EXPECT_THAT(Message(ReadFile("/no/such/file", 10).status()),
              HasSubstr("cannot read /no/such/file: No such file"));
  EXPECT_THAT(Message(ReadFile("/", 10).status()), HasSubstr("cannot read /: Is a directory"));
  EXPECT_THAT(Message(ReadFile("/dev/zero", 10).status()), HasSubstr("/dev/zero has more than 10 B"));
}

TEST(AbsolutePaths, AreThoseOfThisProcessesFolder) {
  const std::string here = std::filesystem::current_path().string();
  EXPECT_EQ(AbsolutePath("a/../b"), here + "/b");
  EXPECT_EQ(AbsolutePaths("b,/c/*,,d"), here + "/b,/c/*,," + here + "/d");
}

}  // namespace
}  // namespace trainyard
