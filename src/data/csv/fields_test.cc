#include "data/csv/fields.h"

#include "base/status.h"
#include "base/text.h"
#include "data/data_testing.h"
#include "data/open.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rapidcheck/gtest.h"
#include "tests/support/temp_folder.h"

namespace trainyard::data {
namespace {

using ::testing::HasSubstr;

Records Split(std::string_view record, const CsvOptions& options = {}) {
  CsvFields fields(options);
  const auto split = fields.Split(record).value();
  return {split.begin(), split.end()};
}

std::string WhyNot(std::string_view record) {
  return std::string(Message(CsvFields().Split(record).status()));
}

TEST(CsvFields, AreWhatIsBetweenDelimiters) {
  EXPECT_EQ(Split("a,b c,,d"), (Records{"a", "b c", "", "d"}));
  EXPECT_EQ(Split(","), (Records{"", ""}));
  EXPECT_EQ(Split(""), Records{""});
  EXPECT_EQ(Split("a\tb,c", {.delimiter = '\t'}), (Records{"a", "b,c"}));
}

TEST(CsvFields, LoseTheirQuotes) {
  EXPECT_EQ(Split("\"a,b\",\"c\nd\",\"\""), (Records{"a,b", "c\nd", ""}));
  EXPECT_EQ(Split("\"say \"\"hi\"\"\",\"\"\"\""), (Records{"say \"hi\"", "\""}));
  EXPECT_EQ(Split("5\" disk,a\"\""), (Records{"5\" disk", "a\"\""}));
  EXPECT_EQ(Split("\"a\",\"b", {.quotes = false}), (Records{"\"a\"", "\"b"}));
}

TEST(CsvFields, AreNotGuessed) {
  EXPECT_EQ(WhyNot("a,\"b"), "field 2: its quote is not closed");
  EXPECT_EQ(WhyNot("\"a\" ,b"), "field 1: ' ' stands between its closing quote and the next delimiter");
}

TEST(CsvFields, AreInvalidWithTheNameOfTheFileAndTheLine) {
  const testing_support::TempFolder folder;
  WriteBytes(folder / "train.csv", "x,y\n1,\"2\n3\"\n4,\"5\"6\n");
  const auto source = OpenRecords({folder / "train.csv"}, {.csv = {.header = true}}).value();
  const Records records = ReadAll(*source).value();
  CsvFields fields;
  EXPECT_TRUE(fields.Split(records[0], *source, 0).ok());
  const auto split = fields.Split(records[1], *source, 1);
  EXPECT_EQ(split.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(split.status()),
              HasSubstr(StrCat(folder / "train.csv", ": line 4: field 2: '6' stands")));
}

RC_GTEST_PROP(CsvFieldsProperties, ComeBackAsTheyWereQuoted, ()) {
  const auto texts = *rc::gen::nonEmpty(
      rc::gen::container<Records>(rc::gen::container<std::string>(rc::gen::element('"', '\n', ',', 'a'))));
  std::string record;
  for (const std::string& text : texts) {
    if (&text != &texts.front()) record += ',';
    record += '"';
    for (const char c : text) record.append(c == '"' ? 2 : 1, c);
    record += '"';
  }
  RC_ASSERT(Split(record) == texts);
  RC_ASSERT(FindLine(record + "\nx", 0, {}).end == record.size());
}

}  // namespace
}  // namespace trainyard::data
