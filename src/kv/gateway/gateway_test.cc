// The gateway over real sockets: clients that are right, wrong, slow and gone.
#include "kv/gateway/gateway.h"

#include <sys/socket.h>

#include <thread>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kv/memory_store.h"
#include "tests/support/tls_client.h"

namespace trainyard::kv {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// A connection of HTTP/1.1, as plain as can be.
class Client {
 public:
  explicit Client(std::uint16_t port) {
    auto connected = testing_support::ConnectTcp(port);
    EXPECT_TRUE(connected.ok()) << connected.status();
    if (connected.ok()) fd_ = *std::move(connected);
  }

  void Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;  // the server may have closed, and what it said is still to be read
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
  }
  void Request(std::string_view path, std::string_view body, std::string_view headers = "",
               std::string_view method = "POST") {
    Send(StrCat(method, " ", path, " HTTP/1.1\r\nHost: it\r\nContent-Length: ", body.size(), "\r\n", headers,
                "\r\n", body));
  }
  // Reads until `end` has come; all up to it. Less if the server closes.
  std::string ReadUntil(std::string_view end) {
    while (received_.find(end) == std::string::npos && Receive()) {
    }
    const std::size_t at = received_.find(end);
    const std::size_t size = at == std::string::npos ? received_.size() : at + end.size();
    std::string text = received_.substr(0, size);
    received_.erase(0, size);
    return text;
  }
  std::string ReadToEnd() {
    while (Receive()) {
    }
    return std::exchange(received_, "");
  }
  void Close() { fd_.Reset(); }

 private:
  bool Receive() {
    char buffer[65536];
    const ssize_t size = ::recv(fd_.get(), buffer, sizeof buffer, 0);
    if (size > 0) received_.append(buffer, static_cast<std::size_t>(size));
    return size > 0;
  }

  Fd fd_;
  std::string received_;
};

class GatewayTest : public testing::Test {
 protected:
  void SetUp() override { Start({.patience = absl::Milliseconds(5)}); }

  void Start(GatewayOptions options) {
    gateway_ = nullptr;
    auto started = Gateway::Start(*store_, std::move(options));
    ASSERT_TRUE(started.ok()) << started.status();
    gateway_ = *std::move(started);
    const std::string address = gateway_->address();
    port_ = *ParseNumber<std::uint16_t>(std::string_view(address).substr(address.rfind(':') + 1));
  }
  // "200 body"
  std::string Ask(std::string_view path, std::string_view body, std::string_view headers = "",
                  std::string_view method = "POST") const {
    Client client(port_);
    client.Request(path, body, StrCat("Connection: close\r\n", headers), method);
    const std::string answer = client.ReadToEnd();
    const std::size_t split = answer.find("\r\n\r\n");
    if (split == std::string::npos) return StrCat("cut: ", answer);
    return StrCat(answer.substr(9, 4), answer.substr(split + 4));
  }
  void AwaitStreams(std::size_t count) const {
    while (gateway_->streams() != count) std::this_thread::yield();
  }

  const std::unique_ptr<LocalStore> store_ = NewMemoryStore(Clock::System());
  std::unique_ptr<Gateway> gateway_;
  std::uint16_t port_ = 0;
};

constexpr char kWatchA[] = R"({"create_request":{"key":"YQ=="}})";

TEST_F(GatewayTest, AnswersAndStaysConnected) {
  Client client(port_);
  client.Request("/v3/kv/put", R"({"key":"YQ==","value":"MQ=="})");
  EXPECT_THAT(client.ReadUntil("}}"), HasSubstr(R"("revision":"2")"));
  client.Request("/v3/kv/range", R"({"key":"YQ=="})");
  EXPECT_THAT(
      client.ReadUntil("\"count\":\"1\"}"),
      HasSubstr(
          R"("kvs":[{"key":"YQ==","create_revision":"2","mod_revision":"2","version":"1","value":"MQ=="}])"));
  client.Request("/health", "", "", "GET");
  EXPECT_THAT(client.ReadUntil("}"), HasSubstr(R"({"health":"true"})"));
}

