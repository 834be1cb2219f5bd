#include "operator/status_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::ops {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// The whole answer.
std::string Ask(std::uint16_t port, std::string_view request) {
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return "(refused)";
  const std::string text = StrCat(request, " HTTP/1.1\r\nHost: x\r\n\r\n");
  if (::write(socket.get(), text.data(), text.size()) < 0) return "(cut off)";
  std::string answer;
  char buffer[4096];
  for (ssize_t size; (size = ::read(socket.get(), buffer, sizeof buffer)) > 0;)
    answer.append(buffer, static_cast<std::size_t>(size));
  return answer;
}

std::unique_ptr<StatusServer> Serve() {
  auto server = StatusServer::Start(
      "127.0.0.1:0", {{"/healthz", [] { return StatusPage{.body = "ok\n"}; }},
                      {"/readyz", [] { return StatusPage{.code = 503, .body = "not yet\n"}; }}});
  EXPECT_TRUE(server.ok()) << server.status();
  return *std::move(server);
}

TEST(StatusServer, AnswersWithItsPages) {
  const auto server = Serve();
  ASSERT_NE(server->port(), 0);
  EXPECT_THAT(Ask(server->port(), "GET /healthz"),
              testing::AllOf(StartsWith("HTTP/1.1 200 "), testing::EndsWith("ok\n")));
  EXPECT_THAT(Ask(server->port(), "GET /readyz"),
              testing::AllOf(StartsWith("HTTP/1.1 503 "), testing::EndsWith("not yet\n")));
  EXPECT_THAT(Ask(server->port(), "HEAD /healthz"), testing::Not(HasSubstr("ok\n")));
}

TEST(StatusServer, SaysWhichPagesThereAre) {
  const auto server = Serve();
  EXPECT_THAT(Ask(server->port(), "GET /nothing"),
              testing::AllOf(StartsWith("HTTP/1.1 404 "), HasSubstr("/healthz /readyz")));
  EXPECT_THAT(Ask(server->port(), "POST /healthz"), StartsWith("HTTP/1.1 405 "));
}

TEST(StatusServer, DoesNotListenWhereItCannot) {
  const auto server = Serve();
  const auto taken = StatusServer::Start(StrCat("127.0.0.1:", server->port()), {});
  EXPECT_EQ(taken.status().code(), absl::StatusCode::kUnavailable) << taken.status();
  for (const char* text : {"", "8080", "host:8080", "127.0.0.1:", ":x", ":70000", "127.0.0.1:80,90"}) {
    EXPECT_EQ(StatusServer::Start(text, {}).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace trainyard::ops
