#include "apiserver/proxy_headers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"

namespace trainyard::apiserver {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using ::testing::StartsWith;

constexpr std::string_view kPrefix = "/api/v1/namespaces/ns/services/web:80/proxy";

ProxyRequest Request(std::string_view method, std::string_view rest, HttpHeaders headers = {}) {
  return {.method = std::string(method),
          .target = **ParseProxyTarget(StrCat(kPrefix, rest)),
          .backend = {.ip = "127.0.0.5", .port = 8080},
          .headers = std::move(headers),
          .body_length = 0};
}

TEST(ProxyHeaders, AskTheBackendForItsOwnPath) {
  const std::string head = PrintRequestHead(Request("GET", "/a%20b?x=1", {{"Host", "127.0.0.1:6443"}}));
  EXPECT_EQ(head, StrCat("GET /a%20b?x=1 HTTP/1.1\r\nHost: 127.0.0.1:6443\r\nX-Forwarded-Uri: ", kPrefix,
                         "/a%20b\r\nConnection: close\r\n\r\n"));
  EXPECT_THAT(PrintRequestHead(Request("POST", "?x=1")),
              StartsWith("POST /?x=1 HTTP/1.1\r\nHost: 127.0.0.5:8080\r\n"));
}

TEST(ProxyHeaders, CarryWhatTheClientSaidAndNotWhoItIs) {
  const std::string head = PrintRequestHead(Request("GET", "/",
                                                    {{"Accept", "text/plain"},
                                                     {"token", "X"},
                                                     {"Cookie", "a"},
                                                     {"Cookie", "b"},
                                                     {"authorization", "Bearer secret"},
                                                     {"X-Remote-User", "root"},
                                                     {"Impersonate-User", "root"},
                                                     {"X-Remote-Extra-Scopes", "all"},
                                                     {"X-Forwarded-Uri", "/forged"}}));
  EXPECT_THAT(head, HasSubstr("Accept: text/plain\r\ntoken: X\r\nCookie: a\r\nCookie: b\r\n"));
  for (const char* left_out : {"secret", "root", "all", "forged"})
    EXPECT_THAT(head, Not(HasSubstr(left_out)));
}

TEST(ProxyHeaders, KeepToThemselvesWhatIsOfTheConnection) {
  const std::string head = PrintRequestHead(Request("GET", "/",
                                                    {{"Connection", "keep-alive, X-Mine"},
                                                     {"x-mine", "1"},
                                                     {"Keep-Alive", "timeout=5"},
                                                     {"Upgrade", "websocket"},
                                                     {"TE", "trailers"},
                                                     {"Expect", "100-continue"},
                                                     {"Yours", "2"}}));
  EXPECT_EQ(head, StrCat("GET / HTTP/1.1\r\nHost: 127.0.0.5:8080\r\nYours: 2\r\nX-Forwarded-Uri: ", kPrefix,
                         "/\r\nConnection: close\r\n\r\n"));
}

TEST(ProxyHeaders, FrameTheBodyAsItComes) {
  ProxyRequest request = Request("POST", "/", {{"Content-Length", "999"}});
  request.body_length = 5;
  EXPECT_THAT(PrintRequestHead(request), HasSubstr("Content-Length: 5\r\n"));
  EXPECT_THAT(PrintRequestHead(request), Not(HasSubstr("999")));
  request.body_length = 0;
  EXPECT_THAT(PrintRequestHead(request), HasSubstr("Content-Length: 0\r\n"));
  request.body_length.reset();
  EXPECT_THAT(PrintRequestHead(request), HasSubstr("Transfer-Encoding: chunked\r\n"));
}

TEST(ProxyHeaders, PassTheAnswersHeadOn) {
  const http::ResponseHead answer{.code = 201,
                                  .headers = {{"Content-type", "text/plain"},
                                              {"Set-Cookie", "a"},
                                              {"Set-Cookie", "b"},
                                              {"Date", "yesterday"},
                                              {"Connection", "close"},
                                              {"Access-Control-Allow-Origin", "*"},
                                              {"Content-Length", "7"}},
                                  .body_length = 7};
  const kube::Response head = AnswerHead(Request("GET", "/"), answer);
  EXPECT_EQ(head.code, 201);
  EXPECT_EQ(head.content_type, "text/plain");
  EXPECT_THAT(head.headers,
              ElementsAre(Pair("Set-Cookie", "a"), Pair("Set-Cookie", "b"), Pair("Content-Length", "7")));
}

TEST(ProxyHeaders, TellNoLengthThatIsNotKnown) {
  const kube::Response head =
      AnswerHead(Request("GET", "/"), {.code = 200, .headers = {{"Transfer-Encoding", "chunked"}}});
  EXPECT_TRUE(head.headers.empty());
  EXPECT_EQ(head.content_type, "") << "what the backend does not say is not made up";
}

TEST(ProxyHeaders, LeadARedirectThroughTheProxy) {
  const ProxyRequest request = Request("GET", "/a", {{"Host", "127.0.0.1:6443"}});
  const auto rewritten = [&](std::string_view location) { return RewriteLocation(request, location); };
  EXPECT_EQ(rewritten("/b/?x=1"), StrCat(kPrefix, "/b/?x=1"));
  EXPECT_EQ(rewritten("http://127.0.0.5:8080/b"), StrCat(kPrefix, "/b"));
  EXPECT_EQ(rewritten("//127.0.0.5:8080/b"), StrCat(kPrefix, "/b"));
  EXPECT_EQ(rewritten("http://127.0.0.1:6443/b"), StrCat("http://127.0.0.1:6443", kPrefix, "/b"));
  EXPECT_EQ(rewritten(StrCat(kPrefix, "/b")), StrCat(kPrefix, "/b")) << "it does already";
  for (const char* other : {"b", "../b", "https://elsewhere/b", "//elsewhere/b", "", "?x=http://a//b",
                            "mailto:somebody", "http://127.0.0.5:8080"}) {
    EXPECT_EQ(rewritten(other), other);
  }
}

}  // namespace
}  // namespace trainyard::apiserver
