#include "ps/record_sources.h"

#include "base/status.h"
#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/record_testing.h"
#include "tests/support/temp_folder.h"

namespace trainyard::ps {
namespace {

using data::WriteBytes;
using graph::DataType;
using graph::Field;
using graph::ReadOptions;
using graph::Tensor;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class RecordSourcesTest : public testing::Test {
 protected:
  // Reads the records of these numbers, in this order.
  static absl::StatusOr<std::vector<Tensor>> Read(RecordSources& sources,
                                                  const std::vector<std::int64_t>& numbers) {
    std::vector<RecordSources::Row> rows;
    for (const std::int64_t number : numbers)
      rows.push_back({number, static_cast<std::int64_t>(rows.size())});
    std::vector<Tensor> batch;
    if (absl::Status read = sources.Read(rows, batch); !read.ok()) return read;
    return batch;
  }
  static absl::StatusOr<std::vector<Tensor>> Read(const ReadOptions& options,
                                                  const std::vector<std::int64_t>& numbers) {
    auto sources = RecordSources::Open(ReadOp(options));
    if (!sources.ok()) return sources.status();
    return Read(**sources, numbers);
  }
  std::string Write(std::string_view name, std::string_view bytes) {
    const std::string path = folder_ / name;
    WriteBytes(path, bytes);
    return path;
  }

  const testing_support::TempFolder folder_;
};

TEST_F(RecordSourcesTest, PixelsBecomeScaledNumbers) {
  const std::string images =
      Write("images", IdxFile(8, {3, 2, 2}, data::FromHex("000102ff 61626364 80818283")));
  const std::string labels = Write("labels", IdxFile(8, {3}, "\x07\xff\x09"));
  const auto batch = Read({.sources = {images, labels},
                           .fields = {{.name = "image", .item = {4}, .scale = 1.0 / 255},
                                      {.name = "label", .item = {1}, .type = DataType::kInt64, .source = 1}}},
                          {2, 0})
                         .value();
  EXPECT_EQ(batch[0].dims(), (graph::Dims{2, 4}));
  EXPECT_EQ(batch[1].dims(), (graph::Dims{2, 1}));
  EXPECT_THAT(batch[0].span<float>().subspan(4), ElementsAre(0, 1.0F / 255, 2.0F / 255, 1));
  EXPECT_EQ(batch[0].data<float>()[0], 128.0F / 255);
  EXPECT_THAT(batch[1].span<std::int64_t>(), ElementsAre(9, 7));
}

TEST_F(RecordSourcesTest, EveryTypeOfIdxIsRead) {
  const struct {
    char type;
    std::string bytes;
    double value;
  } cases[] = {{8, "\xfe", 254},
               {9, "\xfe", -2},
               {0xb, "\xff\xfe", -2},
               {0xc, std::string("\x00\x01\x00\x00", 4), 65536},
               {0xd, std::string("\xc0\x20\x00\x00", 4), -2.5},
               {0xe, std::string("\x40\x04\x00\x00\x00\x00\x00\x00", 8), 2.5}};
  for (const auto& c : cases) {
    const std::string file = Write("file", IdxFile(c.type, {1, 1}, c.bytes));
    const auto floats = Read({.sources = {file}, .fields = {{.name = "x", .item = {1}}}}, {0}).value();
    EXPECT_EQ(floats[0].data<float>()[0], c.value);
    const auto ints = Read({.sources = {file},
                            .fields = {{.name = "x", .item = {1}, .type = DataType::kInt64, .scale = 2}}},
                           {0})
                          .value();
    EXPECT_EQ(ints[0].data<std::int64_t>()[0], c.value * 2);
  }
}

TEST_F(RecordSourcesTest, FieldsOfAnIdxFileAreAllOfItsItems) {
  const std::string file = Write("images", IdxFile(8, {1, 4}, "abcd"));
  const auto batch =
      Read({.sources = {file}, .fields = {{.name = "a", .item = {1}}, {.name = "b", .item = {3}}}}, {0})
          .value();
  EXPECT_EQ(batch[0].data<float>()[0], 'a');
  EXPECT_THAT(batch[1].span<float>(), ElementsAre('b', 'c', 'd'));
  for (const graph::Dims& item : {graph::Dims{3}, graph::Dims{5}}) {
    const absl::Status status =
        Read({.sources = {file}, .fields = {{.name = "a", .item = item}}}, {0}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_THAT(Message(status), AllOf(HasSubstr(file), HasSubstr("4 bytes")));
  }
}

TEST_F(RecordSourcesTest, NumbersTooLargeForAnElementAreErrors) {
  const std::string file = Write("doubles", IdxFile(0xe, {1, 1}, std::string("\x7f\xe0\0\0\0\0\0\0", 8)));
  const absl::Status status =
      Read({.sources = {file}, .fields = {{.name = "x", .item = {1}, .type = DataType::kInt64}}}, {0})
          .status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(Message(status), AllOf(HasSubstr(file), HasSubstr("too large")));
}

TEST_F(RecordSourcesTest, ColumnsBecomeNumbers) {
  const std::string file = Write("a.csv", "id,label,x,y\n17,3,0.5,-1e3\n18, 4.0 ,\"+7\",1e-60\n");
  const auto batch = Read({.sources = {file},
                           .fields = {{.name = "xy", .item = {2}, .begin = 2},
                                      {.name = "label", .item = {1}, .type = DataType::kInt64, .begin = 1}},
                           .skip_header = true},
                          {0, 1})
                         .value();
  EXPECT_THAT(batch[0].span<float>(), ElementsAre(0.5F, -1000, 7, 0));
  EXPECT_THAT(batch[1].span<std::int64_t>(), ElementsAre(3, 4));
}

TEST_F(RecordSourcesTest, ColumnsAreScaled) {
  const std::string file = Write("a.csv", "255,1.25,10\n");
  const auto batch = Read({.sources = {file},
                           .fields = {{.name = "x", .item = {1}, .scale = 1.0 / 255},
                                      {.name = "n", .item = {1}, .type = DataType::kInt64, .scale = 4},
                                      {.name = "m", .item = {1}, .type = DataType::kInt64, .scale = 0.25}}},
                          {0})
                         .value();
  EXPECT_EQ(batch[0].data<float>()[0], 1);
  EXPECT_EQ(batch[1].data<std::int64_t>()[0], 5);
  EXPECT_EQ(batch[2].data<std::int64_t>()[0], 2);
}

TEST_F(RecordSourcesTest, ColumnsThatAreNoNumbersAreErrorsThatNameTheLine) {
  for (const char* text : {"", "abc", "1x", "nan", "inf", "1e60", "+-1", "0x10", "1 2"}) {
    const std::string file = Write("a.csv", StrCat("1\n2\n", text, ",\n"));
    const absl::Status status =
        Read({.sources = {file}, .fields = {{.name = "x", .item = {1}}}}, {0, 2}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    EXPECT_THAT(Message(status), HasSubstr(StrCat(file, ": line 3: column 1 "))) << text;
  }
  for (const char* text : {"1.5", "9223372036854775808", ""}) {
    const std::string file = Write("a.csv", StrCat("0,", text, "\n"));
    const absl::Status status =
        Read(
            {.sources = {file}, .fields = {{.name = "x", .item = {1}, .type = DataType::kInt64, .begin = 1}}},
            {0})
            .status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    EXPECT_THAT(Message(status), HasSubstr("line 1: column 2 "));
  }
}

TEST_F(RecordSourcesTest, LinesWithTooFewColumnsAreErrorsThatNameTheLine) {
  const std::string file = Write("a.csv", "1,2\n3\n");
  const absl::Status status =
      Read({.sources = {file}, .fields = {{.name = "x", .item = {2}}}}, {0, 1}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(Message(status), HasSubstr(StrCat(file, ": line 2: it has 1 columns")));
}

TEST_F(RecordSourcesTest, RawRecordsAreCopied) {
  data::Records records;
  for (int i = 0; i < 3; ++i) {
    records.push_back(Raw<float>({0.5F + static_cast<float>(i), 2}) + Raw<std::int64_t>({i * 10}));
  }
  const std::string file = Write("records", data::RecordIo({records}, data::Compressor::kSnappy));
  const auto batch =
      Read({.sources = {file},
            .fields = {{.name = "x", .item = {2}}, {.name = "n", .item = {1}, .type = DataType::kInt64}}},
           {1, 2, 0})
          .value();
  EXPECT_THAT(batch[0].span<float>(), ElementsAre(1.5F, 2, 2.5F, 2, 0.5F, 2));
  EXPECT_THAT(batch[1].span<std::int64_t>(), ElementsAre(10, 20, 0));
}

TEST_F(RecordSourcesTest, RawRecordsAreReadByBytesAndScaled) {
  const data::Records records = {Raw<std::int64_t>({-3}) + Raw<float>({4})};
  const std::string file = Write("records", data::RecordIo({records}, data::Compressor::kNone));
  const auto batch =
      Read({.sources = {file},
            .format = "recordio",
            .fields = {{.name = "x", .item = {1}, .begin = 8, .scale = 0.5},
                       {.name = "n", .item = {1}, .type = DataType::kInt64, .begin = 0, .scale = 3}}},
           {0})
          .value();
  EXPECT_EQ(batch[0].data<float>()[0], 2);
  EXPECT_EQ(batch[1].data<std::int64_t>()[0], -9);
}

TEST_F(RecordSourcesTest, RecordsOfTheWrongLengthAreErrorsThatNameTheRecord) {
  const data::Records records = {Raw<float>({1}), Raw<float>({1, 2}), ""};
  const std::string file = Write("records", data::RecordIo({records}, data::Compressor::kNone));
  for (const std::int64_t number : {1, 2}) {
    const absl::Status status =
        Read({.sources = {file}, .fields = {{.name = "x", .item = {1}}}}, {0, number}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_THAT(Message(status), AllOf(HasSubstr(StrCat(file, ": record ", number)), HasSubstr("bytes")));
  }
}

TEST_F(RecordSourcesTest, SourcesMustHaveEquallyManyRecords) {
  const std::string images = Write("images", IdxFile(8, {3, 1}, "abc"));
  const std::string labels = Write("labels", IdxFile(8, {2}, "ab"));
  const absl::Status status =
      RecordSources::Open(
          ReadOp({.sources = {images, labels},
                  .fields = {{.name = "x", .item = {1}}, {.name = "y", .item = {1}, .source = 1}}}))
          .status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(Message(status), AllOf(HasSubstr(images), HasSubstr(labels), HasSubstr("3"), HasSubstr("2")));
}

TEST_F(RecordSourcesTest, ListsAndGlobsAreOneSource) {
  Write("part-0.csv", "1\n2\n");
  Write("part-1.csv", "3\n");
  const std::string last = Write("last.csv", "4\n");
  const auto batch = Read({.sources = {StrCat(folder_.path(), "/part-*.csv,", last)},
                           .fields = {{.name = "x", .item = {1}}}},
                          {0, 1, 2, 3})
                         .value();
  EXPECT_THAT(batch[0].span<float>(), ElementsAre(1, 2, 3, 4));
}

TEST_F(RecordSourcesTest, WhatIsNotThereIsNotFound) {
  const absl::Status status =
      RecordSources::Open(ReadOp({.sources = {folder_ / "none"}, .fields = {{.name = "x", .item = {1}}}}))
          .status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(Message(status), HasSubstr("none"));
}

TEST_F(RecordSourcesTest, FilesWithoutRecordsAreErrors) {
  const std::string file = Write("a.csv", "");
  EXPECT_TRUE(absl::IsInvalidArgument(
      RecordSources::Open(ReadOp({.sources = {file}, .fields = {{.name = "x", .item = {1}}}})).status()));
}

TEST_F(RecordSourcesTest, AttributesThatDoNotFitAreErrors) {
  const std::string file = Write("a.csv", "1,2\n");
  const graph::Op good = ReadOp({.sources = {file}, .fields = {{.name = "x", .item = {1}}}});
  ASSERT_TRUE(RecordSources::Open(good).ok());
  const std::pair<std::string, graph::Attr> changes[] = {
      {"sources", graph::Strings{file, file}},
      {"sources", graph::Strings{}},
      {"sources", graph::Strings{""}},
      {"format", std::string("tar")},
      {"batch_size", std::int64_t{0}},
      {"shapes", graph::Strings{"0"}},
      {"shapes", graph::Strings{"1", "1"}},
      {"types", graph::Strings{"bool"}},
      {"sources_of", graph::Ints{1}},
      {"sources_of", graph::Ints{0, 0}},
      {"begins", graph::Ints{-2}},
      {"begins", graph::Ints{0, 1}},
      {"scales", graph::Floats{1, 1}},
      {"sources", std::string("text")},
      {"unknown", std::int64_t{0}},
  };
  for (const auto& [name, value] : changes) {
    graph::Op op = good;
    op.attrs[name] = value;
    const absl::Status status = RecordSources::Open(op).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << name << ": " << status;
  }
  graph::Op other = good;
  other.type = "output";
  EXPECT_TRUE(absl::IsInvalidArgument(RecordSources::Open(other).status()));
}

TEST_F(RecordSourcesTest, ListsThatAreLeftOutHaveTheirStandard) {
  const std::string file = Write("a.csv", "1,2\n");
  graph::Op op =
      ReadOp({.sources = {file}, .fields = {{.name = "x", .item = {1}}, {.name = "y", .item = {1}}}});
  for (const char* name : {"sources_of", "begins", "scales", "format", "shuffle_seed", "skip_header"})
    op.attrs.erase(name);
  const auto sources = RecordSources::Open(op);
  ASSERT_TRUE(sources.ok()) << sources.status();
  EXPECT_EQ(Read(**sources, {0}).value()[1].data<float>()[0], 2);
}

TEST_F(RecordSourcesTest, DamageIsAnErrorThatNamesTheFile) {
  std::string bytes = data::RecordIo({{Raw<float>({1}), Raw<float>({2})}}, data::Compressor::kNone);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  const std::string file = Write("records", bytes);
  const absl::Status status = Read({.sources = {file}, .fields = {{.name = "x", .item = {1}}}}, {0}).status();
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_THAT(Message(status), HasSubstr(file));
}

}  // namespace
}  // namespace trainyard::ps
