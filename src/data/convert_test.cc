#include "data/convert.h"

#include <bit>
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

absl::Status GoOn(ConvertProgress) { return absl::OkStatus(); }

std::string Floats(std::initializer_list<float> numbers) {
  std::string bytes;
  for (const float number : numbers) AppendLittle32(std::bit_cast<std::uint32_t>(number), bytes);
  return bytes;
}

std::string Int64(std::int64_t number) {
  std::string bytes;
  AppendLittle32(static_cast<std::uint32_t>(number), bytes);
  AppendLittle32(static_cast<std::uint32_t>(number >> 32), bytes);
  return bytes;
}

class ConvertTest : public ::testing::Test {
 protected:
  std::string Make(std::string_view name, std::string_view bytes) {
    WriteBytes(folder_ / name, bytes);
    return folder_ / name;
  }

  // What is written of the files.
  absl::StatusOr<Records> Run(const std::vector<std::string>& paths, ConvertOptions options = {},
                              std::string_view fields = "") {
    options.output.path = folder_ / "out";
    options.output.overwrite = true;
    if (!fields.empty()) {
      TY_ASSIGN_OR_RETURN(options.fields, ParseFieldSpecs(fields));
    }
    TY_ASSIGN_OR_RETURN(const Converted converted, Convert(paths, options, GoOn));
    TY_ASSIGN_OR_RETURN(const auto source, OpenRecords({folder_ / "out"}, {.format = Format::kRecordIo}));
    EXPECT_EQ(converted.records, source->Count());
    return ReadAll(*source);
  }

  std::string WhyNot(const std::vector<std::string>& paths, const ConvertOptions& options = {},
                     std::string_view fields = "") {
    std::string why(Message(Run(paths, options, fields).status()));
    EXPECT_FALSE(std::filesystem::exists(folder_ / "out"));
    return why;
  }

  TempFolder folder_;
};

TEST_F(ConvertTest, KeepsRecordsOfEveryFormatAsTheyAre) {
  const Records records = {"Hello", "", "World"};
  EXPECT_EQ(Run({Make("new", RecordIo({{"Hello", ""}, {"World"}}, Compressor::kGzip))}).value(), records);
  EXPECT_EQ(Run({Make("old", OldChunk(Compressor::kNone, 3, Payload(records)))}).value(), records);
  EXPECT_EQ(Run({Make("c.csv", "name\nHello\n\nWorld")}, {.open = {.csv = {.header = true}}}).value(),
            records);
  EXPECT_EQ(Run({Make("idx", FromHex("00000801 00000002 6162"))}).value(), (Records{"a", "b"}));
  EXPECT_EQ(Run({Make("empty", "")}).value(), Records{});
  EXPECT_EQ(Run({Make("empty.csv", "")}, {}, "f32").value(), Records{});
}

TEST_F(ConvertTest, WritesTheNewLayoutWithTheCompressorAskedFor) {
  const std::string old = Make("old", OldChunk(Compressor::kNone, 1, Payload({"Hello"})));
  for (const auto compressor : {Compressor::kNone, Compressor::kSnappy, Compressor::kGzip}) {
    ASSERT_TRUE(Run({old}, {.output = {.writer = {.compressor = compressor}}}).ok());
    EXPECT_EQ(ReadBytes(folder_ / "out"), RecordIo({{"Hello"}}, compressor));
  }
}

TEST_F(ConvertTest, PutsFilesOneBehindTheOther) {
  EXPECT_EQ(Run({Make("a.csv", "1\n2\n"), Make("b.csv", "3\n")}).value(), (Records{"1", "2", "3"}));
}

TEST_F(ConvertTest, MakesOneRecordOfImageAndLabel) {
  const std::string images = Make("images", FromHex("00000803 00000002 00000001 00000002 00ff 3380"));
  const std::string labels = Make("labels", FromHex("00000801 00000002 0709"));
  EXPECT_EQ(Run({images, labels}, {.zip = true}, "f32/255,i64").value(),
            (Records{Floats({0, 1}) + Int64(7), Floats({0.2F, static_cast<float>(128 / 255.0)}) + Int64(9)}));
  EXPECT_EQ(Run({images, labels}, {.zip = true}).value(), (Records{FromHex("00ff07"), FromHex("338009")}));
  EXPECT_EQ(Run({labels, images}, {.zip = true}, "i64,raw").value(),
            (Records{Int64(7) + FromHex("00ff"), Int64(9) + FromHex("3380")}));
}

