#include "http/service.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vector>

#include "base/fd.h"
#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::http {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

Fd Connect(std::uint16_t port) {
  Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  return socket;
}

Fd Connect(const Service& service) {
  const std::string address = service.address();
  return Connect(*ParseNumber<std::uint16_t>(std::string_view(address).substr(address.rfind(':') + 1)));
}

bool Send(const Fd& socket, std::string_view bytes) {
  return ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

std::string ReadToEnd(const Fd& socket) {
  std::string answer;
  char buffer[4096];
  for (ssize_t size; (size = ::read(socket.get(), buffer, sizeof buffer)) > 0;)
    answer.append(buffer, static_cast<std::size_t>(size));
  return answer;
}

std::string Ask(const Service& service, std::string_view head) {
  const Fd socket = Connect(service);
  Send(socket, StrCat(head, "\r\nHost: x\r\nConnection: close\r\n\r\n"));
  return ReadToEnd(socket);
}

constexpr std::string_view kAllowed = "GET /x HTTP/1.1\r\nAuthorization: yes";

// "yes" may ask for everything, others for /public only.
ServiceVerdict JudgeByHeader(const ServiceRequest& head) {
  if (head.Header("Authorization") == "yes") return {.trusted = true};
  if (head.path == "/public") return {};
  return {.refusal = Response{.code = 401, .body = "no"}};
}

std::unique_ptr<Service> Serve(absl::Duration request_timeout = absl::Minutes(10)) {
  auto service = Service::Start({.request_timeout = request_timeout, .judge = JudgeByHeader},
                                [](const ServiceRequest& request, ServiceExchange& exchange) {
                                  exchange.Send({.body = StrCat(request.path, " ", request.body.size())});
                                });
  EXPECT_TRUE(service.ok()) << service.status();
  return *std::move(service);
}

TEST(Service, AnswersAClientAmongManySilentOnes) {
  const auto service = Serve();
  std::vector<Fd> silent;
  for (int i = 0; i < 1000; ++i) {
    silent.push_back(Connect(*service));
    if (i % 3 == 1) Send(silent.back(), "GET /x HT");
    if (i % 3 == 2) Send(silent.back(), "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nx");
  }
  EXPECT_THAT(Ask(*service, kAllowed), EndsWith("/x 0"));
  EXPECT_THAT(Ask(*service, "GET /public HTTP/1.1"), EndsWith("/public 0"));
}

TEST(Service, KeepsAClientThatItKnowsThroughAFlood) {
  const auto service = Serve();
  const Fd known = Connect(*service);
  const std::string request = StrCat(kAllowed, "\r\nHost: x\r\n\r\n");
  char buffer[4096];
  ASSERT_TRUE(Send(known, request));
  ASSERT_GT(::read(known.get(), buffer, sizeof buffer), 0);
  std::vector<Fd> silent;
  for (int i = 0; i < 500; ++i) silent.push_back(Connect(*service));
  EXPECT_THAT(Ask(*service, kAllowed), EndsWith("/x 0"));
  ASSERT_TRUE(Send(known, request));
  const ssize_t size = ::read(known.get(), buffer, sizeof buffer);
  ASSERT_GT(size, 0);
  EXPECT_THAT(std::string(buffer, static_cast<std::size_t>(size)), EndsWith("/x 0"));
}

TEST(Service, AcceptsAfterEveryBurst) {
  const auto service = Serve();
  for (int burst = 0; burst < 10; ++burst) {
    std::vector<Fd> all;
    for (int i = 0; i < 300; ++i) all.push_back(Connect(*service));
    all.clear();
    ASSERT_THAT(Ask(*service, kAllowed), EndsWith("/x 0")) << burst;
  }
}

TEST(Service, ClosesAConnectionWhoseRequestDripsForTooLong) {
  const auto service = Serve(absl::Milliseconds(300));
  for (const std::string_view begin :
       {"GET /x HTTP/1.1\r\nX: ",
        "POST /x HTTP/1.1\r\nAuthorization: yes\r\nContent-Length: 999999\r\n\r\n"}) {
    const Fd socket = Connect(*service);
    ASSERT_TRUE(Send(socket, begin));
    pollfd closed{.fd = socket.get(), .events = POLLIN, .revents = 0};
    for (int i = 0; i < 6000 && ::poll(&closed, 1, 10) == 0; ++i) Send(socket, "x");
    EXPECT_NE(closed.revents, 0) << begin;
  }
}

TEST(Service, RefusesByTheHeadAndKeepsNothingOfTheBody) {
  const auto service = Serve();
  const Fd socket = Connect(*service);
  constexpr std::size_t kBody = std::size_t{4} << 20;  // more than it would take
  ASSERT_TRUE(Send(socket, StrCat("POST /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: ",
                                  kBody, "\r\n\r\n")));
  for (std::size_t sent = 0; sent < kBody; sent += 65536) ASSERT_TRUE(Send(socket, std::string(65536, 'x')));
  EXPECT_THAT(ReadToEnd(socket), StartsWith("HTTP/1.1 401 "));
}

TEST(Service, DoesNotEndAPathAtANul) {
  const auto service = Serve();
  const auto asked = [&](std::string_view path) {
    return Ask(*service, StrCat("GET ", path, " HTTP/1.1\r\nAuthorization: yes"));
  };
  EXPECT_THAT(asked("/a%20b%2Fc"), HasSubstr("/a b/c 0"));
  EXPECT_THAT(asked("/x%00y"), HasSubstr("/x%00y 0"));
  EXPECT_THAT(asked("/x%zz%4"), HasSubstr("/x%zz%4 0"));
  EXPECT_THAT(Ask(*service, "GET /public%00 HTTP/1.1"), StartsWith("HTTP/1.1 401"));
}

TEST(Service, RefusesABodyThatIsTooLong) {
  const auto service = Serve();
  const Fd socket = Connect(*service);
  ASSERT_TRUE(
      Send(socket, StrCat(kAllowed, "\r\nHost: x\r\nConnection: close\r\nContent-Length: 2097152\r\n\r\n")));
  for (int i = 0; i < 32; ++i) ASSERT_TRUE(Send(socket, std::string(65536, 'x')));
  EXPECT_THAT(ReadToEnd(socket), StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(Ask(*service, "GET x HTTP/1.1\r\nAuthorization: yes"),
              HasSubstr("the target must begin with '/'"));
}

// The whole answer.
std::string AskPage(std::uint16_t port, std::string_view request) {
  const Fd socket = Connect(port);
  Send(socket, StrCat(request, " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
  return ReadToEnd(socket);
}

std::unique_ptr<Server> ServeTwoPages() {
  auto server =
      ServePages("127.0.0.1:0", {{"/healthz", [] { return Response{.body = "ok\n"}; }},
                                 {"/readyz", [] { return Response{.code = 503, .body = "not yet\n"}; }}});
  EXPECT_TRUE(server.ok()) << server.status();
  return *std::move(server);
}

TEST(ServePages, AnswersWithItsPages) {
  const auto server = ServeTwoPages();
  ASSERT_NE(server->port(), 0);
  EXPECT_THAT(AskPage(server->port(), "GET /healthz"),
              testing::AllOf(StartsWith("HTTP/1.1 200 "), testing::EndsWith("ok\n")));
  EXPECT_THAT(AskPage(server->port(), "GET /readyz"),
              testing::AllOf(StartsWith("HTTP/1.1 503 "), testing::EndsWith("not yet\n")));
  EXPECT_THAT(AskPage(server->port(), "HEAD /healthz"), testing::Not(HasSubstr("ok\n")));
}

TEST(ServePages, SaysWhichPagesThereAre) {
  const auto server = ServeTwoPages();
  EXPECT_THAT(AskPage(server->port(), "GET /nothing"),
              testing::AllOf(StartsWith("HTTP/1.1 404 "), HasSubstr("/healthz /readyz")));
  EXPECT_THAT(AskPage(server->port(), "POST /healthz"), StartsWith("HTTP/1.1 405 "));
}

TEST(ServePages, DoesNotListenWhereItCannot) {
  const auto server = ServeTwoPages();
  const auto taken = ServePages(StrCat("127.0.0.1:", server->port()), {});
  EXPECT_EQ(taken.status().code(), absl::StatusCode::kUnavailable) << taken.status();
  for (const char* text : {"", "8080", "host:8080", "127.0.0.1:", ":x", ":70000", "127.0.0.1:80,90"}) {
    EXPECT_EQ(ServePages(text, {}).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace trainyard::http
