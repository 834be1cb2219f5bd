#include "data/file_pool.h"

#include <filesystem>

#include "base/status.h"
#include "base/text.h"
#include "data/data_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_folder.h"

namespace trainyard::data {
namespace {

using ::testing::HasSubstr;
using testing_support::TempFolder;

class FilePoolTest : public ::testing::Test {
 protected:
  void Add(std::string_view name) {
    const std::string path = folder_ / name;
    WriteBytes(path, name);
    pool_.Add(path, FileBytes::Map(path).value());
  }

  TempFolder folder_;
  FilePool pool_{1};
};

TEST_F(FilePoolTest, MapsAgainWhatItDidNotKeep) {
  Add("a");
  Add("b");
  EXPECT_EQ(pool_.Get(0).value()->view(), "a");
  EXPECT_EQ(pool_.Get(1).value()->view(), "b");
  EXPECT_EQ(pool_.Get(0).value()->view(), "a");
}

TEST_F(FilePoolTest, MapsOnceWhatIsInUse) {
  Add("a");
  Add("b");
  const auto first = pool_.Get(0).value();
  (void)pool_.Get(1).value();
  EXPECT_EQ(pool_.Get(0).value(), first);
}

TEST_F(FilePoolTest, NamesAFileThatHasVanished) {
  Add("a");
  Add("b");
  std::filesystem::remove(folder_ / "a");
  EXPECT_THAT(Message(pool_.Get(0).status()), HasSubstr(StrCat("cannot open ", folder_ / "a")));
}

TEST_F(FilePoolTest, RefusesAFileThatTookTheOthersPlace) {
  Add("a");
  Add("b");
  WriteBytes(folder_ / "new", "x");
  std::filesystem::rename(folder_ / "new", folder_ / "a");
  const auto bytes = pool_.Get(0);
  EXPECT_EQ(bytes.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(bytes.status()), HasSubstr(folder_ / "a"));
}

TEST_F(FilePoolTest, KeepsForeverWhatIsOnlyInMemory) {
  pool_.Add("unpacked", FileBytes::Own(std::make_unique<char[]>(3), 3));
  Add("b");
  Add("c");
  EXPECT_EQ(pool_.Get(0).value()->view(), std::string(3, '\0'));
}

}  // namespace
}  // namespace trainyard::data
