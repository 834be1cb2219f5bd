#include "agent/http_answer.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(PrintAnswer, IsAnHttpAnswer) {
  EXPECT_EQ(PrintAnswer(ErrorAnswer(409, "a \"b\""), true),
            "HTTP/1.1 409 Conflict\r\nContent-Type: application/json\r\nContent-Length: 21\r\n"
            "Connection: keep-alive\r\n\r\n{\"error\": \"a \\\"b\\\"\"}\n");
  EXPECT_THAT(PrintAnswer({.code = 401}, false),
              testing::AllOf(HasSubstr("WWW-Authenticate: Bearer\r\n"), HasSubstr("Connection: close\r\n")));
  EXPECT_THAT(PrintAnswer({.code = 405, .allow = "GET, POST"}, true), HasSubstr("\r\nAllow: GET, POST\r\n"));
}

TEST(PrintLogHead, SaysWhereTheBytesBeginAndHowTheyEnd) {
  EXPECT_THAT(PrintLogHead({.from = 7, .size = 3}),
              testing::AllOf(HasSubstr("X-Log-From: 7\r\n"), HasSubstr("Content-Length: 3\r\n"),
                             Not(HasSubstr("chunked")), HasSubstr("keep-alive")));
  EXPECT_THAT(PrintLogHead({}), testing::AllOf(HasSubstr("chunked"), HasSubstr("keep-alive")));
  EXPECT_THAT(PrintLogHead({.chunks = false}),
              testing::AllOf(Not(HasSubstr("chunked")), HasSubstr("Connection: close\r\n")));
  EXPECT_EQ(PrintChunk(std::string(26, 'x')), "1a\r\n" + std::string(26, 'x') + "\r\n");
}

}  // namespace
}  // namespace trainyard::agent
