#include "base/yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"
#include "base/text.h"

namespace trainyard {
namespace {

using ::testing::HasSubstr;

// The documents as JSON, one behind the other; or the error.
std::string Read(std::string_view yaml) {
  const auto documents = ParseYaml(yaml);
  if (!documents.ok()) return std::string(Message(documents.status()));
  std::string out;
  for (const Document& document : *documents) StrAppend(out, out.empty() ? "" : " ", PrintJson(document));
  return out;
}

std::string Print(std::string_view json) { return PrintYaml(ParseJson(json).value()); }

TEST(ParseYaml, GivesScalarsTheTypesThatKubectlGivesThem) {
  const std::pair<const char*, const char*> cases[] = {
      {"a", "\"a\""},
      {"\"1\"", "\"1\""},
      {"'true'", "\"true\""},
      {"", "null"},
      {"~", "null"},
      {"Null", "null"},
      {"nULL", "\"nULL\""},
      {"true", "true"},
      {"TRUE", "true"},
      {"yes", "true"},
      {"Off", "false"},
      {"y", "true"},
      {"n", "false"},
      {"oFF", "\"oFF\""},
      {"42", "42"},
      {"+1", "1"},
      {"-0", "0"},
      {"017", "15"},
      {"0o17", "15"},
      {"0o8", "\"0o8\""},
      {"089", "89"},
      {"0x1F", "31"},
      {"-0x1F", "-31"},
      {"0b11", "3"},
      {"1_000", "1000"},
      {"3.0", "3"},
      {"1e3", "1000"},
      {"1e", "\"1e\""},
      {"1e400", "\"1e400\""},
      {"-9223372036854775808", "-9223372036854775808"},
      {"18446744073709551615", "18446744073709551615"},
      {"2001-01-01", "\"2001-01-01\""},
      {"2001-01-01T10:00:00Z", "\"2001-01-01T10:00:00Z\""},
      {"12:30:45", "\"12:30:45\""},
      {"100m", "\"100m\""},
      {"1Gi", "\"1Gi\""},
      {"-a", "\"-a\""},
      {".", "\".\""},
      {"!!str 1", "\"1\""},
      {"!!int \"3\"", "3"},
      {"!!binary aGVsbG8=", "\"hello\""},
      {"!custom 5", "\"5\""},
      {"|\n  two\n  lines\n", "\"two\\nlines\\n\""},
      {">-\n  one\n  line\n", "\"one line\""},
  };
  for (const auto& [yaml, json] : cases) {
    EXPECT_EQ(Read(StrCat("k: ", yaml)), StrCat("{\"k\":", json, "}")) << yaml;
  }
}

TEST(ParseYaml, MakesTextsOfKeys) {
  EXPECT_EQ(Read("1: a\n1.5: b\ny: c\n'2': d\n"), R"({"1":"a","1.5":"b","true":"c","2":"d"})");
}

TEST(ParseYaml, LeavesEmptyDocumentsOfAStreamOut) {
  EXPECT_EQ(Read("---\na: 1\n---\n---\n# nothing\n--- [2]\n...\n---\nnull\n"), R"({"a":1} [2])");
  EXPECT_EQ(Read(""), "");
  EXPECT_EQ(Read("# only a comment\n"), "");
}

TEST(ParseYaml, ResolvesAliasesAndMerges) {
  EXPECT_EQ(Read("a: &x {p: 1, q: 2}\nb: *x\n"), R"({"a":{"p":1,"q":2},"b":{"p":1,"q":2}})");
  EXPECT_EQ(Read("- &x {p: 1, q: 2}\n- <<: *x\n  q: 3\n"), R"([{"p":1,"q":2},{"q":3,"p":1}])");
  EXPECT_EQ(Read("- &x {p: 1}\n- <<: [*x, {p: 9, r: 4}]\n"), R"([{"p":1},{"p":1,"r":4}])");
  EXPECT_EQ(Read("'<<': 1\n"), R"({"<<":1})");
}

TEST(ParseYaml, SaysWhatIsWrongAndWhere) {
  const std::pair<const char*, const char*> cases[] = {
      {"a: 1\nb: 2\na: 3\n", "key \"a\" is given twice at line 3, column 1"},
      {"a: [1, 2\nb: 3\n", "at line 3, column 1"},
      {"a: \"x", "at line 1, column 5"},
      {"a: b: c", "at line 1, column 5"},
      {"a: *nobody\n", "alias *nobody has no anchor before it at line 1, column 5"},
      {"&a [*a]\n", "alias *a has no anchor before it"},
      {"a: 1\n<<: 3\n", "<< takes a mapping or a sequence of them at line 2"},
      {"{[1]: 2}", "a key that is no text at line 1, column 2"},
      {"~: 1", "a key that is no text at line 1, column 1"},
      {"a: .inf", ".inf is a number that JSON does not have"},
      {"a: !!int x", "\"x\" is tagged as a whole number and is none"},
      {"a: \"\xff\"", "at line 1"},
  };
  for (const auto& [yaml, error] : cases) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseYaml(yaml).status())) << yaml;
    EXPECT_THAT(Read(yaml), HasSubstr(error)) << yaml;
  }
  EXPECT_THAT(Read(std::string_view("a: x\0b: y\n", 10)), HasSubstr("a NUL at byte 5"));
}

TEST(ParseYaml, RefusesAliasesThatGrowWithoutBound) {
  std::string laughs = "a: &a [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n";
  for (char c = 'b'; c < 'k'; ++c) {
    StrAppend(laughs, c, ": &", c, " [");
    for (int i = 0; i < 9; ++i) StrAppend(laughs, i == 0 ? "*" : ", *", static_cast<char>(c - 1));
    laughs += "]\n";
  }
  EXPECT_THAT(Read(laughs), HasSubstr("its aliases grow to more than 16 MiB at line"));
}

