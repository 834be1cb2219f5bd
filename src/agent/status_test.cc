#include "agent/status.h"

#include "agent/json_text.h"
#include "base/document.h"
#include "gtest/gtest.h"

namespace trainyard::agent {
namespace {

TEST(PrintExit, TellsAnExitFromASignal) {
  EXPECT_EQ(PrintExit(ScriptExit::FromWait(0)), "exited 0");
  EXPECT_EQ(PrintExit(ScriptExit::FromWait(3 << 8)), "exited 3");
  EXPECT_EQ(PrintExit(ScriptExit::FromWait(137 << 8)), "exited 137");
  EXPECT_EQ(PrintExit(ScriptExit::FromWait(9)), "was killed by signal 9 (SIGKILL)");
  EXPECT_EQ(PrintExit(ScriptExit::FromWait(11 | 0x80)), "was killed by signal 11 (SIGSEGV)");
  EXPECT_EQ(PrintExit(ScriptExit::FromWait(40)), "was killed by signal 40");
}

TEST(ExitCodeOf, IsTheScripts) {
  EXPECT_EQ(ExitCodeOf({}), 0) << "nothing was run";
  EXPECT_EQ(ExitCodeOf({.state = State::kExited, .exit = {.code = 3}}), 3);
  EXPECT_EQ(ExitCodeOf({.state = State::kExited, .exit = {.signal = 15}}), 143);
  EXPECT_EQ(ExitCodeOf({.state = State::kFailed}), 127) << "it could not be started";
}

TEST(PrintStatus, IsJsonWithNullForWhatIsNotKnown) {
  const auto idle = *ParseJson(PrintStatus({.incarnation = "ab"}));
  EXPECT_EQ(idle.at("state"), "idle");
  for (const char* field : {"attempt", "pid", "exitCode", "signal", "startedAt", "endedAt"}) {
    EXPECT_TRUE(idle.at(field).is_null()) << field;
  }
  const auto ended = *ParseJson(PrintStatus({.incarnation = "ab",
                                             .version = 4,
                                             .state = State::kExited,
                                             .attempt = 2,
                                             .exit = {.signal = 9},
                                             .reason = "it's \"over\"\n\xff",
                                             .started_millis = 1'700'000'000'123,
                                             .ended_millis = 1'700'000'000'007,
                                             .log_bytes = 10,
                                             .log_dropped = 5,
                                             .logs_on_disk = false}));
  EXPECT_EQ(ended.at("version"), 4);
  EXPECT_EQ(ended.at("attempt"), 2);
  EXPECT_TRUE(ended.at("exitCode").is_null());
  EXPECT_EQ(ended.at("signal"), 9);
  EXPECT_EQ(ended.at("reason"), "it's \"over\"\n\xef\xbf\xbd");
  EXPECT_EQ(ended.at("startedAt"), "2023-11-14T22:13:20.123Z");
  EXPECT_EQ(ended.at("endedAt"), "2023-11-14T22:13:20.007Z");
  EXPECT_EQ(ended.at("logs"), "memory");
}

TEST(Quote, KeepsTextAndReplacesWhatIsNone) {
  EXPECT_EQ(Quote("a\"b\\c\n\t\x01\x7f"), "\"a\\\"b\\\\c\\n\\u0009\\u0001\\u007f\"");
  EXPECT_EQ(Quote("ä€😀"), "\"ä€😀\"");
  const std::string_view kNone[] = {"\x80", "\xc0\xaf", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xe2\x82"};
  for (const std::string_view bytes : kNone) {
    EXPECT_TRUE(ParseJson(Quote(bytes)).ok()) << Quote(bytes);
    EXPECT_EQ(Quote(bytes).substr(0, 4), "\"\xef\xbf\xbd");
  }
}

}  // namespace
}  // namespace trainyard::agent
