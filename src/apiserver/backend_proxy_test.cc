#include "apiserver/backend_proxy.h"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apiserver/proxy_testing.h"
#include "base/mutex.h"
#include "base/text.h"

namespace trainyard::apiserver {
namespace {

using proxy_testing::Accepted;
using proxy_testing::Client;
using proxy_testing::Listener;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class BackendProxies : public testing::Test {
 protected:
  ProxyRequest To(std::uint16_t port, std::string_view method = "GET") {
    return {.method = std::string(method),
            .target = **ParseProxyTarget("/api/v1/namespaces/ns/services/web/proxy/a?b=c"),
            .backend = {.ip = "127.0.0.1", .port = port},
            .headers = {{"Host", "h"}, {"X-A", "1"}},
            .body_length = 0};
  }
  std::shared_ptr<Client> Ask(ProxyRequest request, std::shared_ptr<http::RequestBody> body = nullptr,
                              bool slow = false) {
    auto client = std::make_shared<Client>(slow);
    proxy_->Carry(std::move(request), std::move(body), client->responder());
    return client;
  }

  Listener listener_;
  std::unique_ptr<BackendProxy> proxy_ = BackendProxy::Start().value();
};

TEST_F(BackendProxies, CarryARequestAndItsAnswer) {
  const auto client = Ask(To(listener_.port()));
  Accepted backend = listener_.Accept();
  EXPECT_THAT(backend.ReadHead(), testing::AllOf(StartsWith("GET /a?b=c HTTP/1.1\r\nHost: h\r\nX-A: 1\r\n"),
                                                 EndsWith("Connection: close\r\n\r\n")));
  backend.Write("HTTP/1.1 418 Teapot\r\nContent-Type: text/x\r\nContent-Length: 5\r\nX-B: 2\r\n\r\nshort");
  EXPECT_TRUE(client->WaitForEnd());
  const kube::Response head = client->WaitForHead();
  EXPECT_EQ(head.code, 418);
  EXPECT_EQ(head.content_type, "text/x");
  EXPECT_EQ(head.Header("x-b"), "2");
  EXPECT_EQ(client->WaitForText("short"), "short");
}

TEST_F(BackendProxies, PassEachPieceOnAsItComesAndEndWithTheBackend) {
  const auto client = Ask(To(listener_.port()));
  Accepted backend = listener_.Accept();
  backend.ReadHead();
  backend.Write("HTTP/1.0 200 OK\r\n\r\n");
  EXPECT_EQ(client->WaitForHead().code, 200) << "before there is a body";
  for (const char* piece : {"one\n", "two\n", "three\n"}) {
    backend.Write(piece);
    EXPECT_THAT(client->WaitForText(piece), EndsWith(piece));
  }
  backend.Close();
  EXPECT_TRUE(client->WaitForEnd());
}

TEST_F(BackendProxies, LeaveABackendWhoseReaderHasGone) {
  for (const bool answering : {false, true}) {
    const auto client = Ask(To(listener_.port()));
    Accepted backend = listener_.Accept();
    backend.ReadHead();
    if (answering) {
      backend.Write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n");
      EXPECT_EQ(client->WaitForText("a"), "a");
    }
    client->Leave();
    EXPECT_TRUE(backend.AtEnd()) << answering;
  }
}

TEST_F(BackendProxies, SayThatNobodyIsThere) {
  std::uint16_t port = 0;
  {
    const Listener gone;
    port = gone.port();
  }
  const auto client = Ask(To(port));
  EXPECT_EQ(client->WaitForHead().code, 503);
  const std::string text = client->WaitForText("}");
  EXPECT_THAT(text, HasSubstr(R"("reason":"ServiceUnavailable")"));
  EXPECT_THAT(text, HasSubstr(StrCat("error trying to reach service: dial tcp 127.0.0.1:", port,
                                     ": connect: connection refused")));
  ProxyRequest nowhere = To(port);
  nowhere.backend.ip = "nowhere";
  EXPECT_EQ(Ask(std::move(nowhere))->WaitForHead().code, 503);
}

TEST_F(BackendProxies, SayThatABackendGaveNoAnswer) {
  for (const char* said : {"", "HTTP/1.1 2", "SSH-2.0-x\r\n", "HTTP/1.1 101 Switching Protocols\r\n\r\n"}) {
    const auto client = Ask(To(listener_.port()));
    Accepted backend = listener_.Accept();
    backend.ReadHead();
    backend.Write(said);
    backend.Close();
    EXPECT_EQ(client->WaitForHead().code, 503) << said;
    EXPECT_THAT(client->WaitForText("}"), HasSubstr("error trying to reach service: ")) << said;
  }
}

TEST_F(BackendProxies, CutAnAnswerOffWhereTheBackendBreaks) {
  const auto client = Ask(To(listener_.port()));
  Accepted backend = listener_.Accept();
  backend.ReadHead();
  backend.Write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome");
  EXPECT_EQ(client->WaitForText("some"), "some");
  backend.Close();
  EXPECT_FALSE(client->WaitForEnd()) << "not as if that were all";
}

TEST_F(BackendProxies, ReadABackendNoFasterThanTheClient) {
  constexpr std::size_t kAll = std::size_t{32} << 20;
  const auto client = Ask(To(listener_.port()), nullptr, /*slow=*/true);
  Accepted backend = listener_.Accept();
  backend.ReadHead();
  std::thread writer([&] {
    EXPECT_TRUE(backend.Write(StrCat("HTTP/1.1 200 OK\r\nContent-Length: ", kAll, "\r\n\r\n")));
    EXPECT_TRUE(backend.Write(std::string(kAll, 'x')));
  });
  while (client->Drain()) {
  }
  writer.join();
  EXPECT_TRUE(client->WaitForEnd());
  EXPECT_EQ(client->WaitForText("x").size(), kAll);
  EXPECT_LE(client->most_backlog(), std::size_t{400} << 10);
}

TEST_F(BackendProxies, TakeABodyNoFasterThanTheBackend) {
  constexpr std::size_t kAll = std::size_t{64} << 20;
  Mutex mu;
  CondVar changed;
  bool room = false;
  const auto body = std::make_shared<http::RequestBody>([&] {
    MutexLock lock(mu);
    room = true;
    changed.SignalAll();
  });
  ProxyRequest request = To(listener_.port(), "POST");
  request.body_length = kAll;
  const auto client = Ask(std::move(request), body);
  Accepted backend = listener_.Accept();
  EXPECT_THAT(backend.ReadHead(), HasSubstr(StrCat("Content-Length: ", kAll, "\r\n")));
  std::size_t given = 0;
  std::size_t read = 0;
  std::thread giver([&] {
    const std::string piece(std::size_t{256} << 10, 'x');
    for (; given < kAll; given += piece.size()) {
      MutexLock lock(mu);
      while (!body->HasRoom() && !room) changed.Wait(mu);
      room = false;
      body->Add(piece);
    }
    body->End();
  });
  read = backend.ReadAll(kAll);
  giver.join();
  EXPECT_EQ(read, kAll);
  backend.Write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  EXPECT_TRUE(client->WaitForEnd());
}

TEST_F(BackendProxies, SendABodyOfUnknownLengthInChunks) {
  const auto body = std::make_shared<http::RequestBody>([] {});
  ProxyRequest request = To(listener_.port(), "POST");
  request.body_length.reset();
  const auto client = Ask(std::move(request), body);
  Accepted backend = listener_.Accept();
  EXPECT_THAT(backend.ReadHead(), HasSubstr("Transfer-Encoding: chunked\r\n"));
  body->Add("hello");
  EXPECT_EQ(backend.ReadTo("hello\r\n"), "5\r\nhello\r\n") << "as it comes";
  backend.Write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n");
  EXPECT_EQ(client->WaitForText("hi"), "hi") << "before the request is whole";
  body->Add("again");
  EXPECT_EQ(backend.ReadTo("again\r\n"), "5\r\nagain\r\n");
  body->End();
  EXPECT_EQ(backend.ReadTo("0\r\n\r\n"), "0\r\n\r\n");
  backend.Write("0\r\n\r\n");
  EXPECT_TRUE(client->WaitForEnd());
}

TEST_F(BackendProxies, TakeTheAnswerOfABackendThatDoesNotWantTheBody) {
  const auto body = std::make_shared<http::RequestBody>([] {});
  ProxyRequest request = To(listener_.port(), "PUT");
  request.body_length = std::size_t{1} << 30;
  const auto client = Ask(std::move(request), body);
  Accepted backend = listener_.Accept();
  backend.ReadHead();
  backend.Write("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno");
  EXPECT_TRUE(client->WaitForEnd());
  EXPECT_EQ(client->WaitForHead().code, 413);
  EXPECT_EQ(client->WaitForText("no"), "no");
}

TEST_F(BackendProxies, PassTheHeadOfAHeadOn) {
  const auto client = Ask(To(listener_.port(), "HEAD"));
  Accepted backend = listener_.Accept();
  backend.ReadHead();
  backend.Write("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
  EXPECT_TRUE(client->WaitForEnd()) << "without waiting for a body";
  EXPECT_EQ(client->WaitForHead().Header("Content-Length"), "1000");
}

TEST_F(BackendProxies, AnswerEverybodyWhenTheyStop) {
  const auto client = Ask(To(listener_.port()));
  Accepted backend = listener_.Accept();
  backend.ReadHead();
  proxy_.reset();
  EXPECT_EQ(client->WaitForHead().code, 503);
  EXPECT_TRUE(backend.AtEnd());
}

}  // namespace
}  // namespace trainyard::apiserver
