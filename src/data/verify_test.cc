#include "data/verify.h"

#include <string>
#include <vector>

#include "base/status.h"
#include "base/text.h"
#include "data/data_testing.h"
#include "data/gzip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_folder.h"

namespace trainyard::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing_support::TempFolder;

class VerifyFileTest : public ::testing::Test {
 protected:
  absl::StatusOr<Verification> Verify(std::string_view name, std::string_view bytes,
                                      const OpenOptions& options = {}) {
    WriteBytes(folder_ / name, bytes);
    damages_.clear();
    return VerifyFile(folder_ / name, options,
                      {.damage =
                           [&](const Damage& damage) {
                             damages_.push_back(StrCat(damage.begin, "-", damage.end, " ", damage.message));
                           },
                       .progress = [&](std::uint64_t read) { progress_ = read; }});
  }

  TempFolder folder_;
  std::vector<std::string> damages_;
  std::uint64_t progress_ = 0;
};

std::string Packed(std::string_view bytes) {
  std::string packed;
  GzipWriter writer(packed);
  writer.Add(bytes);
  writer.Finish();
  return packed;
}

TEST_F(VerifyFileTest, CountsRecordsOfEveryFormat) {
  const std::string file = RecordIo({{"a", "b"}, {"c"}}, Compressor::kSnappy);
  EXPECT_EQ(Verify("a", file).value(),
            (Verification{.format = Format::kRecordIo, .bytes = file.size(), .chunks = 2, .records = 3}));
  EXPECT_EQ(progress_, file.size());
  EXPECT_EQ(Verify("b.csv", "1,2\n3,4\n").value(),
            (Verification{.format = Format::kCsv, .bytes = 8, .records = 2}));
  EXPECT_EQ(Verify("c", FromHex("00000801 00000002 6162")).value(),
            (Verification{.format = Format::kIdx, .bytes = 10, .records = 2}));
  EXPECT_EQ(Verify("d", "").value(), (Verification{.format = Format::kRecordIo}));
  EXPECT_THAT(damages_, IsEmpty());
}

TEST_F(VerifyFileTest, GoesOnBehindADamagedChunk) {
  std::string file = RecordIo({{"a", "b"}, {"c"}}, Compressor::kNone);
  file[24] ^= 1;
  const Verification found = Verify("a", file).value();
  EXPECT_THAT(damages_, ElementsAre("0-30 damaged at byte 0: the checksum of the chunk does not match"));
  EXPECT_EQ(found.records, 1u);
  EXPECT_EQ(found.damages, 1u);
}

TEST_F(VerifyFileTest, NamesLinesOfCsvThatAreNotLikeTheFirst) {
  const Verification found = Verify("a.csv", "a,b\n1\n\"x\"y,2\n3,4\n\n\"5,6\n", {}).value();
  EXPECT_THAT(damages_,
              ElementsAre("4-6 damaged at byte 4: line 2 has 1 columns, and the first record has 2",
                          HasSubstr("6-13 damaged at byte 6: line 3: field 1: 'y' stands between"),
                          HasSubstr("17-18 damaged at byte 17: line 5 has 1 columns"),
                          HasSubstr("18-23 damaged at byte 18: a quote is opened in the record of line 6")));
  EXPECT_EQ(found.records, 2u);
  EXPECT_EQ(found.damages, 4u);
}

TEST_F(VerifyFileTest, TakesCsvAsTheOptionsSay) {
  EXPECT_EQ(Verify("a", "\xef\xbb\xbfname\n1;2\n3;4\n",
                   {.format = Format::kCsv, .csv = {.delimiter = ';', .header = true}})
                ->records,
            2u);
  EXPECT_THAT(damages_, IsEmpty());
  EXPECT_EQ(Verify("a", "a\n\"b\n", {.format = Format::kCsv, .csv = {.quotes = false}})->records, 2u);
  EXPECT_THAT(damages_, IsEmpty());
}

TEST_F(VerifyFileTest, FindsIdxThatIsCutOrPackedWrongly) {
  const std::string file = FromHex("00000801 00000002 6162");
  EXPECT_EQ(Verify("a", file.substr(0, 9))->damages, 1u);
  EXPECT_THAT(damages_, ElementsAre(HasSubstr("0-9 damaged at byte 9: the file should end at byte 10")));
  std::string packed = Packed(file);
  EXPECT_EQ(Verify("b", packed)->records, 2u);
  packed[packed.size() - 5] ^= 1;
  EXPECT_EQ(Verify("b", packed)->damages, 1u);
  EXPECT_THAT(damages_, ElementsAre(HasSubstr("the gzip data is damaged")));
}

TEST_F(VerifyFileTest, SaysWhichFileItCannotRead) {
  EXPECT_EQ(Message(Verify("a", "text").status()),
            StrCat("cannot tell what ", folder_ / "a", " is by its first bytes: say recordio, csv or idx"));
  const auto missing =
      VerifyFile(folder_ / "none", {}, {.damage = [](const Damage&) {}, .progress = [](auto) {}});
  EXPECT_THAT(Message(missing.status()), HasSubstr(StrCat("cannot open ", folder_ / "none")));
  const auto large = Verify("b", Packed(FromHex("00000801 00000002 6162")), {.max_unpacked_bytes = 5});
  EXPECT_THAT(Message(large.status()), HasSubstr(StrCat(folder_ / "b", ": unpacked it has 10 bytes")));
}

}  // namespace
}  // namespace trainyard::data
