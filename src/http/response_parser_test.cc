#include "http/response_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"

namespace trainyard::http {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ResponseState = ResponseParser::State;

// Feeds all of it, in pieces of that size; what the parser leaves is given again with the next piece, or else
// left in `pending`. Returns what came of the body.
std::string Feed(ResponseParser& parser, std::string_view bytes, std::size_t step, std::string& pending) {
  std::string body;
  while (!bytes.empty() && parser.state() != ResponseState::kWhole &&
         parser.state() != ResponseState::kFailed) {
    const std::size_t size = std::min(step, bytes.size());
    pending += bytes.substr(0, size);
    bytes.remove_prefix(size);
    pending.erase(0, parser.Feed(pending));
    body += parser.TakeBody();
  }
  return body;
}
std::string Feed(ResponseParser& parser, std::string_view bytes, std::size_t step = SIZE_MAX) {
  std::string pending;
  return Feed(parser, bytes, step, pending);
}

TEST(ResponseParser, ReadsAnAnswerHoweverItIsCut) {
  const std::string text =
      "HTTP/1.1 201 Made\r\nContent-Type: text/plain\r\nSet-Cookie: a\r\nSet-Cookie: b\r\n"
      "Content-Length: 5\r\n\r\nhello";
  for (std::size_t step = 1; step <= text.size(); ++step) {
    ResponseParser parser(/*to_head=*/false);
    EXPECT_EQ(Feed(parser, text, step), "hello");
    ASSERT_EQ(parser.state(), ResponseState::kWhole) << step;
    EXPECT_EQ(parser.head().code, 201);
    EXPECT_EQ(parser.head().body_length, 5U);
    EXPECT_THAT(parser.head().headers,
                ElementsAre(Pair("Content-Type", "text/plain"), Pair("Set-Cookie", "a"),
                            Pair("Set-Cookie", "b"), Pair("Content-Length", "5")));
  }
}

TEST(ResponseParser, ReadsChunksAsTheyCome) {
  ResponseParser parser(/*to_head=*/false);
  std::string pending;
  const std::string_view first = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n";
  EXPECT_EQ(Feed(parser, first, SIZE_MAX, pending), "abc");
  EXPECT_EQ(parser.state(), ResponseState::kBody);
  EXPECT_EQ(parser.head().body_length, std::nullopt);
  EXPECT_EQ(Feed(parser, "2;x=y\r\nde\r\n0\r\nLate: header\r\n\r\n", SIZE_MAX, pending), "de");
  EXPECT_EQ(parser.state(), ResponseState::kWhole);
  EXPECT_EQ(parser.head().headers.size(), 1U) << "a trailer is no header";
}

TEST(ResponseParser, TakesTheEndOfTheConnectionForTheEndOfABodyWithoutAnother) {
  ResponseParser parser(/*to_head=*/false);
  EXPECT_EQ(Feed(parser, "HTTP/1.0 200 OK\r\n\r\nall of it"), "all of it");
  EXPECT_EQ(parser.state(), ResponseState::kBody);
  parser.FeedEnd();
  EXPECT_EQ(parser.state(), ResponseState::kWhole);
}

TEST(ResponseParser, FailsWhereAnAnswerBreaksOff) {
  for (const char* text :
       {"", "HTTP/1.1 2", "HTTP/1.1 200 OK\r\nContent-", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"}) {
    ResponseParser parser(/*to_head=*/false);
    Feed(parser, text);
    parser.FeedEnd();
    EXPECT_EQ(parser.state(), ResponseState::kFailed) << text;
    EXPECT_THAT(parser.error(), HasSubstr("EOF"));
  }
}

TEST(ResponseParser, PassesOverAnswersThatOnlySayWait) {
  ResponseParser parser(/*to_head=*/false);
  EXPECT_EQ(Feed(parser,
                 "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
                 "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
                 7),
            "ok");
  EXPECT_EQ(parser.head().code, 200);
  EXPECT_EQ(parser.head().headers.size(), 1U);
  ResponseParser switched(/*to_head=*/false);
  Feed(switched, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nno HTTP");
  EXPECT_EQ(switched.state(), ResponseState::kWhole);
  EXPECT_EQ(switched.head().code, 101);
}

TEST(ResponseParser, ExpectsNoBodyWhereNoneCanBe) {
  ResponseParser to_head(/*to_head=*/true);
  Feed(to_head, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
  EXPECT_EQ(to_head.state(), ResponseState::kWhole);
  EXPECT_EQ(to_head.head().body_length, 1000U);
  for (const char* code : {"204", "304"}) {
    ResponseParser parser(/*to_head=*/false);
    Feed(parser, StrCat("HTTP/1.1 ", code, " x\r\n\r\n"));
    EXPECT_EQ(parser.state(), ResponseState::kWhole) << code;
  }
}

TEST(ResponseParser, RefusesWhatIsNoAnswer) {
  for (const char* text : {"SSH-2.0-OpenSSH_9.2\r\n", "HTTP/2 200\r\n\r\n", "\x15\x03\x01 tls\r\n",
                           "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"}) {
    ResponseParser parser(/*to_head=*/false);
    Feed(parser, text);
    EXPECT_EQ(parser.state(), ResponseState::kFailed) << text;
  }
}

TEST(ResponseParser, BoundsWhatItKeepsOfAHead) {
  for (const std::size_t step : {std::size_t{1000}, SIZE_MAX}) {
    std::string text = "HTTP/1.1 200 OK\r\n";
    for (int i = 0; i < 1000; ++i) StrAppend(text, "X-", i, ": ", std::string(100, 'x'), "\r\n");
    ResponseParser many(/*to_head=*/false);
    Feed(many, text, step);
    EXPECT_EQ(many.state(), ResponseState::kFailed);
    ResponseParser endless(/*to_head=*/false);
    Feed(endless, StrCat("HTTP/1.1 200 OK\r\nX: ", std::string(200'000, 'x')), step);
    EXPECT_EQ(endless.state(), ResponseState::kFailed);
  }
}

}  // namespace
}  // namespace trainyard::http