TEST(ParseYaml, BoundsTheDepthAlsoOfWhatAliasesNest) {
  EXPECT_EQ(Read(StrCat(std::string(128, '['), std::string(128, ']'))).size(), 256u);
  EXPECT_THAT(Read(std::string(100000, '[')), HasSubstr("nested deeper than 128 at line 1, column 129"));
  std::string chain;
  for (int i = 0; i < 10; ++i) {
    StrAppend(chain, "a", i, ": &a", i, " ", std::string(50, '['));
    if (i > 0) StrAppend(chain, "*a", i - 1);
    StrAppend(chain, std::string(50, ']'), "\n");
  }
  EXPECT_THAT(Read(chain), HasSubstr("nested deeper than 128 at line 3"));
}

TEST(ParseJsonOrYaml, TakesEitherAndShowsTheErrorOfWhatItLooksLike) {
  const auto one = [](std::string_view text) { return PrintJson(ParseJsonOrYaml(text).value().at(0)); };
  EXPECT_EQ(one(" {\"a\": \"yes\"}"), R"({"a":"yes"})");
  EXPECT_EQ(one("{a: yes}"), R"({"a":true})");
  EXPECT_EQ(one("[1]"), "[1]");
  EXPECT_EQ(one("a: 1"), R"({"a":1})");
  EXPECT_THAT(Message(ParseJsonOrYaml("{\"a\": ").status()), HasSubstr("not valid JSON"));
  EXPECT_THAT(Message(ParseJsonOrYaml("a: [").status()), HasSubstr("not valid YAML"));
}

TEST(PrintYaml, PrintsAsKubectlDoes) {
  EXPECT_EQ(Print(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"x","labels":{}},
                      "spec":{"containers":[{"name":"c","args":["-v","--x=1"]},{"name":"d"}],"list":[],
                      "nested":[[1,2],[]],"none":null,"half":0.5}})"),
            "apiVersion: v1\n"
            "kind: Pod\n"
            "metadata:\n"
            "  name: x\n"
            "  labels: {}\n"
            "spec:\n"
            "  containers:\n"
            "  - name: c\n"
            "    args:\n"
            "    - -v\n"
            "    - --x=1\n"
            "  - name: d\n"
            "  list: []\n"
            "  nested:\n"
            "  - - 1\n"
            "    - 2\n"
            "  - []\n"
            "  none: null\n"
            "  half: 0.5\n");
}

TEST(PrintYaml, QuotesWhatWouldBeReadAsSomethingElse) {
  const std::pair<const char*, const char*> cases[] = {
      {"\"\"", "\"\""},
      {"\"yes\"", "\"yes\""},
      {"\"1\"", "\"1\""},
      {"\"2024-01-01T00:00:00Z\"", "\"2024-01-01T00:00:00Z\""},
      {"\"12:30\"", "\"12:30\""},
      {"\"<<\"", "\"<<\""},
      {"\" a\"", "' a'"},
      {"\"a: b\"", "'a: b'"},
      {"\"a:b\"", "a:b"},
      {"\"it's\"", "it's"},
      {"\"'\"", "''''"},
      {"\"*\"", "'*'"},
      {"\"a #b\"", "'a #b'"},
      {"\"a\\tb\"", "\"a\\tb\""},
      {"\"\\u00e9\"", "\xc3\xa9"},
      {"\"\\ud83d\\ude00\"", "\"\\U0001F600\""},
      {"\"a\\nb\"", "|-\n  a\n  b"},
      {"\"a\\n\"", "|\n  a"},
      {"\"a\\n\\n\"", "|+\n  a\n"},
      {"\" a\\nb\"", "|2-\n   a\n  b"},
      {"\"a \\nb\"", "\"a \\nb\""},
      {"1e25", "1e+25"},
      {"1.5", "1.5"},
  };
  for (const auto& [json, yaml] : cases) {
    EXPECT_EQ(Print(StrCat("{\"k\":", json, "}")), StrCat("k: ", yaml, "\n")) << json;
    EXPECT_EQ(ParseYaml(StrCat("k: ", yaml, "\n")).value().at(0),
              ParseJson(StrCat("{\"k\":", json, "}")).value());
  }
}

TEST(PrintYaml, FoldsLongTextsAndGivesThemBack) {
  std::string words;
  for (int i = 0; i < 40; ++i) StrAppend(words, i == 0 ? "" : " ", "word", i);
  for (const std::string& text :
       {words, StrCat("# ", words), StrCat(words, "\t"), StrCat(words, "  ", words)}) {
    const Document document(Object{{"text", text}});
    const std::string yaml = PrintYaml(document);
    for (const std::string_view line : Split(yaml, '\n')) EXPECT_LE(line.size(), 90u);
    EXPECT_EQ(ParseYaml(yaml).value().at(0), document);
  }
}

TEST(PrintYaml, WritesKeysThatAreLongOrHaveLinesSoThatTheyComeBack) {
  for (const std::string& key : {std::string(200, 'k'), std::string("two\nlines"), std::string("true")}) {
    for (const char* value : {"1", "[1,{\"a\":2}]", "{\"a\":[3]}", "{}"}) {
      const Document document(Object{{key, ParseJson(value).value()}});
      EXPECT_EQ(ParseYaml(PrintYaml(document)).value().at(0), document) << PrintYaml(document);
    }
  }
}

}  // namespace
}  // namespace trainyard
