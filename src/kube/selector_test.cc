#include "kube/selector.h"

#include <map>

#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::kube {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Values = std::map<std::string, std::string, std::less<>>;

auto LookupIn(const Values& values) {
  return [&](std::string_view key) -> std::optional<std::string_view> {
    const auto found = values.find(key);
    if (found == values.end()) return std::nullopt;
    return found->second;
  };
}

LabelSelector Labels(std::string_view text) {
  auto selector = LabelSelector::Parse(text);
  EXPECT_TRUE(selector.ok()) << selector.status();
  return selector.ok() ? *selector : LabelSelector::Nothing();
}

bool Matches(std::string_view selector, const Values& labels) {
  return Labels(selector).Matches(LookupIn(labels));
}

std::string ErrorOf(std::string_view text) {
  const auto selector = LabelSelector::Parse(text);
  EXPECT_FALSE(selector.ok()) << text << " is taken as " << selector->Print();
  return std::string(Message(selector.status()));
}

TEST(LabelSelector, MatchesByEachOperator) {
  const struct {
    const char* selector;
    Values labels;
    bool matches;
  } kCases[] = {
      {"", {}, true},
      {"a=b", {{"a", "b"}}, true},
      {"a=b", {{"a", "c"}}, false},
      {"a=b", {}, false},
      {"a==b", {{"a", "b"}}, true},
      {"a!=b", {{"a", "c"}}, true},
      {"a!=b", {{"a", "b"}}, false},
      {"a!=b", {}, true},
      {"a in (b,c)", {{"a", "c"}}, true},
      {"a in (b,c)", {{"a", "d"}}, false},
      {"a in (b,c)", {}, false},
      {"a notin (b)", {{"a", "b"}}, false},
      {"a notin (b)", {{"a", "c"}}, true},
      {"a notin (b)", {}, true},
      {"a", {{"a", ""}}, true},
      {"a", {}, false},
      {"!a", {}, true},
      {"!a", {{"a", ""}}, false},
      {"a=", {{"a", ""}}, true},
      {"a=", {}, false},
      {"a in ()", {{"a", ""}}, true},
      {"a in (x,)", {{"a", ""}}, true},
      {"a>5", {{"a", "6"}}, true},
      {"a>5", {{"a", "5"}}, false},
      {"a>5", {{"a", "many"}}, false},
      {"a<5", {{"a", "4"}}, true},
      {"a<5", {}, false},
      {"a=b,c!=d", {{"a", "b"}}, true},
      {"a=b,c!=d", {{"a", "b"}, {"c", "d"}}, false},
      {"a,!b", {{"a", "1"}, {"b", "1"}}, false},
  };
  for (const auto& c : kCases) EXPECT_EQ(Matches(c.selector, c.labels), c.matches) << c.selector;
}

TEST(LabelSelector, PrintsOneTextForAllWaysToWriteIt) {
  EXPECT_EQ(Labels("  c != d , a==b ").Print(), "a=b,c!=d");
  EXPECT_EQ(Labels("x in ( foo ,,baz ),y,z notin ()").Print(), "x in (,baz,foo),y,z notin ()");
  EXPECT_EQ(Labels("x in(b,a,b)").Print(), "x in (a,b)");
  EXPECT_EQ(Labels("!example.com/a,b").Print(), "b,!example.com/a");
  EXPECT_EQ(Labels("a>1,b<2").Print(), "a>1,b<2");
  EXPECT_EQ(Labels("in in (in),notin notin (notin)").Print(), "in in (in),notin notin (notin)");
  for (const char* text : {"", "a=b,c!=d", "x in (,a,b),y", "!z"}) {
    EXPECT_EQ(Labels(Labels(text).Print()), Labels(text)) << text;
  }
}

TEST(LabelSelector, NamesThePartThatIsWrong) {
  EXPECT_THAT(ErrorOf("a b"), AllOf(HasSubstr("\"b\" at character 3"), HasSubstr("notin")));
  EXPECT_THAT(ErrorOf("a=b,"), HasSubstr("the end at character 5 where a label key"));
  EXPECT_THAT(ErrorOf(",a"), HasSubstr("\",\" at character 1"));
  EXPECT_THAT(ErrorOf("a in b"), HasSubstr("where '(' should be"));
  EXPECT_THAT(ErrorOf("a in (b c)"), HasSubstr("\"c\" at character 9"));
  EXPECT_THAT(ErrorOf("a in (b"), HasSubstr("the end at character 8"));
  EXPECT_THAT(ErrorOf("a===b"), HasSubstr("\"=\" at character 4"));
  EXPECT_THAT(ErrorOf("a=!b"), HasSubstr("\"!\" at character 3"));
  EXPECT_THAT(ErrorOf("!!a"), HasSubstr("where a label key"));
  EXPECT_THAT(ErrorOf("!a=b"), HasSubstr("\"=\""));
  EXPECT_THAT(ErrorOf("a=b=c"), HasSubstr("\"=\" at character 4"));
  EXPECT_THAT(ErrorOf("a>b"), HasSubstr("no whole number"));
  EXPECT_THAT(ErrorOf("a>"), HasSubstr("no whole number"));
  EXPECT_THAT(ErrorOf("-a=b"), HasSubstr("the label key \"-a\" must"));
  EXPECT_THAT(ErrorOf("a=b/c"), HasSubstr("the value \"b/c\" of label \"a\" must"));
  EXPECT_THAT(ErrorOf("a/b/c"), HasSubstr("one '/'"));
}

