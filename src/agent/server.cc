#include "agent/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace trainyard::agent {
namespace {

constexpr std::size_t kMaxLeaving = 8;

union SocketAddress {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
};

socklen_t SizeOf(const SocketAddress& address) {
  return address.any.sa_family == AF_INET ? sizeof address.v4 : sizeof address.v6;
}

std::optional<SocketAddress> ParseAddress(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  std::uint16_t port = 0;
  const char* const text_end = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data() + colon + 1, text_end, port);
  if (error != std::errc() || end != text_end) return std::nullopt;
  SocketAddress address{};
  const std::string host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    address.v6.sin6_family = AF_INET6;
    address.v6.sin6_port = htons(port);
    const std::string inner = host.substr(1, host.size() - 2);
    if (::inet_pton(AF_INET6, inner.c_str(), &address.v6.sin6_addr) != 1) return std::nullopt;
    return address;
  }
  address.v4.sin_family = AF_INET;
  address.v4.sin_port = htons(port);
  if (::inet_pton(AF_INET, host.c_str(), &address.v4.sin_addr) != 1) return std::nullopt;
  return address;
}

std::string PrintAddress(const SocketAddress& address) {
  char host[INET6_ADDRSTRLEN] = {};
  if (address.any.sa_family == AF_INET) {
    ::inet_ntop(AF_INET, &address.v4.sin_addr, host, sizeof host);
    return std::string(host) + ":" + std::to_string(ntohs(address.v4.sin_port));
  }
  ::inet_ntop(AF_INET6, &address.v6.sin6_addr, host, sizeof host);
  return "[" + std::string(host) + "]:" + std::to_string(ntohs(address.v6.sin6_port));
}

void Set(int socket, int level, int option, int value) {
  (void)::setsockopt(socket, level, option, &value, sizeof value);
}

// Of a client that waits, the end may never be told: its machine is gone.
void WatchForLife(int socket) {
  Set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  Set(socket, IPPROTO_TCP, TCP_KEEPIDLE, 30);
  Set(socket, IPPROTO_TCP, TCP_KEEPINTVL, 10);
  Set(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
  Set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
}

}  // namespace

Failure Server::Listen(const std::string& text) {
  const auto wanted = ParseAddress(text);
  if (!wanted) return {.stage = "'" + text + "' is no address: write 0.0.0.0:7896 or [::]:7896"};
  listener_ = OwnedFd(::socket(wanted->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener_.valid()) return Failure::Here("cannot make a socket");
  Set(listener_.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (wanted->any.sa_family == AF_INET6) Set(listener_.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (::bind(listener_.get(), &wanted->any, SizeOf(*wanted)) != 0 || ::listen(listener_.get(), 128) != 0) {
    return Failure::Here("cannot listen on " + text);
  }
  SocketAddress bound{};
  socklen_t size = sizeof bound;
  if (::getsockname(listener_.get(), &bound.any, &size) != 0)
    return Failure::Here("cannot listen on " + text);
  address_ = PrintAddress(bound);
  poller_.Watch(listener_.get(), Source::kListener, EPOLLIN);
  return Failure::None();
}

// The client that has said nothing for longest gives way.
bool Server::MakeRoom() {
  const auto staying =
      std::ranges::count_if(clients_, [](const Client& c) { return !c.connection->leaving(); });
  if (static_cast<std::size_t>(staying) < kMaxConnections) return true;
  auto longest = clients_.end();
  for (auto client = clients_.begin(); client != clients_.end(); ++client) {
    if (!client->connection->yields()) continue;
    if (longest == clients_.end() ||
        client->connection->silent_since() < longest->connection->silent_since()) {
      longest = client;
    }
  }
  if (longest == clients_.end()) return false;
  clients_.erase(longest);
  return true;
}

void Server::OnAccept(std::uint64_t now) {
  constexpr int kAtOnce = 16;
  for (int i = 0; i < kAtOnce; ++i) {
    OwnedFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) return;
    WatchForLife(socket.get());
    auto connection = std::make_unique<Connection>(std::move(socket), calls_, timeouts_, now);
    if (!MakeRoom()) connection->TurnAway();
    // Those that are leaving take room too; when there are many of them, one is not even told.
    if (clients_.size() >= kMaxConnections + kMaxLeaving) continue;
    clients_.push_back({.serial = next_serial_++, .connection = std::move(connection)});
  }
}

void Server::OnClient(std::uint32_t serial, std::uint32_t events, std::uint64_t now) {
  const auto client = std::ranges::find(clients_, serial, &Client::serial);
  if (client != clients_.end()) client->connection->OnEvents(events, now);
}

void Server::Advance(std::uint64_t now) {
  for (Client& client : clients_) {
    Connection& connection = *client.connection;
    connection.Advance(now);
    if (connection.over() || client.watched == connection.wanted()) continue;
    client.watched = connection.wanted();
    poller_.Watch(connection.fd(), Source::kClient, *client.watched, client.serial);
  }
  std::erase_if(clients_, [](const Client& client) { return client.connection->over(); });
}

std::uint64_t Server::deadline() const {
  std::uint64_t earliest = kNever;
  for (const Client& client : clients_) earliest = std::min(earliest, client.connection->deadline());
  return earliest;
}

bool Server::quiet() const {
  return std::ranges::none_of(clients_, [](const Client& client) { return client.connection->busy(); });
}

}  // namespace trainyard::agent
