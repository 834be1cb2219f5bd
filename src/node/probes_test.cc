#include "node/probes.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <thread>

#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::node {
namespace {

using ::testing::HasSubstr;

TEST(ProbePorts, AreNumbersOrNamesOfTheContainer) {
  ContainerSpec container;
  container.ports = {{.name = "http", .number = 8080}, {.name = "", .number = 1}};
  EXPECT_EQ(ResolvePort("80", container), 80);
  EXPECT_EQ(ResolvePort("http", container), 8080);
  for (const char* wrong : {"0", "65536", "-1", "grpc", ""})
    EXPECT_EQ(ResolvePort(wrong, container), 0) << wrong;
}

TEST(HttpProbe, SendsItsHeadersAndLetsThemReplaceItsOwn) {
  HttpAction action{.path = "/healthz?x=1"};
  EXPECT_EQ(PrintHttpRequest(action, "127.64.0.1", 80),
            "GET /healthz?x=1 HTTP/1.1\r\nHost: 127.64.0.1:80\r\nUser-Agent: kube-probe/trainyard\r\nAccept: "
            "*/*\r\n"
            "Connection: close\r\n\r\n");
  action.headers = {{"HOST", "x"}, {"A", "b"}};
  const std::string request = PrintHttpRequest(action, "127.64.0.1", 80);
  EXPECT_THAT(request, HasSubstr("\r\nHOST: x\r\nA: b\r\n\r\n"));
  EXPECT_EQ(request.find("Host: 127"), std::string::npos);
}

TEST(HttpProbe, ReadsTheCodeOfAnAnswer) {
  EXPECT_EQ(ParseHttpCode("HTTP/1.1 200 OK\r\n"), 200);
  EXPECT_EQ(ParseHttpCode("HTTP/1.0 503\n"), 503);
  for (const char* wrong : {"", "HTTP/1.1 200", "SSH-2.0\n", "HTTP/1.1\n", "HTTP/1.1 xyz\n"}) {
    EXPECT_EQ(ParseHttpCode(wrong), std::nullopt) << wrong;
  }
}

// A server that gives each connection the same answer.
class Server {
 public:
  explicit Server(std::string answer)
      : answer_(std::move(answer)), socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(socket_.get(), 8), 0);
    EXPECT_EQ(::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] {
      while (true) {
        const Fd client(::accept(socket_.get(), nullptr, nullptr));
        if (!client.valid()) return;
        char room[1024];
        (void)!::read(client.get(), room, sizeof room);
        (void)!::write(client.get(), answer_.data(), answer_.size());
      }
    });
  }
  ~Server() {
    ::shutdown(socket_.get(), SHUT_RDWR);
    thread_.join();
  }
  int port() const { return port_; }

 private:
  const std::string answer_;
  Fd socket_;
  int port_ = 0;
  std::thread thread_;
};

ProbeOutcome Probe(int port, std::string request, absl::Duration timeout = absl::Seconds(10)) {
  auto loop = Loop::Make(Clock::System());
  std::optional<ProbeOutcome> outcome;
  const auto probe =
      NetworkProbe::Begin(**loop, {.address = "127.0.0.1", .port = port, .request = std::move(request)},
                          timeout, [&](ProbeOutcome o) { outcome = std::move(o); });
  EXPECT_FALSE(outcome) << "told before the caller could know";
  while (!outcome) (*loop)->Turn(absl::Seconds(1));
  return *outcome;
}

TEST(HttpProbe, SucceedsWithAnyAnswerThatIsNoError) {
  for (const auto& [code, ok] :
       {std::pair(200, true), {204, true}, {302, true}, {404, false}, {500, false}}) {
    Server server(StrCat("HTTP/1.1 ", code, " X\r\n\r\nbody"));
    const ProbeOutcome outcome = Probe(server.port(), "GET / HTTP/1.1\r\n\r\n");
    EXPECT_EQ(outcome.ok, ok) << code;
    if (!ok) {
      EXPECT_EQ(outcome.message, StrCat("HTTP probe failed with statuscode: ", code));
    }
  }
}

TEST(HttpProbe, FailsWithWhatIsNoHttp) {
  Server server("hello\n");
  EXPECT_EQ(Probe(server.port(), "GET / HTTP/1.1\r\n\r\n").message, "the answer is no HTTP");
}

TEST(TcpProbe, SucceedsOnceConnectedAndFailsWhereNobodyListens) {
  int port = 0;
  {
    Server server("");
    port = server.port();
    EXPECT_TRUE(Probe(port, "").ok);
  }
  EXPECT_THAT(Probe(port, "").message, HasSubstr("Connection refused"));
  EXPECT_THAT(Probe(0, "").message, HasSubstr("no such address"));
}

TEST(HttpProbe, GivesUpOnAServerThatDoesNotAnswer) {
  const Fd silent(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(silent.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(silent.get(), 8), 0);
  ASSERT_EQ(::getsockname(silent.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  EXPECT_EQ(Probe(ntohs(address.sin_port), "GET / HTTP/1.1\r\n\r\n", absl::Milliseconds(20)).message,
            "timed out");
}

}  // namespace
}  // namespace trainyard::node