TEST_F(ConvertTest, ReadsEveryTypeOfIdx) {
  EXPECT_EQ(Run({Make("i8", FromHex("00000901 00000001 fe"))}, {}, "i64").value(), Records{Int64(-2)});
  EXPECT_EQ(Run({Make("i16", FromHex("00000b01 00000001 fffe"))}, {}, "i64").value(), Records{Int64(-2)});
  EXPECT_EQ(Run({Make("i32", FromHex("00000c01 00000001 00010000"))}, {}, "f32").value(),
            Records{Floats({65536})});
  EXPECT_EQ(Run({Make("f32", FromHex("00000d01 00000001 3fc00000"))}, {}, "f32").value(),
            Records{Floats({1.5F})});
  EXPECT_EQ(Run({Make("f64", FromHex("00000e01 00000001 3ff8000000000000"))}, {}, "i64").value(),
            Records{Int64(1)});
}

TEST_F(ConvertTest, MakesNumbersOfColumns) {
  const std::string csv = Make("a.csv", "0.5,2, 3\n\"1\",-2,4\n");
  EXPECT_EQ(Run({csv}, {}, "f32x2,i64").value(),
            (Records{Floats({0.5F, 2}) + Int64(3), Floats({1, -2}) + Int64(4)}));
  EXPECT_EQ(Run({csv, Make("b.csv", "7,8,9\n")}, {}, "i64x3/0.5")->size(), 3u);
}

TEST_F(ConvertTest, SaysWhichRecordIsNotWhatItShouldBe) {
  EXPECT_EQ(WhyNot({Make("a.csv", "1,2\n3,x\n")}, {}, "f32"),
            StrCat(folder_ / "a.csv", ": line 2: column 2 is \"x\", which is no f32"));
  EXPECT_EQ(WhyNot({Make("a.csv", "1,2\n3\n")}, {}, "f32"),
            StrCat(folder_ / "a.csv", ": line 2: it has 1 columns, and the first record has 2"));
  EXPECT_THAT(WhyNot({Make("a.csv", "long\n")}, {.output = {.writer = {.max_chunk_bytes = 4}}}),
              HasSubstr("a.csv: line 1: a record of 4 bytes is too large"));
  EXPECT_THAT(WhyNot({Make("f64", FromHex("00000e01 00000001 7ff0000000000000"))}, {}, "i64"),
              HasSubstr("f64: item 0 at byte 8: a number in it is too large for i64"));
}

TEST_F(ConvertTest, RefusesSourcesThatDoNotGoTogether) {
  const std::string one = Make("one", FromHex("00000801 00000001 61"));
  const std::string two = Make("two", FromHex("00000801 00000002 6162"));
  EXPECT_EQ(WhyNot({one, two}, {.zip = true}),
            StrCat(one, " has 1 records and ", two, " has 2: to go together they must have equally many"));
  EXPECT_THAT(WhyNot({Make("rec", RecordIo({{"x"}}, Compressor::kNone))}, {}, "f32"),
              HasSubstr("can only be raw"));
  EXPECT_EQ(WhyNot({}), "no record files are named: name at least one");
  EXPECT_EQ(WhyNot({}, {.zip = true}), "no record files are named: name at least one");
}

TEST_F(ConvertTest, LeavesNothingBehindWhenItFailsHalfWay) {
  std::string file = RecordIo({{"a"}, {"b"}, {"c"}}, Compressor::kNone);
  file.back() ^= 1;
  EXPECT_THAT(WhyNot({Make("bad", file)}), HasSubstr("bad: damaged at byte 50: the checksum"));
  EXPECT_THAT(WhyNot({folder_ / "bad"}, {.output = {.records_per_file = 1}}),
              HasSubstr("damaged at byte 50"));
  const std::filesystem::directory_iterator left(folder_.path());
  EXPECT_EQ(std::distance(begin(left), end(left)), 1);
}

TEST_F(ConvertTest, ReplacesItsOwnInput) {
  ConvertOptions options{.output = {.path = folder_ / "data", .records_per_file = 2}};
  ASSERT_TRUE(Convert({Make("a.csv", "1\n2\n3\n")}, options, GoOn).ok());
  options.output.overwrite = true;
  options.output.records_per_file = 1;
  EXPECT_EQ(Convert({folder_ / "data"}, options, GoOn)->output.files, 3u);
  EXPECT_EQ(ReadAll(*OpenRecords({folder_ / "data"}).value()).value(), (Records{"1", "2", "3"}));
}

TEST_F(ConvertTest, EndsWhenItIsToldTo) {
  const std::string path = Make("a.csv", std::string(3 << 20, 'x') + "\n" + std::string(3 << 20, 'y'));
  std::vector<std::uint64_t> told;
  const auto stopped = Convert({path}, {.output = {.path = folder_ / "out"}}, [&](ConvertProgress progress) {
    told.push_back(progress.done);
    return absl::CancelledError("enough");
  });
  EXPECT_EQ(stopped.status(), absl::CancelledError("enough"));
  EXPECT_EQ(told, std::vector<std::uint64_t>{1});
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out"));
}

}  // namespace
}  // namespace trainyard::data
