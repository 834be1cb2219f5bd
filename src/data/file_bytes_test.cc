#include "data/file_bytes.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/status.h"
#include "data/data_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_folder.h"

namespace trainyard::data {
namespace {

using ::testing::HasSubstr;
using testing_support::TempFolder;

TEST(FileBytes, AreTheFilesAlsoAfterItsNameIsGone) {
  const TempFolder folder;
  WriteBytes(folder / "file", "bytes");
  const auto bytes = FileBytes::Map(folder / "file").value();
  std::filesystem::remove(folder / "file");
  EXPECT_TRUE(bytes->CheckUnchanged().ok());
  EXPECT_EQ(bytes->view(), "bytes");
}

TEST(FileBytes, OfAnEmptyFileAreNone) {
  const TempFolder folder;
  WriteBytes(folder / "file", "");
  const auto bytes = FileBytes::Map(folder / "file").value();
  EXPECT_EQ(bytes->view(), "");
  EXPECT_TRUE(bytes->CheckUnchanged().ok());
}

TEST(FileBytes, KnowThatTheFileWasCut) {
  const TempFolder folder;
  WriteBytes(folder / "file", std::string(10000, 'x'));
  const auto bytes = FileBytes::Map(folder / "file").value();
  std::filesystem::resize_file(folder / "file", 17);
  const absl::Status status = bytes->CheckUnchanged();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(status), HasSubstr("it ends at byte 17 and ended at byte 10000"));
}

TEST(FileBytes, KnowThatTheFileWasWritten) {
  const TempFolder folder;
  WriteBytes(folder / "file", "bytes");
  const auto bytes = FileBytes::Map(folder / "file").value();
  const struct timespec times[2] = {{.tv_sec = 1, .tv_nsec = 0}, {.tv_sec = 1, .tv_nsec = 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, (folder / "file").c_str(), times, 0), 0);
  EXPECT_THAT(Message(bytes->CheckUnchanged()), HasSubstr("written to since it was opened"));
}

TEST(FileBytes, AreOnlyThoseOfFiles) {
  const TempFolder folder;
  EXPECT_THAT(Message(FileBytes::Map(folder / "none").status()),
              HasSubstr(StrCat("cannot open ", folder / "none", ": No such file")));
  EXPECT_EQ(Message(FileBytes::Map(folder.path()).status()),
            StrCat(folder.path(), " is a folder: name its files, as in '", folder / "*'"));
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(Message(FileBytes::Map(folder / "pipe").status()), HasSubstr("is not a file that can be read"));
}

}  // namespace
}  // namespace trainyard::data
