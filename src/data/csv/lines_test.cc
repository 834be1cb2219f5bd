#include "data/csv/lines.h"

#include "base/status.h"
#include "base/text.h"
#include "data/data_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rapidcheck/gtest.h"

namespace trainyard::data {
namespace {

using ::testing::HasSubstr;

// The records, by asking for each of them.
Records RecordsOf(std::string_view text, const CsvOptions& options = {}) {
  const CsvIndex index = CsvIndex::Build(text, options).value();
  Records records;
  for (std::uint64_t number = 0; number < index.Count(); ++number) {
    CsvIndex::Place place = index.Before(number);
    while (place.record < number) Advance(place, FindLine(text, place.offset, options));
    records.emplace_back(text.substr(place.offset, FindLine(text, place.offset, options).end - place.offset));
  }
  return records;
}

TEST(CsvIndex, FindsLinesWhateverEndsThem) {
  EXPECT_EQ(RecordsOf("a,b\nc,d\n"), (Records{"a,b", "c,d"}));
  EXPECT_EQ(RecordsOf("a,b\r\nc,d"), (Records{"a,b", "c,d"}));
  EXPECT_EQ(RecordsOf("a\rb\n"), (Records{"a\rb"}));
  EXPECT_EQ(RecordsOf(""), Records{});
}

TEST(CsvIndex, KeepsEmptyLines) {
  EXPECT_EQ(RecordsOf("\n\r\n\na"), (Records{"", "", "", "a"}));
  EXPECT_EQ(RecordsOf("\n"), Records{""});
}

TEST(CsvIndex, KeepsLineEndsBetweenQuotes) {
  EXPECT_EQ(RecordsOf("a,\"b\nc\"\nd\n"), (Records{"a,\"b\nc\"", "d"}));
  EXPECT_EQ(RecordsOf("\"a\r\n\"\"\nb\",c\r\nd"), (Records{"\"a\r\n\"\"\nb\",c", "d"}));
  EXPECT_EQ(RecordsOf("\"\"\n\"\"\"\n\"\nx"), (Records{"\"\"", "\"\"\"\n\"", "x"}));
}

TEST(CsvIndex, TakesAQuoteWithinAFieldForAByte) {
  EXPECT_EQ(RecordsOf("5\" disk,a\n3\" disk,b\n"), (Records{"5\" disk,a", "3\" disk,b"}));
  EXPECT_EQ(RecordsOf("\"a\"b\"\nc"), (Records{"\"a\"b\"", "c"}));
  EXPECT_EQ(RecordsOf("a;\"b\nc\"", {.delimiter = ';'}), Records{"a;\"b\nc\""});
}

TEST(CsvIndex, TakesEveryQuoteForAByteWhenToldSo) {
  EXPECT_EQ(RecordsOf("\"a\nb\"", {.quotes = false}), (Records{"\"a", "b\""}));
}

TEST(CsvIndex, SkipsTheHeaderAndTheByteOrderMark) {
  EXPECT_EQ(RecordsOf("x,y\n1,2\n", {.header = true}), Records{"1,2"});
  EXPECT_EQ(RecordsOf("\"x\n\",y\n1,2\n", {.header = true}), Records{"1,2"});
  EXPECT_EQ(RecordsOf("x,y", {.header = true}), Records{});
  EXPECT_EQ(RecordsOf("\xef\xbb\xbf\"a\n\"\n"), Records{"\"a\n\""});
}

TEST(CsvIndex, NamesTheQuoteThatIsNeverClosed) {
  const auto index = CsvIndex::Build("a\nb,\"c\n\"\nd,\"e\nf\n", {});
  EXPECT_EQ(index.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Message(index.status()),
              HasSubstr("damaged at byte 9: a quote is opened in the record of line 4 and never closed"));
}

TEST(CsvIndex, FindsEachOfManyRecords) {
  std::string text;
  Records records;
  for (int i = 0; i < 1000; ++i) {
    records.push_back(i % 3 == 0 ? StrCat("\"", i, "\n\"") : StrCat(i));
    StrAppend(text, records.back(), "\n");
  }
  EXPECT_EQ(RecordsOf(text), records);
  EXPECT_EQ(CsvIndex::Build(text, {}).value().Before(128).line, 128u + 43u + 1u);
}

RC_GTEST_PROP(CsvIndexProperties, EveryByteIsInARecordOrALinesEnd, ()) {
  const auto text = *rc::gen::container<std::string>(rc::gen::element('"', '\n', ',', '\r', 'a'));
  const CsvOptions options{.quotes = *rc::gen::arbitrary<bool>()};
  const auto index = CsvIndex::Build(text, options);
  if (!index.ok()) {
    RC_ASSERT(options.quotes);
    return;
  }
  std::size_t at = 0;
  std::uint64_t count = 0;
  for (; at < text.size(); ++count) {
    const CsvLine line = FindLine(text, at, options);
    RC_ASSERT(line.next > at);
    const std::string end = text.substr(line.end, line.next - line.end);
    RC_ASSERT((end == "\n" || end == "\r\n" || (end.empty() && line.next == text.size())));
    at = line.next;
  }
  RC_ASSERT(count == index->Count());
}

}  // namespace
}  // namespace trainyard::data
