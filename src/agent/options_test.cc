#include "agent/options.h"

#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::agent {
namespace {

using ::testing::HasSubstr;

ParsedOptions Parse(const std::vector<std::string>& args,
                    const std::map<std::string, std::string>& environment = {}) {
  return ParseOptions(args, [&](const std::string& name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

TEST(ParseOptions, TakesFlagsAndBeforeThemTheEnvironment) {
  const ParsedOptions parsed =
      Parse({"--listen", "[::]:0", "--script=train.sh", "--term-grace", "2s"},
            {{"TRAINYARD_AGENT_TERM_GRACE", "5s"}, {"TRAINYARD_AGENT_LOG_BYTES", "1Mi"}});
  EXPECT_EQ(parsed.wrong, "");
  EXPECT_EQ(parsed.options.listen, "[::]:0");
  EXPECT_EQ(parsed.options.script, "train.sh");
  EXPECT_EQ(parsed.options.term_grace_millis, 2'000u);
  EXPECT_EQ(parsed.options.log_bytes, 1u << 20);
  EXPECT_EQ(Parse({}).options.listen, "0.0.0.0:7896");
}

TEST(ParseOptions, KnowsWhatElseItCanDo) {
  EXPECT_EQ(Parse({"--help"}).options.action, Action::kHelp);
  EXPECT_EQ(Parse({"--version", "--whatever"}).options.action, Action::kVersion);
  EXPECT_EQ(Parse({"install", "--to", "/x"}).options.action, Action::kInstall);
  EXPECT_EQ(Parse({"install"}).wrong, "install needs --to FILE");
  const ParsedOptions keep = Parse({"keep", "--restarts", "0", "--", "sleep", "--to", "1"});
  EXPECT_EQ(keep.options.action, Action::kKeep);
  EXPECT_EQ(keep.options.restarts, 0U);
  EXPECT_EQ(keep.options.command, (std::vector<std::string>{"sleep", "--to", "1"}));
  EXPECT_EQ(Parse({"keep", "--", "sleep"}).options.restarts, std::nullopt);
}

TEST(ParseOptions, SaysWhatIsWrong) {
  EXPECT_THAT(Parse({"--none", "x"}).wrong, HasSubstr("unknown argument '--none'"));
  EXPECT_THAT(Parse({"install2"}).wrong, HasSubstr("unknown argument 'install2'"));
  EXPECT_THAT(Parse({"--listen"}).wrong, HasSubstr("--listen needs a value"));
  EXPECT_THAT(Parse({"--term-grace", "soon"}).wrong, HasSubstr("'soon' is no time"));
  EXPECT_THAT(Parse({"--log-bytes", "3"}).wrong, HasSubstr("'3' is no number of bytes"));
  EXPECT_THAT(Parse({"keep", "--restarts", "-1", "--", "x"}).wrong, HasSubstr("'-1' is no number: write 10"));
  EXPECT_THAT(Parse({}, {{"TRAINYARD_AGENT_IDLE_TIMEOUT", "x"}}).wrong,
              HasSubstr("$TRAINYARD_AGENT_IDLE_TIMEOUT 'x' is no time"));
}

TEST(ParseMillis, TakesUnits) {
  EXPECT_EQ(ParseMillis("8"), 8'000u);
  EXPECT_EQ(ParseMillis("0.5s"), 500u);
  EXPECT_EQ(ParseMillis("20ms"), 20u);
  EXPECT_EQ(ParseMillis("2m"), 120'000u);
  for (const char* text : {"", "s", "-1", "1h", "nan", "inf", "1e99", "1 s"})
    EXPECT_EQ(ParseMillis(text), std::nullopt) << text;
}

TEST(ParseBytes, TakesUnits) {
  EXPECT_EQ(ParseBytes("100"), 100u);
  EXPECT_EQ(ParseBytes("64Mi"), 64u << 20);
  for (const char* text : {"", "Mi", "-1", "1MB", "99999999999Gi"})
    EXPECT_EQ(ParseBytes(text), std::nullopt) << text;
}

TEST(Help, NamesEveryFlag) {
  for (const char* flag :
       {"--listen", "--token-file", "--script", "--python", "--working-dir", "--state-dir", "--log-bytes",
        "--term-grace", "--idle-timeout", "--request-timeout", "--to", "--restarts", "--help", "--version"}) {
    EXPECT_THAT(Help(), HasSubstr(flag));
  }
}

}  // namespace
}  // namespace trainyard::agent
