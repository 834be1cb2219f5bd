#include "controllers/service_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <future>
#include <map>
#include <mutex>
#include <thread>

#include "base/fd.h"
#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::controllers {
namespace {

using ::testing::HasSubstr;

// Addresses of this machine that nobody else uses: one for each test process.
std::string Ip(int host) {
  return StrCat("127.", 112 + (::getpid() >> 14) % 15, ".", (::getpid() >> 6) & 255, ".",
                (::getpid() & 63) * 4 + host);
}
const std::uint16_t kPort = 23456;
const kube::ObjectKey kService{"a", "s"};

sockaddr_in AddressOf(const std::string& ip, std::uint16_t port) {
  sockaddr_in address{.sin_family = AF_INET, .sin_port = htons(port)};
  EXPECT_EQ(::inet_pton(AF_INET, ip.c_str(), &address.sin_addr), 1);
  return address;
}

// A blocking socket; errno where it is not connected.
Fd Connect(const std::string& ip, std::uint16_t port, int* error = nullptr) {
  Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = AddressOf(ip, port);
  const int result = ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  if (error != nullptr) *error = result == 0 ? 0 : errno;
  // No test waits for ever.
  const timeval patience{.tv_sec = 30};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  return fd;
}

void SendAll(const Fd& fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = ::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL);
    ASSERT_GT(sent, 0);
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
}
// Up to the end, or so many bytes.
std::string Receive(const Fd& fd, std::size_t most = SIZE_MAX) {
  std::string all;
  char buffer[65536];
  while (all.size() < most) {
    const ssize_t got = ::recv(fd.get(), buffer, std::min(sizeof buffer, most - all.size()), 0);
    if (got <= 0) break;
    all.append(buffer, static_cast<std::size_t>(got));
  }
  return all;
}

// Listens on an address of this machine. What it does with a connection is up to the test.
class Server {
 public:
  explicit Server(const std::string& ip) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = AddressOf(ip, 0);
    EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(fd_.get(), 64), 0);
    socklen_t size = sizeof address;
    ::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    backend_ = {ip, ntohs(address.sin_port)};
  }
  const Backend& backend() const { return backend_; }
  Fd Accept() { return Fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC)); }
  void Close() { fd_.Reset(); }

 private:
  Fd fd_;
  Backend backend_;
};

class ServiceProxyTest : public ::testing::Test {
 protected:
  ServiceProxyTest() {
    ServiceProxy::Options options;
    options.on_failure = [this](const kube::ObjectKey& service, std::string_view message) {
      const std::lock_guard lock(mu_);
      failures_.emplace_back(StrCat(service.Str(), ": ", message));
    };
    options.retry = absl::Milliseconds(10);
    proxy_ = ServiceProxy::Start(std::move(options)).value();
  }
  void Set(std::vector<Backend> backends, std::uint16_t port = kPort, bool affinity = false) {
    proxy_->Set(kService, {{.ip = ip_, .port = port, .affinity = affinity, .backends = std::move(backends)}});
    proxy_->Flush();
  }
  std::vector<std::string> Failures() {
    const std::lock_guard lock(mu_);
    return failures_;
  }

  const std::string ip_ = Ip(1);
  std::mutex mu_;
  std::vector<std::string> failures_;
  std::unique_ptr<ServiceProxy> proxy_;
};

TEST_F(ServiceProxyTest, CarriesBytesBothWaysAndPassesEndsOn) {
  Server server(Ip(2));
  Set({server.backend()});
  const Fd client = Connect(ip_, kPort);
  const Fd backend = server.Accept();
  SendAll(client, "question");
  ::shutdown(client.get(), SHUT_WR);
  EXPECT_EQ(Receive(backend), "question") << "the backend sees the client's end";
  SendAll(backend, "answer");
  EXPECT_EQ(Receive(client, 6), "answer") << "the other way stays open";
  ::shutdown(backend.get(), SHUT_WR);
  EXPECT_EQ(Receive(client), "");
}

TEST_F(ServiceProxyTest, CarriesMoreThanFitsInItsBuffers) {
  Server server(Ip(2));
  Set({server.backend()});
  const Fd client = Connect(ip_, kPort);
  const Fd backend = server.Accept();
  std::string much(32 << 20, ' ');
  for (std::size_t i = 0; i < much.size(); ++i) much[i] = static_cast<char>('a' + (i * 7919 >> 8) % 26);
  // Both ways at once, and each reads only when it has sent all: only buffers that give way can do that.
  auto echo = std::async(std::launch::async, [&] {
    std::string got = Receive(backend, much.size());
    SendAll(backend, got);
    return got == much;
  });
  auto sender = std::async(std::launch::async, [&] { SendAll(client, much); });
  EXPECT_EQ(Receive(client, much.size()), much);
  EXPECT_TRUE(echo.get());
  sender.get();
}

TEST_F(ServiceProxyTest, ServesBackendsInTurn) {
  Server first(Ip(2));
  Server second(Ip(3));
  Set({first.backend(), second.backend()});
  for (int i = 0; i < 4; ++i) {
    const Fd client = Connect(ip_, kPort);
    const Fd backend = (i % 2 == 0 ? first : second).Accept();
    SendAll(backend, "x");
    EXPECT_EQ(Receive(client, 1), "x");
  }
}

