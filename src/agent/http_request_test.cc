#include "agent/http_request.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::agent {
namespace {

using Stage = RequestParser::Stage;
using ::testing::HasSubstr;

// The requests that a stream of bytes holds, fed in pieces, and then "bad CODE" if it ends so.
struct Parsed {
  std::vector<Request> requests;
  int bad = 0;
  bool operator==(const Parsed&) const = default;
};

void FeedAll(RequestParser& parser, std::string_view bytes, Parsed& parsed) {
  while (parser.stage() != Stage::kBad) {
    const std::size_t taken = parser.Feed(bytes);
    bytes.remove_prefix(taken);
    if (parser.stage() == Stage::kDone) {
      parsed.requests.push_back(parser.Take());
    } else if (bytes.empty()) {
      break;
    }
  }
  if (parser.stage() == Stage::kBad) parsed.bad = parser.bad().code;
}

Parsed ParseRequest(std::initializer_list<std::string_view> pieces) {
  RequestParser parser;
  Parsed parsed;
  for (const std::string_view piece : pieces) {
    if (parsed.bad == 0) FeedAll(parser, piece, parsed);
  }
  return parsed;
}

constexpr std::string_view kPipelined =
    "POST /config HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer t\r\nContent-Length: 5\r\n\r\n{\r\n\r\n"
    "\r\nGET /status?after=3&wait=0.5 HTTP/1.1\r\nHOST:a\r\nconnection: Close\r\n\r\n"
    "GET /logs%2f?x=%20y&x=z HTTP/1.0\r\n\r\n";

TEST(RequestParser, ReadsTheSameHoweverTheBytesAreCut) {
  const Parsed whole = ParseRequest({kPipelined});
  ASSERT_EQ(whole.requests.size(), 3u);
  EXPECT_EQ(whole.bad, 0);
  for (std::size_t first = 0; first <= kPipelined.size(); ++first) {
    for (std::size_t second = first; second <= kPipelined.size(); ++second) {
      ASSERT_EQ(ParseRequest({kPipelined.substr(0, first), kPipelined.substr(first, second - first),
                              kPipelined.substr(second)}),
                whole)
          << "cut at " << first << " and " << second;
    }
  }
}

TEST(RequestParser, TellsWhatWasAskedFor) {
  const Parsed parsed = ParseRequest({kPipelined});
  EXPECT_EQ(parsed.requests[0],
            (Request{.method = "POST", .path = "/config", .authorization = "Bearer t", .body = "{\r\n\r\n"}));
  EXPECT_EQ(parsed.requests[1], (Request{.method = "GET",
                                         .path = "/status",
                                         .query = {{"after", "3"}, {"wait", "0.5"}},
                                         .keep_alive = false}));
  EXPECT_EQ(parsed.requests[2], (Request{.method = "GET",
                                         .path = "/logs/",
                                         .query = {{"x", " y"}, {"x", "z"}},
                                         .keep_alive = false,
                                         .chunks = false}));
  EXPECT_EQ(*parsed.requests[2].Find("x"), "z");
  EXPECT_EQ(parsed.requests[2].Find("y"), nullptr);
}

TEST(RequestParser, KeepsAnOldClientOnlyIfItAsks) {
  const auto kept = [](std::string_view head) { return ParseRequest({head}).requests.at(0).keep_alive; };
  EXPECT_TRUE(kept("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
  EXPECT_FALSE(kept("GET / HTTP/1.1\r\nHost: a\r\nConnection: foo, close\r\n\r\n"));
  EXPECT_FALSE(kept("GET / HTTP/1.0\r\n\r\n"));
  EXPECT_TRUE(kept("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"));
}

TEST(RequestParser, TakesATargetAsToAProxy) {
  EXPECT_EQ(ParseRequest({"GET http://h:1/run?attempt=2 HTTP/1.1\r\nHost: h\r\n\r\n"}).requests.at(0).path,
            "/run");
  EXPECT_EQ(ParseRequest({"GET http://h HTTP/1.1\r\nHost: h\r\n\r\n"}).requests.at(0).path, "/");
}

TEST(RequestParser, RefusesWhatCanBeUnderstoodInTwoWays) {
  const struct {
    std::string_view bytes;
    int code;
  } kCases[] = {
      {"GET / HTTP/1.1\r\n\r\n", 400},  // no host
      {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a\r\nAuthorization: b\r\nAuthorization: c\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1x\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1048577\r\n\r\n", 413},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n", 413},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", 411},
      {"GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a\r\n folded: b\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n", 400},
      {"GET / HTTP/1.1\nHost: a\r\n\r\n", 505},
      {"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505},
      {"GET /\r\nHost: a\r\n\r\n", 505},
      {"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET status HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET /%0 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET /?a=%00 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
  };
  for (const auto& [bytes, code] : kCases) EXPECT_EQ(ParseRequest({bytes}).bad, code) << bytes;
}

TEST(RequestParser, BoundsTheHead) {
  const std::string_view begin = "GET / HTTP/1.1\r\nHost: a\r\nX: ";
  const std::string fits(kMaxHeadBytes - begin.size() - 4, 'x');
  EXPECT_EQ(ParseRequest({begin, fits, "\r\n\r\n"}).requests.size(), 1u);
  EXPECT_EQ(ParseRequest({begin, fits, "x\r\n\r\n"}).bad, 431);
  EXPECT_EQ(ParseRequest({std::string(kMaxHeadBytes, 'x')}).bad, 431);
}

TEST(RequestParser, ShowsAHeadBeforeItsBody) {
  RequestParser parser;
  EXPECT_FALSE(parser.begun());
  const std::string_view head =
      "POST /config HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n\r\n";
  EXPECT_EQ(parser.Feed(std::string(head) + "{}GET"), head.size());
  EXPECT_EQ(parser.stage(), Stage::kBody);
  EXPECT_TRUE(parser.begun());
  EXPECT_TRUE(parser.awaits_continue());
  EXPECT_EQ(parser.request().path, "/config");
  EXPECT_EQ(parser.Feed("{}GET"), 2u);
  EXPECT_EQ(parser.Take().body, "{}");
  EXPECT_FALSE(parser.begun());
}

}  // namespace
}  // namespace trainyard::agent
