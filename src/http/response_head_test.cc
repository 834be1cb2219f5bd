#include "http/response_head.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::http {
namespace {

TEST(PrintResponseHead, LetsNoHeaderBeginAnother) {
  const Response response{.code = 200, .headers = {{"Warning", "299 - \"a\r\nSet-Cookie: b\""}}};
  EXPECT_EQ(PrintResponseHead(response, {.length = 3}, "now"),
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nWarning: 299 - \"a  Set-Cookie: "
            "b\"\r\nDate: now\r\n"
            "Content-Length: 3\r\n\r\n");
}

TEST(PrintResponseHead, SaysNothingOfABodyThatCannotBe) {
  EXPECT_EQ(PrintResponseHead({.code = 304}, {.length = 0}, "now"),
            "HTTP/1.1 304 Not Modified\r\nDate: now\r\n\r\n");
}

TEST(PrintResponseHead, HasAReasonForEveryCode) {
  for (int code = 200; code < 600; ++code) EXPECT_FALSE(ReasonPhrase(code).empty()) << code;
}

TEST(PrintHttpDate, IsWhatHttpWants) {
  EXPECT_EQ(PrintHttpDate(absl::FromUnixSeconds(784111777)), "Sun, 06 Nov 1994 08:49:37 GMT");
}

}  // namespace
}  // namespace trainyard::http
