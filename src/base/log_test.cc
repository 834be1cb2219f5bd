#include "base/log.h"

#include "base/status.h"
#include "gtest/gtest.h"

namespace trainyard::log {
namespace {

const absl::Time kNow = absl::FromUnixMillis(1500);

TEST(RenderLog, WritesFieldsThatAProgramCanSplitAgain) {
  EXPECT_EQ(
      Render(Format::kText, kNow, Level::kInfo, "opened store",
             {{"path", "/a b"},
              {"revision", 42},
              {"fresh", true},
              {"none", ""},
              {"took", absl::Milliseconds(5)}}),
      R"(1970-01-01T00:00:01.500Z INFO  opened store path="/a b" revision=42 fresh=true none="" took=5ms)");
}

TEST(RenderLog, KeepsNumbersAndEscapesTextInJson) {
  EXPECT_EQ(Render(Format::kJson, kNow, Level::kError, "a\nb", {{"n", 1}, {"s", "\"q\""}}),
            R"({"time":"1970-01-01T00:00:01.500Z","level":"error","msg":"a\nb","n":1,"s":"\"q\""})");
}

TEST(ParseLevel, AnswersAnUnknownWordWithTheKnownOnes) {
  EXPECT_EQ(*ParseLevel("warn"), Level::kWarn);
  EXPECT_EQ(Message(ParseLevel("loud").status()),
            "unknown log level 'loud': use debug, info, warn, error or off");
  EXPECT_EQ(Message(ParseFormat("xml").status()), "unknown log format 'xml': use text or json");
}

TEST(Configure, SilencesWhatIsBelowTheLevel) {
  Configure(Level::kWarn, Format::kText);
  testing::internal::CaptureStderr();
  Info("hidden");
  Warn("shown", {{"k", "v"}});
  const std::string printed = testing::internal::GetCapturedStderr();
  Configure(Level::kInfo, Format::kText);
  EXPECT_EQ(printed.find("hidden"), std::string::npos);
  EXPECT_NE(printed.find("WARN  shown k=v\n"), std::string::npos);
}

}  // namespace
}  // namespace trainyard::log
