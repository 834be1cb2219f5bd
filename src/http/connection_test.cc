#include "http/connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/support/fake_stream.h"

namespace trainyard::http {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using testing_support::FakeStream;
using testing_support::FakeWire;

constexpr std::string_view kGet = "GET /a HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer good\r\n\r\n";
constexpr std::string_view kWatch = "GET /watch HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer good\r\n\r\n";

std::shared_ptr<const std::string> BodyPiece(std::string_view text) {
  return std::make_shared<const std::string>(text);
}

std::size_t CountOf(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// The test is the client, the network and the API server.
class Connections : public testing::Test {
 protected:
  Connections() {
    host_.date = "Sun, 06 Nov 1994 08:49:37 GMT";
    host_.options.max_body_bytes = 1000;
    host_.options.max_header_bytes = 1000;
    host_.options.max_stream_backlog_bytes = 1000;
    host_.judge = JudgeByToken(
        [](std::string_view token) -> std::optional<Identity> {
          if (!SameSecret(token, "good")) return std::nullopt;
          return Identity{.user = "alice"};
        },
        "the server");
    host_.handler = [this](ServerRequest request, std::unique_ptr<Responder> responder) {
      requests_.push_back(std::move(request));
      if (answer_at_once_) {
        responder->Send({.body = StrCat("answer ", requests_.size())});
      } else {
        responders_.push_back(std::move(responder));
      }
    };
    Connect();
  }

  void Connect() {
    connection_ =
        std::make_unique<Connection>(host_, std::make_unique<FakeStream>(wire_), [this] { ++wakes_; });
  }
  // The client sends; false if the connection is over then.
  bool Give(std::string_view bytes) {
    wire_.to_server += bytes;
    return Settle(true);
  }
  bool End() {
    wire_.ended = true;
    return Settle(true, true);
  }
  bool Settle(bool readable = false, bool hangup = false) {
    bool goes_on = connection_->Advance(readable, hangup);
    while (goes_on && std::exchange(wakes_, 0) > 0) goes_on = connection_->Advance(false, false);
    return goes_on;
  }
  std::string Taken() { return std::exchange(wire_.from_server, ""); }

  FakeWire wire_;
  ConnectionHost host_;
  bool answer_at_once_ = true;
  std::vector<ServerRequest> requests_;
  std::vector<std::unique_ptr<Responder>> responders_;
  int wakes_ = 0;
  std::unique_ptr<Connection> connection_;
};

TEST_F(Connections, AnswerInOneWrite) {
  ASSERT_TRUE(Give(kGet));
  EXPECT_EQ(wire_.writes, 1);
  EXPECT_EQ(Taken(),
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
            "Content-Length: 8\r\n\r\nanswer 1");
  ASSERT_EQ(requests_.size(), 1U);
  EXPECT_EQ(requests_[0].identity.user, "alice");
  EXPECT_EQ(requests_[0].request.target, "/a");
  EXPECT_TRUE(connection_->idle());
}

TEST_F(Connections, AnswerPipelinedRequestsInOrderThoughTheAnswersComeLate) {
  answer_at_once_ = false;
  ASSERT_TRUE(Give(StrCat(kGet, kGet, "\r\n\r\n", kGet)));
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(responders_.size(), static_cast<std::size_t>(i + 1));
    responders_.back()->Send({.body = StrCat("late ", i)});
    ASSERT_TRUE(Settle());
    EXPECT_THAT(Taken(), EndsWith(StrCat("late ", i)));
  }
}

TEST_F(Connections, GiveManyPipelinedRequestsNoMoreThanTheirTurn) {
  std::string many;
  for (int i = 0; i < 1000; ++i) many += kGet;
  wire_.to_server = many;
  ASSERT_TRUE(connection_->Advance(true, false));
  EXPECT_LT(requests_.size(), 100U);
  ASSERT_TRUE(Settle());
  EXPECT_EQ(requests_.size(), 1000U);
}

TEST_F(Connections, RefuseWhoProvesNothing) {
  ASSERT_TRUE(Give("GET /a HTTP/1.1\r\nHost: h\r\n\r\n"));
  EXPECT_THAT(Taken(), testing::AllOf(StartsWith("HTTP/1.1 401 Unauthorized\r\n"),
                                      HasSubstr(R"({"error":"Unauthorized"})"),
                                      testing::Not(HasSubstr("wrong token"))));
  ASSERT_TRUE(Give("GET /a HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer bad\r\n\r\n"));
  EXPECT_THAT(Taken(), HasSubstr(R"({"error":"Unauthorized: wrong token"})"));
  for (const char* wrong : {"Bearer bad", "Basic good", "good", "Bearer", "Bearer  ", "Bearergood"}) {
    ASSERT_TRUE(Give(StrCat("PUT /version HTTP/1.1\r\nHost: h\r\nAuthorization: ", wrong,
                            "\r\nContent-Length: 3\r\n\r\nabc")));
    EXPECT_THAT(Taken(), StartsWith("HTTP/1.1 401 ")) << wrong;
  }
  EXPECT_TRUE(requests_.empty());
  ASSERT_TRUE(Give(kGet));  // on the same connection
  EXPECT_EQ(requests_.size(), 1U);
}

TEST_F(Connections, LetAnybodyProbe) {
  for (const char* path : {"/healthz", "/livez", "/readyz", "/readyz?verbose", "/livez/ping"}) {
    ASSERT_TRUE(Give(StrCat("GET ", path, " HTTP/1.1\r\nHost: h\r\n\r\n")));
    EXPECT_THAT(Taken(), StartsWith("HTTP/1.1 200 ")) << path;
    EXPECT_EQ(requests_.back().identity.user, "system:anonymous");
  }
  for (const char* path : {"/healthzz", "/version", "/"}) {
    ASSERT_TRUE(Give(StrCat("GET ", path, " HTTP/1.1\r\nHost: h\r\n\r\n")));
    EXPECT_THAT(Taken(), StartsWith("HTTP/1.1 401 ")) << path;
  }
}

TEST_F(Connections, TrustACertificateBeforeAToken) {
  wire_.identity = Identity{.user = "bob", .groups = {"ops"}};
  ASSERT_TRUE(Give(kGet));
  EXPECT_EQ(requests_[0].identity.user, "bob");
  EXPECT_EQ(requests_[0].identity.groups, std::vector<std::string>{"ops"});
}

TEST_F(Connections, SayContinueToWhoMay) {
  ASSERT_TRUE(
      Give("PUT /a HTTP/1.1\r\nHost: h\r\nAuthorization: bearer good\r\nContent-Length: 2\r\n"
           "Expect: 100-continue\r\n\r\n"));
  EXPECT_EQ(Taken(), "HTTP/1.1 100 Continue\r\n\r\n");
  ASSERT_TRUE(Give("xy"));
  EXPECT_THAT(Taken(), StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(requests_[0].request.body, "xy");

  ASSERT_TRUE(Give("PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"));
  EXPECT_THAT(Taken(), testing::AllOf(StartsWith("HTTP/1.1 401 "), HasSubstr("Connection: close\r\n")));
  EXPECT_TRUE(wire_.writing_ended);
}

TEST_F(Connections, SendNoBodyForHead) {
  ASSERT_TRUE(Give("HEAD /a HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer good\r\n\r\n"));
  EXPECT_THAT(Taken(), testing::AllOf(HasSubstr("Content-Length: 8\r\n"), EndsWith("\r\n\r\n")));
  ASSERT_TRUE(Give(kGet));
  EXPECT_THAT(Taken(), EndsWith("answer 2"));
}

TEST_F(Connections, TellWhoStreamsToHeadThatNobodyReads) {
  answer_at_once_ = false;
  ASSERT_TRUE(Give("HEAD /a HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer good\r\n\r\n"));
  const auto writer = responders_[0]->Stream({});
  bool gone = false;
  writer->OnGone([&] { gone = true; });
  ASSERT_TRUE(Settle());
  EXPECT_TRUE(gone);
  EXPECT_FALSE(writer->Write(BodyPiece("x")));
  EXPECT_TRUE(connection_->idle());
}

TEST_F(Connections, CloseAfterTheAnswerIfAsked) {
  ASSERT_TRUE(Give("GET /a HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer good\r\nConnection: close\r\n\r\n"));
  EXPECT_THAT(Taken(), HasSubstr("Connection: close\r\n"));
  EXPECT_TRUE(wire_.writing_ended);
  ASSERT_TRUE(Give(kGet));  // not looked at any more
  EXPECT_EQ(requests_.size(), 1U);
  EXPECT_FALSE(End());
}

TEST_F(Connections, SpeakHttp10) {
  ASSERT_TRUE(Give("GET /a HTTP/1.0\r\nAuthorization: Bearer good\r\nConnection: keep-alive\r\n\r\n"));
  EXPECT_THAT(Taken(), testing::AllOf(StartsWith("HTTP/1.0 200 "), HasSubstr("Connection: keep-alive\r\n")));
  answer_at_once_ = false;
  ASSERT_TRUE(Give("GET /a HTTP/1.0\r\nAuthorization: Bearer good\r\nConnection: keep-alive\r\n\r\n"));
  const auto writer = responders_[0]->Stream({});
  writer->Write(BodyPiece("one"));
  writer->Close();
  ASSERT_TRUE(Settle());
  EXPECT_THAT(Taken(), testing::AllOf(Not(HasSubstr("chunked")), HasSubstr("Connection: close\r\n"),
                                      EndsWith("\r\n\r\none")));
  EXPECT_TRUE(wire_.writing_ended);
}

TEST_F(Connections, StreamPiecesAsChunksAndGoOn) {
  answer_at_once_ = false;
  ASSERT_TRUE(Give(kWatch));
  const auto writer = responders_[0]->Stream({.content_type = "application/json;stream=watch"});
  ASSERT_TRUE(Settle());
  EXPECT_THAT(Taken(), HasSubstr("Transfer-Encoding: chunked\r\n"));
  EXPECT_TRUE(writer->Write(BodyPiece("0123456789abcdef")));
  EXPECT_TRUE(writer->Write(BodyPiece("")));
  EXPECT_TRUE(writer->Write(BodyPiece("x")));
  const int before = wire_.writes;
  ASSERT_TRUE(Settle());
  EXPECT_EQ(wire_.writes, before + 1);
  EXPECT_EQ(Taken(), "10\r\n0123456789abcdef\r\n1\r\nx\r\n");
  writer->Close();
  EXPECT_FALSE(writer->Write(BodyPiece("y")));
  ASSERT_TRUE(Settle());
  EXPECT_EQ(Taken(), "0\r\n\r\n");
  answer_at_once_ = true;
  ASSERT_TRUE(Give(kGet));
  EXPECT_THAT(Taken(), EndsWith("answer 2"));
}

TEST_F(Connections, WriteOnWhereASlowReaderStopped) {
  answer_at_once_ = false;
  ASSERT_TRUE(Give(kGet));
  std::string body;
  for (int i = 0; i < 20'000; ++i) StrAppend(body, i, ",");
  responders_[0]->Send({.body = body});
  wire_.room = 0;
  ASSERT_TRUE(Settle());
  for (std::size_t room = 1; wire_.from_server.size() < body.size() || connection_->idle() == false;
       room = room * 3 + 1) {
    wire_.room = room;
    ASSERT_TRUE(Settle());
  }
  EXPECT_THAT(Taken(), EndsWith(StrCat("\r\n\r\n", body)));
}

TEST_F(Connections, CutWhoFallsTooFarBehindAndTellTheWriter) {
  answer_at_once_ = false;
  ASSERT_TRUE(Give(kWatch));
  const auto writer = responders_[0]->Stream({});
  bool gone = false;
  writer->OnGone([&] { gone = true; });
  wire_.room = 0;
  ASSERT_TRUE(Settle());
  EXPECT_TRUE(writer->Write(BodyPiece(std::string(900, 'x'))));
  ASSERT_TRUE(Settle());
  EXPECT_FALSE(writer->Write(BodyPiece(std::string(200, 'x'))));
  EXPECT_FALSE(writer->Write(BodyPiece("x")));
  EXPECT_FALSE(gone);  // from the loop, not from within Write()
  EXPECT_FALSE(Settle());
  connection_.reset();
  EXPECT_TRUE(gone);
}

TEST_F(Connections, CountAsBehindOnlyWhatIsNotSent) {
  answer_at_once_ = false;
  ASSERT_TRUE(Give(kWatch));
  const auto writer = responders_[0]->Stream({});
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(writer->Write(BodyPiece(std::string(900, 'x'))));
    ASSERT_TRUE(Settle());
  }
  EXPECT_EQ(CountOf(wire_.from_server, "384\r\n"), 100U);
}

TEST_F(Connections, TellTheWriterThatTheReaderIsGone) {
  for (const bool broken : {false, true}) {
    wire_ = {};
    Connect();
    answer_at_once_ = false;
    responders_.clear();
    ASSERT_TRUE(Give(kWatch));
    const auto writer = responders_[0]->Stream({});
    int gone = 0;
    writer->OnGone([&] { ++gone; });
    ASSERT_TRUE(Settle());
    wire_.broken = broken;
    EXPECT_FALSE(End());
    connection_.reset();
    EXPECT_EQ(gone, 1);
    EXPECT_FALSE(writer->Write(BodyPiece("x")));
    writer->OnGone([&] { ++gone; });
    EXPECT_EQ(gone, 2) << "told at once";
  }
}

TEST_F(Connections, NoticeAReaderThatIsGoneBehindWhatItSentAhead) {
  answer_at_once_ = false;
  ASSERT_TRUE(Give(kWatch));
  const auto writer = responders_[0]->Stream({});
  ASSERT_TRUE(Settle());
  ASSERT_TRUE(Give(std::string(500'000, 'x')));
  EXPECT_GT(wire_.to_server.size(), 300'000U) << "not all of it is read";
  EXPECT_FALSE(Settle(true, true));
}

TEST_F(Connections, BreakAStreamOffWhoseWriterIsGone) {
  answer_at_once_ = false;
  ASSERT_TRUE(Give(kWatch));
  responders_[0]->Stream({}).reset();
  EXPECT_FALSE(Settle());
}

TEST_F(Connections, AnswerForWhoForgets) {
  answer_at_once_ = false;
  ASSERT_TRUE(Give(kGet));
  responders_.clear();
  ASSERT_TRUE(Settle());
  EXPECT_THAT(Taken(), StartsWith("HTTP/1.1 500 "));
}

TEST_F(Connections, AnswerAClientThatClosedItsSideAfterAsking) {
  answer_at_once_ = false;
  ASSERT_TRUE(Give(StrCat(kGet, kGet)));
  ASSERT_TRUE(End());
  responders_[0]->Send({.body = "first"});
  ASSERT_TRUE(Settle());
  responders_[1]->Send({.body = "second"});
  EXPECT_FALSE(Settle());
  EXPECT_THAT(Taken(), testing::AllOf(HasSubstr("first"), EndsWith("second")));
  EXPECT_TRUE(wire_.writing_ended);
}

TEST_F(Connections, EndWithAClientThatStopsInTheMiddle) {
  for (const std::string_view part :
       {std::string_view(""), kGet.substr(0, 10),
        std::string_view("PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nab")}) {
    wire_ = {};
    Connect();
    ASSERT_TRUE(Give(part));
    EXPECT_FALSE(End());
    EXPECT_EQ(Taken(), "");
  }
  EXPECT_TRUE(requests_.empty());
}

TEST_F(Connections, SayWhatIsWrongThenReadOnWithoutLooking) {
  ASSERT_TRUE(
      Give("PUT /a HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer good\r\nContent-Length: 5000\r\n\r\n"));
  EXPECT_THAT(Taken(),
              testing::AllOf(StartsWith("HTTP/1.1 413 "), HasSubstr("Connection: close\r\n"),
                             HasSubstr(R"({"error":"the request's body is larger than 1000 bytes)")));
  EXPECT_TRUE(wire_.writing_ended);
  ASSERT_TRUE(Give(std::string(5000, 'x')));
  EXPECT_TRUE(wire_.to_server.empty());
  EXPECT_FALSE(End());
}

TEST_F(Connections, RefuseAStrangersLongBodyAsAStrangers) {
  ASSERT_TRUE(Give("PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: 5000\r\n\r\n"));
  EXPECT_THAT(Taken(), StartsWith("HTTP/1.1 401 "));
}

TEST_F(Connections, RefuseHeadersWithoutEnd) {
  ASSERT_TRUE(Give(StrCat("GET /", std::string(2000, 'a'))));
  EXPECT_THAT(Taken(), StartsWith("HTTP/1.1 431 "));
}

TEST_F(Connections, WaitOnlySoLongForARequest) {
  host_.options.head_timeout = absl::Seconds(30);
  for (const std::string_view part :
       {kGet.substr(0, 10), std::string_view("PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nab")}) {
    wire_ = {};
    Connect();
    ASSERT_TRUE(Give(part));
    const SteadyTime deadline = connection_->deadline();
    host_.now = host_.now + absl::Seconds(20);
    ASSERT_TRUE(Give("a"));
    EXPECT_EQ(connection_->deadline(), deadline) << "a byte now and then buys no time";
    EXPECT_TRUE(connection_->OnTime());
    EXPECT_THAT(Taken(), StartsWith("HTTP/1.1 408 "));
    EXPECT_FALSE(connection_->OnTime()) << "and does not wait for the client to close";
  }
}

TEST_F(Connections, CloseWhenIdleForTooLong) {
  ASSERT_TRUE(Give(kGet));
  EXPECT_EQ(connection_->deadline(), host_.now + host_.options.idle_timeout);
  EXPECT_FALSE(connection_->OnTime());
  EXPECT_TRUE(wire_.writing_ended);
}

TEST_F(Connections, WaitAsLongAsTheAnswerTakes) {
  answer_at_once_ = false;
  ASSERT_TRUE(Give(kWatch));
  EXPECT_EQ(connection_->deadline(), SteadyTime::Never());
  const auto writer = responders_[0]->Stream({});
  ASSERT_TRUE(Settle());
  EXPECT_EQ(connection_->deadline(), SteadyTime::Never());
  wire_.room = 0;
  writer->Write(BodyPiece("x"));
  ASSERT_TRUE(Settle());
  const SteadyTime deadline = connection_->deadline();
  EXPECT_EQ(deadline, host_.now + host_.options.write_timeout) << "a reader that takes nothing";
  host_.now = host_.now + absl::Seconds(1);
  writer->Write(BodyPiece("y"));
  ASSERT_TRUE(Settle());
  EXPECT_EQ(connection_->deadline(), deadline);
  wire_.room = 1000;
  ASSERT_TRUE(Settle());
  EXPECT_EQ(connection_->deadline(), SteadyTime::Never());
}

TEST_F(Connections, LetAnsweringOutliveTheConnection) {
  answer_at_once_ = false;
  ASSERT_TRUE(Give(kGet));
  connection_.reset();
  responders_[0]->Send({.body = "too late"});
  EXPECT_EQ(wire_.from_server, "");
}

// A writer that is owned by its own OnGone() must not be destroyed with a lock held.
TEST_F(Connections, LetTheGoneCallbackOwnTheWriter) {
  answer_at_once_ = false;
  ASSERT_TRUE(Give(kWatch));
  auto writer = responders_[0]->Stream({});
  BodyWriter* raw = writer.get();
  raw->OnGone([writer = std::move(writer)] {});
  raw->Close();
  ASSERT_TRUE(Settle());
  EXPECT_THAT(Taken(), EndsWith("0\r\n\r\n"));
}

}  // namespace
}  // namespace trainyard::http
