// Requests that are carried on to somebody else while they come.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "http/connection.h"
#include "tests/support/fake_stream.h"

namespace trainyard::http {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using ::testing::StartsWith;
using testing_support::FakeStream;
using testing_support::FakeWire;

std::shared_ptr<const std::string> Piece(std::string_view text) {
  return std::make_shared<const std::string>(text);
}

std::string Head(std::string_view method, std::string_view lines = "") {
  return StrCat(method, " /relay/x HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer good\r\n", lines, "\r\n");
}

// The test is the client, the network and whoever the request is carried to.
class RelayingConnections : public testing::Test {
 protected:
  RelayingConnections() {
    host_.options.max_body_bytes = 1000;
    host_.options.max_stream_backlog_bytes = 1 << 20;
    host_.options.relayed = [](std::string_view target) { return target.starts_with("/relay/"); };
    host_.judge = JudgeByToken(
        [](std::string_view token) -> std::optional<Identity> {
          if (!SameSecret(token, "good")) return std::nullopt;
          return Identity{.user = "alice"};
        },
        "the server");
    host_.handler = [this](ServerRequest request, std::unique_ptr<Responder> responder) {
      requests_.push_back(std::move(request));
      responder->OnGone([this] { ++gone_; });
      responders_.push_back(std::move(responder));
    };
    connection_ =
        std::make_unique<Connection>(host_, std::make_unique<FakeStream>(wire_), [this] { ++wakes_; });
  }

  bool Give(std::string_view bytes) {
    wire_.to_server += bytes;
    return Settle(true);
  }
  bool Settle(bool readable = false, bool hangup = false) {
    bool goes_on = connection_->Advance(readable, hangup);
    while (goes_on && std::exchange(wakes_, 0) > 0) goes_on = connection_->Advance(false, false);
    return goes_on;
  }
  bool End() {
    wire_.ended = true;
    return Settle(true, true);
  }
  std::string Taken() { return std::exchange(wire_.from_server, ""); }
  RequestBody& body() { return *requests_.back().body; }

  FakeWire wire_;
  ConnectionHost host_;
  std::vector<ServerRequest> requests_;
  std::vector<std::unique_ptr<Responder>> responders_;
  int gone_ = 0;
  int wakes_ = 0;
  std::unique_ptr<Connection> connection_;
};

TEST_F(RelayingConnections, HandTheRequestOnAtItsHead) {
  ASSERT_TRUE(Give(Head("POST", "X-A: 1\r\ntoken: t\r\nContent-Length: 5000\r\nContent-Encoding: gzip\r\n")));
  ASSERT_EQ(requests_.size(), 1U);
  EXPECT_EQ(requests_[0].identity.user, "alice");
  EXPECT_EQ(requests_[0].body_length, 5000U) << "more than what others may send";
  EXPECT_THAT(requests_[0].headers,
              AllOf(Contains(Pair("Host", "h")), Contains(Pair("X-A", "1")), Contains(Pair("token", "t"))));
  ASSERT_TRUE(Give("abc"));
  EXPECT_EQ(body().Take().bytes, "abc");
  ASSERT_TRUE(Give(std::string(4997, 'x')));
  const RequestBody::Taken rest = body().Take();
  EXPECT_EQ(rest.bytes.size(), 4997U);
  EXPECT_TRUE(rest.whole);
}

TEST_F(RelayingConnections, TakeChunksApart) {
  ASSERT_TRUE(Give(StrCat(Head("POST", "Transfer-Encoding: chunked\r\n"), "3\r\nabc\r\n")));
  EXPECT_EQ(requests_[0].body_length, std::nullopt);
  EXPECT_EQ(body().Take().bytes, "abc");
  ASSERT_TRUE(Give("2\r\nde\r\n0\r\n\r\n"));
  const RequestBody::Taken rest = body().Take();
  EXPECT_EQ(rest.bytes, "de");
  EXPECT_TRUE(rest.whole);
}

TEST_F(RelayingConnections, AnswerAndGoOnWithTheNextRequest) {
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(Give(StrCat(Head("POST", "Content-Length: 2\r\n"), "hi")));
    EXPECT_TRUE(body().Take().whole);
    const auto answer = responders_.back()->Stream({.content_type = "text/plain"});
    EXPECT_TRUE(answer->Write(Piece("hello")));
    answer->Close();
    ASSERT_TRUE(Settle());
    EXPECT_THAT(Taken(), AllOf(StartsWith("HTTP/1.1 200 "), EndsWith("5\r\nhello\r\n0\r\n\r\n")));
    EXPECT_TRUE(connection_->idle());
  }
  EXPECT_EQ(requests_.size(), 3U);
  EXPECT_EQ(gone_, 0);
}

