#include "data/record_output.h"

#include <filesystem>

#include "base/status.h"
#include "base/text.h"
#include "data/data_testing.h"
#include "data/open.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_folder.h"

namespace trainyard::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing_support::TempFolder;

// Hidden ones too.
std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

OutputSize Write(const OutputOptions& options, const Records& records) {
  const auto output = RecordOutput::Create(options).value();
  for (const std::string& record : records) EXPECT_TRUE(output->Write(record).ok());
  return output->Finish().value();
}

Records Read(const std::string& path) { return ReadAll(*OpenRecords({path}).value()).value(); }

std::string WhyNot(const OutputOptions& options) {
  return std::string(Message(RecordOutput::Create(options).status()));
}

TEST(RecordOutput, WritesAFile) {
  const TempFolder folder;
  const OutputSize size = Write({.path = folder / "out.rec"}, {"a", "b"});
  EXPECT_EQ(size, (OutputSize{.files = 1, .bytes = std::filesystem::file_size(folder / "out.rec")}));
  EXPECT_EQ(Read(folder / "out.rec"), (Records{"a", "b"}));
  EXPECT_THAT(NamesIn(folder.path()), ElementsAre("out.rec"));
}

TEST(RecordOutput, CutsFilesOfAFolderByTheirRecords) {
  const TempFolder folder;
  const OutputSize size = Write({.path = folder / "out", .records_per_file = 2}, {"a", "b", "c", "d", "e"});
  EXPECT_EQ(size.files, 3u);
  EXPECT_THAT(NamesIn(folder / "out"), ElementsAre("data-00000", "data-00001", "data-00002"));
  EXPECT_EQ(Read(folder / "out/data-00001"), (Records{"c", "d"}));
  EXPECT_EQ(Read(folder / "out"), (Records{"a", "b", "c", "d", "e"}));
  std::uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "out")) bytes += entry.file_size();
  EXPECT_EQ(size.bytes, bytes);
  EXPECT_THAT(NamesIn(folder.path()), ElementsAre("out"));
  EXPECT_EQ(Write({.path = folder / "exact", .records_per_file = 2}, {"a", "b"}).files, 1u);
}

TEST(RecordOutput, MakesOneEmptyFileOfNoRecords) {
  const TempFolder folder;
  EXPECT_EQ(Write({.path = folder / "out/"}, {}), (OutputSize{.files = 1}));
  EXPECT_THAT(NamesIn(folder / "out"), ElementsAre("data-00000"));
}

TEST(RecordOutput, ShowsNothingBeforeItIsComplete) {
  const TempFolder folder;
  std::filesystem::create_directory(folder / "old");
  for (const std::string& path : {folder / "file", folder / "new/", folder / "old"}) {
    const auto output =
        RecordOutput::Create({.path = path, .records_per_file = path.ends_with("file") ? 0U : 1U}).value();
    for (const char* record : {"a", "b"}) ASSERT_TRUE(output->Write(record).ok());
    for (const std::string& name : NamesIn(folder.path()))
      EXPECT_TRUE(name.starts_with('.') || name == "old") << name;
    for (const std::string& name : NamesIn(folder / "old")) EXPECT_TRUE(name.starts_with('.')) << name;
  }
  EXPECT_THAT(NamesIn(folder.path()), ElementsAre("old"));
  EXPECT_THAT(NamesIn(folder / "old"), IsEmpty());
}

TEST(RecordOutput, KeepsWhatIsThereUnlessToldOtherwise) {
  const TempFolder folder;
  WriteBytes(folder / "file", "before");
  EXPECT_EQ(WhyNot({.path = folder / "file"}),
            StrCat(folder / "file", " is there already: name another file, or overwrite it"));
  Write({.path = folder / "out", .records_per_file = 1}, {"a", "b", "c"});
  EXPECT_THAT(WhyNot({.path = folder / "out"}), HasSubstr("out has files already, such as data-00000"));
  Write({.path = folder / "file", .overwrite = true}, {"after"});
  EXPECT_EQ(Read(folder / "file"), Records{"after"});
  // Fewer than before: none of the old ones stays.
  Write({.path = folder / "out", .records_per_file = 1, .overwrite = true}, {"x", "y"});
  EXPECT_THAT(NamesIn(folder / "out"), ElementsAre("data-00000", "data-00001"));
  EXPECT_EQ(Read(folder / "out"), (Records{"x", "y"}));
}

TEST(RecordOutput, RemovesNothingThatItHasNotMade) {
  const TempFolder folder;
  std::filesystem::create_directory(folder / "out");
  for (const char* name : {"data-00000", "data-1", "notes"}) WriteBytes(folder / StrCat("out/", name), "");
  EXPECT_THAT(WhyNot({.path = folder / "out", .overwrite = true}),
              HasSubstr("out has data-1, which is not overwritten"));
  EXPECT_THAT(NamesIn(folder / "out"), ElementsAre("data-00000", "data-1", "notes"));
}

TEST(RecordOutput, RefusesWhatCannotBeWritten) {
  const TempFolder folder;
  WriteBytes(folder / "file", "");
  EXPECT_THAT(WhyNot({.path = folder / "file", .records_per_file = 2, .overwrite = true}),
              HasSubstr("is a file: name a folder"));
  EXPECT_THAT(WhyNot({.path = folder / "none/out"}), HasSubstr("No such file or directory"));
  EXPECT_THAT(WhyNot({.path = folder / "none/out/"}), HasSubstr("No such file or directory"));
  EXPECT_THAT(WhyNot({.path = ""}), HasSubstr("is empty"));
  EXPECT_THAT(WhyNot({.path = "/dev/null"}), HasSubstr("neither a file nor a folder"));
}

}  // namespace
}  // namespace trainyard::data
