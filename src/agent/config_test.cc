#include "agent/config.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::agent {
namespace {

using ::testing::HasSubstr;

ScriptConfig Taken(std::string_view body) {
  const ParsedConfig parsed = ParseConfig(body);
  EXPECT_TRUE(parsed.config) << body << ": " << parsed.wrong;
  return parsed.config.value_or(ScriptConfig{});
}
std::string Wrong(std::string_view body) {
  const ParsedConfig parsed = ParseConfig(body);
  EXPECT_FALSE(parsed.config) << body;
  return parsed.wrong;
}

TEST(ParseConfig, TakesEveryField) {
  EXPECT_EQ(Taken(R"({"attempt": 3, "env": {"TF_CONFIG": "{\"a\": 1}", "N": ""}, "command": ["sh", "-c", ""],
                      "workingDir": "/app"})"),
            (ScriptConfig{.attempt = 3,
                          .env = {{"TF_CONFIG", "{\"a\": 1}"}, {"N", ""}},
                          .command = {"sh", "-c", ""},
                          .working_dir = "/app"}));
  EXPECT_EQ(Taken(R"({"attempt": 2, "command": []})"), (ScriptConfig{.attempt = 2}));
}

TEST(ParseConfig, TakesAFlatObjectOfTextsForTheEnvironment) {
  EXPECT_EQ(Taken(R"({"TF_CONFIG": "x", "NUM_WORKERS": "4", "command": "mine"})"),
            (ScriptConfig{.env = {{"TF_CONFIG", "x"}, {"NUM_WORKERS", "4"}, {"command", "mine"}}}));
  EXPECT_EQ(Taken("{}"), ScriptConfig{});
}

TEST(ParseConfig, SaysWhatIsWrong) {
  EXPECT_THAT(Wrong(""), HasSubstr("no JSON"));
  EXPECT_THAT(Wrong("{\"a\": \"\xff\"}"), HasSubstr("no JSON"));
  EXPECT_THAT(Wrong("{} {}"), HasSubstr("no JSON"));
  EXPECT_THAT(Wrong("[]"), HasSubstr("JSON object"));
  EXPECT_THAT(Wrong(R"({"NUM_WORKERS": 4})"), HasSubstr("no field 'NUM_WORKERS'"));
  EXPECT_THAT(Wrong(R"({"env": {}, "comand": []})"), HasSubstr("no field 'comand'"));
  EXPECT_THAT(Wrong(R"({"env": "x"})"), HasSubstr("env is an object"));
  EXPECT_THAT(Wrong(R"({"env": {"N": 4}})"), HasSubstr("the variable N must be text"));
  EXPECT_THAT(Wrong(R"({"env": {"": "x"}})"), HasSubstr("name is empty"));
  EXPECT_THAT(Wrong(R"({"env": {"A=B": "x"}})"), HasSubstr("name is empty or holds ="));
  EXPECT_THAT(Wrong(R"({"A": "x\u0000y"})"), HasSubstr("the variable A holds a zero"));
  EXPECT_THAT(Wrong(R"({"TRAINYARD_AGENT_TOKEN": "x"})"), HasSubstr("agent's own"));
  EXPECT_THAT(Wrong(R"({"env": {}, "command": "sh"})"), HasSubstr("command is a list"));
  EXPECT_THAT(Wrong(R"({"env": {}, "command": [1]})"), HasSubstr("an item of command must be text"));
  EXPECT_THAT(Wrong(R"({"env": {}, "command": [""]})"), HasSubstr("names no program"));
  EXPECT_THAT(Wrong(R"({"env": {}, "workingDir": 1})"), HasSubstr("workingDir must be text"));
  for (const std::string_view attempt : {"0", "-1", "1.5", "\"1\"", "null", "1e400", "9223372036854775808"}) {
    EXPECT_NE(Wrong("{\"env\": {}, \"attempt\": " + std::string(attempt) + "}"), "") << attempt;
  }
}

TEST(ParseConfig, RefusesAVariableThatTheKernelWouldNotTake) {
  const std::string fits(131'071 - 2, 'x');
  EXPECT_EQ(Taken("{\"A\": \"" + fits + "\"}").env["A"].size(), fits.size());
  EXPECT_THAT(Wrong("{\"A\": \"x" + fits + "\"}"), HasSubstr("the variable A has more bytes"));
}

TEST(ParseConfig, BoundsTheDepth) { EXPECT_NE(Wrong(std::string(100'000, '[')), ""); }

}  // namespace
}  // namespace trainyard::agent