TEST_F(RelayingConnections, ReadNoFasterThanTheBodyIsTaken) {
  constexpr std::size_t kAll = std::size_t{4} << 20;
  ASSERT_TRUE(Give(StrCat(Head("PUT", StrCat("Content-Length: ", kAll, "\r\n")), std::string(kAll, 'x'))));
  EXPECT_GT(wire_.to_server.size(), kAll * 3 / 4) << "most of it is left where it was";
  std::size_t taken = 0;
  while (taken < kAll) {
    const std::size_t got = body().Take().bytes.size();
    ASSERT_GT(got, 0U);
    taken += got;
    ASSERT_TRUE(Settle()) << "woken by what was taken, and by nothing else";
  }
  EXPECT_TRUE(body().Take().whole);
}

TEST_F(RelayingConnections, AnswerWhileTheBodyStillComes) {
  ASSERT_TRUE(Give(Head("POST", "Transfer-Encoding: chunked\r\n")));
  const auto answer = responders_[0]->Stream({});
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(Give("1\r\nq\r\n"));
    EXPECT_EQ(body().Take().bytes, "q");
    EXPECT_TRUE(answer->Write(Piece("a")));
    ASSERT_TRUE(Settle());
    EXPECT_THAT(Taken(), EndsWith("1\r\na\r\n"));
  }
  ASSERT_TRUE(Give("0\r\n\r\n"));
  EXPECT_TRUE(body().Take().whole);
  answer->Close();
  ASSERT_TRUE(Settle());
  EXPECT_TRUE(connection_->idle());
}

TEST_F(RelayingConnections, EndAfterAnAnswerThatDidNotWaitForTheBody) {
  ASSERT_TRUE(Give(Head("POST", "Content-Length: 5000\r\n")));
  responders_[0]->Send({.code = 404, .body = "nobody"});
  ASSERT_TRUE(Settle());
  EXPECT_THAT(Taken(),
              AllOf(StartsWith("HTTP/1.1 404 "), HasSubstr("Connection: close\r\n"), EndsWith("nobody")));
  EXPECT_TRUE(wire_.writing_ended);
  ASSERT_TRUE(Give(std::string(5000, 'x')));
  EXPECT_TRUE(wire_.to_server.empty()) << "read without looking, so that the answer is not lost";
  EXPECT_EQ(requests_.size(), 1U);
}

TEST_F(RelayingConnections, TellThatTheClientIsGoneBeforeTheAnswer) {
  ASSERT_TRUE(Give(Head("GET")));
  EXPECT_TRUE(body().Take().whole);
  EXPECT_FALSE(End()) << "who closes its side of a relayed request does not wait for the answer";
  connection_.reset();
  EXPECT_EQ(gone_, 1);
}

TEST_F(RelayingConnections, TellThatTheClientIsGoneInTheMiddleOfItsBody) {
  ASSERT_TRUE(Give(StrCat(Head("POST", "Content-Length: 5000\r\n"), "abc")));
  EXPECT_FALSE(End());
  connection_.reset();
  EXPECT_EQ(gone_, 1);
  EXPECT_FALSE(body().Take().whole);
}

TEST_F(RelayingConnections, TellNobodyOfAClientThatGoesAfterTheAnswer) {
  ASSERT_TRUE(Give(Head("GET")));
  responders_[0]->Send({.body = "x"});
  ASSERT_TRUE(Settle());
  connection_.reset();
  EXPECT_EQ(gone_, 0);
}