TEST_F(GatewayTest, RefusesWhatItDoesNotHave) {
  EXPECT_EQ(Ask("/v3/kv/nothing", "{}"), "404 Not Found\n");
  EXPECT_EQ(Ask("/", "", "", "GET"), "404 404 page not found\n");
  EXPECT_EQ(Ask("/v3/kv/range", "", "", "GET"), "405 Method Not Allowed\n");
  EXPECT_EQ(Ask("/health", "{}"), "405 Method Not Allowed\n");
  EXPECT_THAT(Ask("/v3/kv/range", "{"), StartsWith(R"(400 {"error":"the request is not what it should be)"));
  EXPECT_THAT(Ask("/v3/watch", "{"), StartsWith(R"(500 {"error":"the request ends in the middle)"));
  EXPECT_THAT(Ask("/v3/kv/txn", R"({"success":[{"request_txn":{}}]})"), StartsWith("501 "));
  EXPECT_THAT(Ask("/v3/kv/range", "{}", "Origin: http://evil.example\r\n"), StartsWith("403 "));
}

TEST_F(GatewayTest, BoundsWhatItReads) {
  const std::string_view refusal = R"(400 {"error":"etcdserver: request is too large")";
  const std::string large =
      StrCat(R"({"key":"YQ==","value":")", std::string(3 * kMaxRequestBytes, 'A'), "\"}");
  EXPECT_THAT(Ask("/v3/kv/put", large), StartsWith(refusal));
  const std::string value(kMaxRequestBytes / 3 * 4, 'A');
  EXPECT_THAT(Ask("/v3/kv/put", StrCat(R"({"key":"YQ==","value":")", value, "\"}")), StartsWith(refusal));
  Client chunked(port_);
  chunked.Send("POST /v3/kv/put HTTP/1.1\r\nHost: it\r\nTransfer-Encoding: chunked\r\n\r\n");
  const std::string chunk = StrCat("100000\r\n", std::string(0x100000, 'A'), "\r\n");
  for (int i = 0; i < 8; ++i) chunked.Send(chunk);
  chunked.Send("0\r\n\r\n");
  EXPECT_THAT(chunked.ReadUntil("}"), HasSubstr("request is too large"));
  Client endless(port_);
  endless.Send("POST /v3/kv/put HTTP/1.1\r\nHost: it\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 100; ++i) endless.Send(chunk);
  EXPECT_EQ(endless.ReadToEnd().find("200 OK"), std::string::npos) << "and it is not read for ever";
  EXPECT_THAT(Ask("/v3/kv/range", R"({"key":"YQ=="})"), StartsWith("200 ")) << "others go on";
}

TEST_F(GatewayTest, LetsInOnlyWhoHasTheToken) {
  Start({.token = "secret"});
  const auto range = [&](std::string_view headers) {
    return Ask("/v3/kv/range", R"({"key":"YQ=="})", headers);
  };
  const std::string_view refusal = R"(401 {"error":"etcdserver: invalid auth token")";
  EXPECT_THAT(range(""), StartsWith(refusal));
  EXPECT_THAT(range("Authorization: Bearer wrong\r\n"), StartsWith(refusal));
  EXPECT_THAT(range("token: secre\r\n"), StartsWith(refusal));
  EXPECT_THAT(range("Authorization: Bearer secret\r\n"), StartsWith("200 "));
  EXPECT_THAT(range("Authorization: secret\r\n"), StartsWith("200 "));
  EXPECT_THAT(range("token: secret\r\n"), StartsWith("200 "));
  EXPECT_THAT(range("token: secret\r\nAuthorization: Bearer of-a-proxy\r\n"), StartsWith("200 "));
  EXPECT_THAT(range("token: secret\r\nOrigin: http://page.example\r\n"), StartsWith("200 "));
  EXPECT_THAT(Ask("/v3/watch", kWatchA), StartsWith(refusal));
  EXPECT_THAT(Ask("/health", "", "", "GET"), StartsWith("200 "));
}

TEST_F(GatewayTest, StreamsAWatchLineByLine) {
  Client client(port_);
  client.Request("/v3/watch", kWatchA);
  EXPECT_THAT(client.ReadUntil("}}\n"), HasSubstr(R"("created":true)"));
  for (int i = 1; i <= 3; ++i) {
    ASSERT_TRUE(store_->Put("a", std::to_string(i)).ok());
    EXPECT_THAT(client.ReadUntil("}}\n"), HasSubstr(StrCat(R"("version":")", i, "\"")));
  }
}

TEST_F(GatewayTest, AnswersEveryKeepAliveAndEnds) {
  const Lease lease = *store_->GrantLease(absl::Seconds(60));
  const std::string answer = Ask("/v3/lease/keepalive", StrCat(R"({"ID":")", lease.id, R"("}{"ID":77})"));
  EXPECT_THAT(answer, HasSubstr(StrCat(R"("ID":")", lease.id, R"(","TTL":"60"}})")));
  EXPECT_THAT(answer, HasSubstr(R"("ID":"77"}})"));
  EXPECT_THAT(answer, testing::EndsWith("0\r\n\r\n")) << "the last chunk";
  EXPECT_THAT(Ask("/v3/lease/keepalive", ""), StartsWith("200 "));
}

TEST_F(GatewayTest, ForgetsWatchesWhoseClientsHaveGone) {
  Client left(port_);
  left.Request("/v3/watch", kWatchA);
  left.ReadUntil("}}\n");
  {
    Client gone(port_);
    gone.Request("/v3/watch", kWatchA);
    gone.ReadUntil("}}\n");
    AwaitStreams(2);
  }
  AwaitStreams(1);
  left.Close();
  AwaitStreams(0);
}