TEST(LabelSelector, ReadsTheObjectThatManifestsHave) {
  const auto parsed = LabelSelector::FromDocument(*ParseJson(R"({
    "matchLabels": {"app": "x"},
    "matchExpressions": [
      {"key": "tier", "operator": "In", "values": ["b", "a"]},
      {"key": "old", "operator": "DoesNotExist"},
      {"key": "env", "operator": "NotIn", "values": ["dev"]},
      {"key": "run", "operator": "Exists", "values": []}]})"));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->Print(), "app=x,env notin (dev),!old,run,tier in (a,b)");
  EXPECT_TRUE(LabelSelector::FromDocument(*ParseJson("{}"))->MatchesAll());
}

TEST(LabelSelector, ThatIsNullMatchesNothing) {
  const auto nothing = LabelSelector::FromDocument(Document(nullptr));
  ASSERT_TRUE(nothing.ok());
  EXPECT_FALSE(nothing->Matches(nullptr));
  EXPECT_FALSE(Matches(nothing->Print(), {})) << "nor does the text that it prints";
  EXPECT_FALSE(Matches(nothing->Print(), {{"none", "x"}}));
}

TEST(LabelSelector, NamesTheFieldOfAnObjectThatIsWrong) {
  const auto error = [](std::string_view json) {
    const auto selector = LabelSelector::FromDocument(*ParseJson(json));
    EXPECT_FALSE(selector.ok()) << json;
    return std::string(Message(selector.status()));
  };
  EXPECT_THAT(error(R"({"matchLabels": {"a": 1}})"), HasSubstr("matchLabels.a: must be a text"));
  EXPECT_THAT(error(R"({"matchLabels": {"-": "x"}})"), HasSubstr("label key \"-\""));
  EXPECT_THAT(error(R"({"matchExpressions": [{"key": "a", "operator": "Is"}]})"),
              HasSubstr("matchExpressions[0].operator: \"Is\""));
  EXPECT_THAT(error(R"({"matchExpressions": [{"key": "a", "operator": "In"}]})"),
              HasSubstr("matchExpressions[0].values: must be given"));
  EXPECT_THAT(error(R"({"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]})"),
              HasSubstr("must not be given"));
  EXPECT_THAT(error(R"({"matchExpressions": [{"operator": "Exists"}]})"), HasSubstr("matchExpressions[0]"));
  EXPECT_THAT(error(R"({"matchExpressions": {}})"), HasSubstr("must be a list"));
  EXPECT_THAT(error("[]"), HasSubstr("must be an object"));
}

TEST(LabelSelector, MatchesTheLabelsOfADocument) {
  const Document labels = *ParseJson(R"({"a": "b"})");
  EXPECT_TRUE(Labels("a=b").Matches(&labels.get_object()));
  EXPECT_FALSE(Labels("a=c").Matches(&labels.get_object()));
  EXPECT_FALSE(Labels("a").Matches(nullptr));
}

FieldSelector Fields(std::string_view text) {
  auto selector = FieldSelector::Parse(text);
  EXPECT_TRUE(selector.ok()) << selector.status();
  return selector.ok() ? *selector : FieldSelector();
}

TEST(FieldSelector, MatchesWhatIsAndWhatIsNot) {
  const Values pod = {{"metadata.name", "x"}, {"status.phase", "Running"}};
  const auto matches = [&](std::string_view text) { return Fields(text).Matches(LookupIn(pod)); };
  EXPECT_TRUE(matches(""));
  EXPECT_TRUE(matches("metadata.name=x"));
  EXPECT_TRUE(matches("metadata.name==x,status.phase!=Failed"));
  EXPECT_FALSE(matches("metadata.name=x,status.phase!=Running"));
  EXPECT_TRUE(matches("spec.nodeName=")) << "what is not there is empty";
  EXPECT_FALSE(matches("spec.nodeName!="));
}

TEST(FieldSelector, KeepsWhatAValueEscapes) {
  const FieldSelector selector = Fields(R"(a=b\,c\=d\\,e!=f)");
  EXPECT_THAT(selector.requirements(), testing::ElementsAre(FieldRequirement{"a", true, "b,c=d\\"},
                                                            FieldRequirement{"e", false, "f"}));
  EXPECT_EQ(Fields(selector.Print()), selector);
}

TEST(FieldSelector, TellsTheValueThatAFieldMustHave) {
  EXPECT_EQ(Fields("metadata.name=x").RequiredValue("metadata.name"), "x");
  EXPECT_EQ(Fields("metadata.name!=x").RequiredValue("metadata.name"), std::nullopt);
  EXPECT_EQ(Fields("a=b").RequiredValue("metadata.name"), std::nullopt);
}

TEST(FieldSelector, NamesThePartThatIsWrong) {
  const auto error = [](std::string_view text) {
    const auto selector = FieldSelector::Parse(text);
    EXPECT_FALSE(selector.ok()) << text;
    return std::string(Message(selector.status()));
  };
  EXPECT_THAT(error("a=b,status"), HasSubstr("\"status\": must be field=value"));
  EXPECT_THAT(error("=b"), HasSubstr("has no field"));
  EXPECT_THAT(error("a=b=c"), HasSubstr("'=' in a value"));
  EXPECT_THAT(error("a=b\\c"), HasSubstr("must stand before"));
  EXPECT_THAT(error("a=b\\"), HasSubstr("must stand before"));
}

}  // namespace
}  // namespace trainyard::kube