TEST_F(RelayingConnections, BreakOffWithABodyThatIsMalformed) {
  ASSERT_TRUE(Give(Head("POST", "Transfer-Encoding: chunked\r\n")));
  EXPECT_FALSE(Give("nonsense\r\n"));
  EXPECT_EQ(Taken(), "");
}

TEST_F(RelayingConnections, FrameAnAnswerByItsLengthWhereThatIsKnown) {
  ASSERT_TRUE(Give(Head("GET")));
  Response head{.content_type = "text/plain"};
  head.headers.emplace_back("Content-Length", "5");
  const auto answer = responders_[0]->Stream(head);
  EXPECT_TRUE(answer->Write(Piece("hel")));
  EXPECT_TRUE(answer->Write(Piece("lo")));
  answer->Close();
  ASSERT_TRUE(Settle());
  EXPECT_THAT(Taken(), AllOf(HasSubstr("Content-Length: 5\r\n"), Not(HasSubstr("chunked")),
                             EndsWith("\r\n\r\nhello")));
  EXPECT_TRUE(connection_->idle());
}

TEST_F(RelayingConnections, SendNoBodyWhereNoneCanBe) {
  ASSERT_TRUE(Give(Head("GET")));
  const auto answer = responders_[0]->Stream({.code = 204, .content_type = ""});
  ASSERT_TRUE(Settle());
  EXPECT_THAT(Taken(), AllOf(StartsWith("HTTP/1.1 204 "), Not(HasSubstr("chunked")), EndsWith("\r\n\r\n")));
  EXPECT_TRUE(connection_->idle());
}

TEST_F(RelayingConnections, TellTheWriterOfRoomWhenItIsThere) {
  ASSERT_TRUE(Give(Head("GET")));
  const auto answer = responders_[0]->Stream({});
  ASSERT_TRUE(Settle());
  wire_.room = 0;
  EXPECT_TRUE(answer->Write(Piece(std::string(1000, 'x'))));
  EXPECT_TRUE(answer->Write(Piece(std::string(1000, 'x'))));
  int room = 0;
  answer->OnRoom(1000, [&] { ++room; });
  ASSERT_TRUE(Settle());
  EXPECT_EQ(room, 0);
  wire_.room = 1500;
  ASSERT_TRUE(Settle());
  EXPECT_EQ(room, 1);
  wire_.room = SIZE_MAX;
  ASSERT_TRUE(Settle());
  EXPECT_EQ(room, 1) << "once";
  answer->OnRoom(1000, [&] { ++room; });
  EXPECT_EQ(room, 2) << "at once where there is room";
}

TEST_F(RelayingConnections, SayContinueToWhoMayAndNoToOthersAtOnce) {
  ASSERT_TRUE(Give(Head("POST", "Content-Length: 2\r\nExpect: 100-continue\r\n")));
  EXPECT_EQ(Taken(), "HTTP/1.1 100 Continue\r\n\r\n");
  ASSERT_TRUE(Give("hi"));
  responders_[0]->Send({.body = "x"});
  ASSERT_TRUE(Settle());
  Taken();
  ASSERT_TRUE(Give("POST /relay/x HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999\r\n\r\n"));
  EXPECT_THAT(Taken(), AllOf(StartsWith("HTTP/1.1 401 "), HasSubstr("Connection: close\r\n")));
  EXPECT_EQ(requests_.size(), 1U);
}

TEST_F(RelayingConnections, GiveABodyNoTimeButAReader) {
  ASSERT_TRUE(Give(Head("POST", "Content-Length: 5000\r\n")));
  EXPECT_EQ(connection_->deadline(), SteadyTime::Never());
  const auto answer = responders_[0]->Stream({});
  wire_.room = 0;
  ASSERT_TRUE(Settle());
  EXPECT_EQ(connection_->deadline(), host_.now + host_.options.write_timeout);
  EXPECT_FALSE(connection_->OnTime());
}

}  // namespace
}  // namespace trainyard::http