TEST_F(GatewayTest, LetsASlowWatchHoldUpNobodyAndLeavesNothingOutForIt) {
  constexpr int kPuts = 60;
  Client slow(port_);
  slow.Request("/v3/watch", kWatchA);
  slow.ReadUntil("}}\n");
  Client quick(port_);
  quick.Request("/v3/watch", kWatchA);
  quick.ReadUntil("}}\n");
  std::thread writer([&] {
    const std::string padding(kMaxRequestBytes / 2, 'x');
    for (int i = 1; i <= kPuts; ++i) EXPECT_TRUE(store_->Put("a", padding).ok());
  });
  const auto read_all = [](Client& client) {
    int seen = 0;
    while (seen < kPuts) {
      const std::string text = client.ReadUntil("\"version\":\"");
      const std::string number = client.ReadUntil("\"");
      ASSERT_EQ(number, StrCat(seen + 1, "\""));
      ++seen;
    }
  };
  read_all(quick);
  writer.join();
  EXPECT_THAT(Ask("/v3/kv/range", R"({"key":"Yg=="})"), StartsWith("200 "));
  read_all(slow);
}

TEST_F(GatewayTest, ClosesConnectionsOnWhichNothingMoves) {
  Start({.timeout = absl::Seconds(1)});
  Client idle(port_);
  Client half(port_);
  half.Send("POST /v3/kv/put HTTP/1.1\r\nHost: it\r\nContent-Length: 100\r\n\r\n{");
  EXPECT_EQ(idle.ReadToEnd(), "");
  EXPECT_EQ(half.ReadToEnd().find("200"), std::string::npos);
}

TEST_F(GatewayTest, EndsPromptlyAndTellsItsWatches) {
  Client watching(port_);
  watching.Request("/v3/watch", kWatchA);
  watching.ReadUntil("}}\n");
  Client stuck(port_);
  stuck.Request("/v3/watch", R"({"create_request":{"key":"Yg=="}})");
  stuck.ReadUntil("}}\n");
  Client half(port_);
  half.Send("POST /v3/kv/put HTTP/1.1\r\nHost: it\r\nContent-Length: 100\r\n\r\n{");
  AwaitStreams(2);
  const std::string padding(kMaxRequestBytes / 2, 'x');
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(store_->Put("b", padding).ok());
  gateway_ = nullptr;  // or this test never ends
  EXPECT_THAT(watching.ReadToEnd(), HasSubstr(R"({"error":{"grpc_code":14,"http_code":503,)"));
}

TEST_F(GatewayTest, ServesManyAtOnceWhileWatchesComeAndGo) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 40; ++i) {
        Client client(port_);
        client.Request("/v3/watch", kWatchA);
        EXPECT_THAT(client.ReadUntil("}}\n"), HasSubstr(R"("created":true)"));
        EXPECT_THAT(Ask("/v3/kv/put", R"({"key":"YQ==","value":"MQ=="})"), StartsWith("200 "));
        EXPECT_THAT(client.ReadUntil("}}\n"), HasSubstr("events"));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  AwaitStreams(0);
}

TEST_F(GatewayTest, SurvivesBytesThatNobodyMeant) {
  for (const std::string& bytes : std::vector<std::string>{
           "\r\n\r\n", "GET", "POST /v3/kv/put HTTP/9.9\r\n\r\n", std::string(100'000, 'x'),
           "POST /v3/kv/put HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
           "POST /v3/kv/put HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
           StrCat("POST /v3/kv/put HTTP/1.1\r\nX: ", std::string(100'000, 'y'), "\r\n\r\n"),
           std::string("\x16\x03\x01\x00\xff\x01", 6)}) {
    Client client(port_);
    client.Send(bytes);
    client.Close();
  }
  EXPECT_THAT(Ask("/v3/kv/range", R"({"key":"YQ=="})"), StartsWith("200 "));
}

TEST_F(GatewayTest, EndsWhileBadRequestsAreUnderWay) {
  for (int round = 0; round < 100; ++round) {
    std::vector<Client> clients;
    for (int i = 0; i < 8; ++i) clients.emplace_back(port_);
    for (Client& client : clients) client.Send("POST /v3/kv/put HTTP/1.1\r\nContent-Length: -1\r\n\r\n");
    Start({});
  }
  EXPECT_THAT(Ask("/v3/kv/range", R"({"key":"YQ=="})"), StartsWith("200 "));
}

TEST_F(GatewayTest, SaysWhyItCannotListen) {
  const absl::Status taken = Gateway::Start(*store_, {.address = gateway_->address()}).status();
  EXPECT_TRUE(absl::IsUnavailable(taken)) << taken;
  EXPECT_THAT(Message(taken),
              HasSubstr(StrCat("cannot listen at ", gateway_->address(), ": Address already")));
  EXPECT_TRUE(absl::IsInvalidArgument(Gateway::Start(*store_, {.address = "nowhere"}).status()));
}

}  // namespace
}  // namespace trainyard::kv