TEST_F(ServiceProxyTest, LeadsAClientWithAffinityToTheSameBackend) {
  Server first(Ip(2));
  Server second(Ip(3));
  const std::vector<Backend> backends = {first.backend(), second.backend()};
  Set(backends, kPort, /*affinity=*/true);
  Server& chosen = ChooseFor("127.0.0.1", backends) == 0 ? first : second;
  for (int i = 0; i < 4; ++i) {
    const Fd client = Connect(ip_, kPort);
    const Fd backend = chosen.Accept();
    SendAll(backend, "x");
    EXPECT_EQ(Receive(client, 1), "x");
  }
}

TEST_F(ServiceProxyTest, RefusesWhereNobodyIsBehind) {
  Server server(Ip(2));
  int error = 0;
  Set({});
  Connect(ip_, kPort, &error);
  EXPECT_EQ(error, ECONNREFUSED);
  Set({server.backend()});
  Connect(ip_, kPort, &error);
  EXPECT_EQ(error, 0);
  proxy_->Set(kService, {});
  proxy_->Flush();
  Connect(ip_, kPort, &error);
  EXPECT_EQ(error, ECONNREFUSED);
}

TEST_F(ServiceProxyTest, TriesTheNextBackendWhenOneRefuses) {
  Server dead(Ip(2));
  Server alive(Ip(3));
  Set({dead.backend(), alive.backend()});
  dead.Close();
  for (int i = 0; i < 3; ++i) {
    const Fd client = Connect(ip_, kPort);
    const Fd backend = alive.Accept();
    SendAll(client, "x");
    EXPECT_EQ(Receive(backend, 1), "x");
  }
}

TEST_F(ServiceProxyTest, ResetsAClientWhenNoBackendAnswers) {
  Server dead(Ip(2));
  Set({dead.backend()});
  dead.Close();
  const Fd client = Connect(ip_, kPort);
  char byte = 0;
  EXPECT_EQ(::recv(client.get(), &byte, 1, 0), -1);
  EXPECT_EQ(errno, ECONNRESET);
}

TEST_F(ServiceProxyTest, PassesAResetOn) {
  Server server(Ip(2));
  Set({server.backend()});
  const Fd client = Connect(ip_, kPort);
  {
    const Fd backend = server.Accept();
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(backend.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  }
  char byte = 0;
  EXPECT_EQ(::recv(client.get(), &byte, 1, 0), -1);
  EXPECT_EQ(errno, ECONNRESET);
}

TEST_F(ServiceProxyTest, KeepsOpenConnectionsWhenTheEndpointsChange) {
  Server first(Ip(2));
  Server second(Ip(3));
  Set({first.backend()});
  const Fd client = Connect(ip_, kPort);
  const Fd backend = first.Accept();
  Set({second.backend()});
  SendAll(client, "still here");
  EXPECT_EQ(Receive(backend, 10), "still here");
  const Fd other = Connect(ip_, kPort);
  const Fd next = second.Accept();
  SendAll(other, "new");
  EXPECT_EQ(Receive(next, 3), "new");
  proxy_->Set(kService, {});
  proxy_->Flush();
  SendAll(backend, "even now");
  EXPECT_EQ(Receive(client, 8), "even now");
}

TEST_F(ServiceProxyTest, TellsOnceOfAPortThatItCannotOpenAndTriesAgain) {
  Server server(Ip(2));
  Fd taken(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;  // connections of the tests before may linger there
  ASSERT_EQ(::setsockopt(taken.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
  const sockaddr_in address = AddressOf(ip_, kPort);
  ASSERT_EQ(::bind(taken.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(taken.get(), 1), 0);
  Set({server.backend()});
  Set({server.backend()});
  ASSERT_EQ(Failures().size(), 1u);
  EXPECT_THAT(Failures()[0], HasSubstr(StrCat("a/s: cannot listen on ", ip_, ":", kPort)));
  taken.Reset();
  while (proxy_->Count().listeners == 0) std::this_thread::yield();
  int error = 0;
  Connect(ip_, kPort, &error);
  EXPECT_EQ(error, 0);
  EXPECT_EQ(Failures().size(), 1u);
}

TEST_F(ServiceProxyTest, ServesHundredsOfConnectionsAtOnce) {
  Server server(Ip(2));
  Set({server.backend()});
  std::vector<Fd> clients;
  std::vector<Fd> backends;
  for (int i = 0; i < 300; ++i) {
    clients.push_back(Connect(ip_, kPort));
    backends.push_back(server.Accept());
    SendAll(clients.back(), StrCat("c", i, "."));
  }
  EXPECT_EQ(proxy_->Count().connections, 300u);
  for (int i = 0; i < 300; ++i) {
    const std::string expected = StrCat("c", i, ".");
    EXPECT_EQ(Receive(backends[static_cast<std::size_t>(i)], expected.size()), expected);
  }
  clients.clear();
  for (const Fd& backend : backends) EXPECT_EQ(Receive(backend), "");
  backends.clear();
  while (proxy_->Count().connections > 0) std::this_thread::yield();
}

}  // namespace
}  // namespace trainyard::controllers
