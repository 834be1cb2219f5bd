#include "http/request_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"

namespace trainyard::http {
namespace {

using ::testing::HasSubstr;
using State = RequestParser::State;

// Feeds all of it, in pieces of that size; what the parser leaves is given again with the next piece.
RequestParser Parsed(std::string_view bytes, std::size_t step = SIZE_MAX, RequestLimits limits = {}) {
  RequestParser parser(limits);
  std::string pending;
  while (!bytes.empty()) {
    const std::size_t size = std::min(step, bytes.size());
    pending += bytes.substr(0, size);
    bytes.remove_prefix(size);
    std::size_t taken = 0;
    do {
      taken = parser.Feed(pending);
      pending.erase(0, taken);
    } while (taken > 0 && parser.state() == State::kBody);
    if (parser.state() == State::kWhole || parser.state() == State::kFailed) break;
  }
  return parser;
}

TEST(RequestParser, ReadsHeadAndBodyHoweverTheyAreCut) {
  const std::string text =
      "POST /api/v1/pods?x=1 HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nAccept: a/b\r\n"
      "Accept: c/d\r\nAuthorization: Bearer t\r\nUser-Agent: kubectl\r\nContent-Length: 5\r\n\r\nhello";
  for (std::size_t step = 1; step <= text.size(); ++step) {
    RequestParser parser = Parsed(text, step);
    ASSERT_EQ(parser.state(), State::kWhole) << step;
    EXPECT_EQ(parser.head().method, "POST");
    EXPECT_EQ(parser.head().target, "/api/v1/pods?x=1");
    EXPECT_EQ(parser.head().content_type, "application/json");
    EXPECT_EQ(parser.head().accept, "a/b, c/d");
    EXPECT_EQ(parser.head().authorization, "Bearer t");
    EXPECT_EQ(parser.head().user_agent, "kubectl");
    EXPECT_TRUE(parser.head().keep_alive);
    EXPECT_EQ(parser.body(), "hello");
  }
}

TEST(RequestParser, ReadsChunkedBodiesHoweverTheyAreCut) {
  const std::string text =
      "PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n1;x=y\r\nd\r\n0\r\nTrailer: t\r\nAccept: no\r\n\r\n";
  for (std::size_t step = 1; step <= text.size(); ++step) {
    RequestParser parser = Parsed(text, step);
    ASSERT_EQ(parser.state(), State::kWhole) << step;
    EXPECT_EQ(parser.body(), "abcd");
    EXPECT_EQ(parser.head().accept, "");
  }
}

TEST(RequestParser, LeavesTheBytesOfTheNextRequest) {
  RequestParser parser({});
  const std::string_view text = "GET /a HTTP/1.1\r\nHost: h\r\n\r\nGET /b";
  EXPECT_EQ(text.substr(parser.Feed(text)), "GET /b");
  EXPECT_EQ(parser.state(), State::kWhole);
}

TEST(RequestParser, StopsBetweenHeadAndBody) {
  RequestParser parser({});
  const std::string_view text =
      "PUT /a HTTP/1.1\r\nHost: h\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n\r\nxy";
  EXPECT_EQ(text.substr(parser.Feed(text)), "xy");
  EXPECT_EQ(parser.state(), State::kBody);
  EXPECT_TRUE(parser.head().expects_continue);
  EXPECT_EQ(parser.Feed("xy"), 2U);
  EXPECT_EQ(parser.state(), State::kWhole);
}

TEST(RequestParser, KeepsNothingOfABodyThatIsDropped) {
  RequestParser parser({});
  parser.Feed("PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n");
  parser.DropBody();
  parser.Feed("xy");
  EXPECT_EQ(parser.state(), State::kWhole);
  EXPECT_EQ(parser.body(), "");
}

TEST(RequestParser, CutsSchemeAndHostFromATarget) {
  EXPECT_EQ(Parsed("GET https://h:1/a?b HTTP/1.1\r\nHost: h\r\n\r\n").head().target, "/a?b");
  EXPECT_EQ(Parsed("GET http://h?b HTTP/1.1\r\nHost: h\r\n\r\n").head().target, "/?b");
  EXPECT_EQ(Parsed("GET http://h HTTP/1.1\r\nHost: h\r\n\r\n").head().target, "/");
}

TEST(RequestParser, KnowsWhenTheConnectionIsToBeClosed) {
  EXPECT_FALSE(Parsed("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").head().keep_alive);
  EXPECT_FALSE(Parsed("GET / HTTP/1.0\r\n\r\n").head().keep_alive);
  EXPECT_TRUE(Parsed("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").head().keep_alive);
}

struct Bad {
  const char* name;
  std::string bytes;
  int code;
  const char* reason;
};

TEST(RequestParser, SaysWhatIsWrong) {
  const std::string get = "GET / HTTP/1.1\r\nHost: h\r\n";
  const Bad table[] = {
      {"garbage", "\x01\x02\x03 /\r\n\r\n", 400, "method"},
      {"lower version", "GET / HTTP/0.9\r\n\r\n", 400, "version"},
      {"higher version", "GET / HTTP/2.0\r\n\r\n", 400, "version"},
      {"no host", "GET / HTTP/1.1\r\n\r\n", 400, "Host"},
      {"two hosts", get + "Host: i\r\n\r\n", 400, "Host"},
      {"no slash", "GET a HTTP/1.1\r\nHost: h\r\n\r\n", 400, "'/'"},
      {"a query alone", "GET ?a HTTP/1.1\r\nHost: h\r\n\r\n", 400, "'/'"},
      {"asterisk", "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", 400, "'/'"},
      {"space in name", get + "A B: c\r\n\r\n", 400, "name"},
      {"control in value", get + "A: b\x01\r\n\r\n", 400, "value"},
      {"negative length", get + "Content-Length: -1\r\n\r\n", 400, "Content-Length"},
      {"two lengths", get + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nx", 400, "twice"},
      {"length and chunks", get + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "beside"},
      {"chunks and length", get + "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n", 400, "beside"},
      {"gzip then chunks", get + "Transfer-Encoding: gzip, chunked\r\n\r\n", 501, "chunked"},
      {"identity coding", get + "Transfer-Encoding: identity\r\n\r\n", 501, "chunked"},
      {"encoded", get + "Content-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx", 415, "Content-Encoding"},
      {"bad chunk", get + "Transfer-Encoding: chunked\r\n\r\nxyz\r\n", 400, "chunk"},
      {"chunk too long", get + "Transfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n", 400, "chunk"},
      {"body too long", get + "Content-Length: 101\r\n\r\n", 413, "100 bytes"},
      {"chunks too long", get + "Transfer-Encoding: chunked\r\n\r\n65\r\n", 413, "100 bytes"},
      {"huge chunk", get + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", 413, "100 bytes"},
      {"long header", get + "A: " + std::string(300, 'x') + "\r\n\r\n", 431, "256 bytes"},
      {"long target", "GET /" + std::string(300, 'x') + " HTTP/1.1\r\n\r\n", 431, "256 bytes"},
      {"long extension", get + "Transfer-Encoding: chunked\r\n\r\n1;" + std::string(300, 'x'), 400, "long"},
      {"long trailer", get + "Transfer-Encoding: chunked\r\n\r\n0\r\nA: " + std::string(300, 'x'), 400,
       "long"},
  };
  for (const Bad& bad : table) {
    for (const std::size_t step : {std::size_t{1}, std::size_t{7}, SIZE_MAX}) {
      RequestParser parser = Parsed(bad.bytes, step, {.head_bytes = 256, .body_bytes = 100});
      ASSERT_EQ(parser.state(), State::kFailed) << bad.name << " by " << step;
      EXPECT_EQ(parser.error().code, bad.code) << bad.name << " by " << step;
      EXPECT_THAT(parser.error().message, HasSubstr(bad.reason)) << bad.name << " by " << step;
    }
  }
}

TEST(RequestParser, CountsHeadersTogetherThatComeOneByOne) {
  RequestParser parser({.head_bytes = 1000});
  std::string pending = "GET / HTTP/1.1\r\n";
  std::size_t sent = pending.size();
  for (int i = 0; i < 100 && parser.state() == State::kHead; ++i) {
    pending.erase(0, parser.Feed(pending));
    pending += "Some: header\r\n";
    sent += 14;
  }
  EXPECT_EQ(parser.state(), State::kFailed);
  EXPECT_EQ(parser.error().code, 431);
  EXPECT_LT(sent, 1100U);
}

TEST(RequestParser, CountsChunksTogether) {
  RequestParser parser({.body_bytes = 100});
  parser.Feed("PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
  std::string pending;
  for (int i = 0; i < 100 && parser.state() == State::kBody; ++i) {
    pending += "a\r\n0123456789\r\n";
    pending.erase(0, parser.Feed(pending));
  }
  EXPECT_EQ(parser.state(), State::kFailed);
  EXPECT_EQ(parser.error().code, 413);
  EXPECT_LE(parser.body().size(), 100U);
}

}  // namespace
}  // namespace trainyard::http
