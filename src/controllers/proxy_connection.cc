#include "controllers/proxy_connection.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>
#include <vector>

namespace trainyard::controllers {
namespace {

constexpr std::size_t kPiece = std::size_t{64} * 1024;
// Of one connection before the others have their turn.
constexpr int kPiecesInARow = 16;
constexpr std::uint32_t kEvents = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;

bool WouldBlock(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

void SendSmallPiecesAtOnce(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

void ProxyConnection::Side::OnReady(std::uint32_t events) {
  if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) readable = true;
  if ((events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0) writable = true;
  connection_.Drive();
}

ProxyConnection::ProxyConnection(http::EventLoop& loop, Fd client, std::vector<Backend> backends,
                                 std::function<void()> closed)
    : loop_(loop),
      client_(*this),
      backend_(*this),
      backends_(std::move(backends)),
      closed_(std::move(closed)) {
  client_.fd = std::move(client);
}

ProxyConnection::~ProxyConnection() {
  Unwatch(client_);
  Unwatch(backend_);
}

void ProxyConnection::Start() {
  SendSmallPiecesAtOnce(client_.fd.get());
  if (!Watch(client_) || !ConnectNext()) Close(/*reset=*/true);
}

bool ProxyConnection::Watch(Side& side) {
  side.id = loop_.NewId();
  return loop_.Add(side.id, side.fd.get(), kEvents, side).ok();
}

void ProxyConnection::Unwatch(Side& side) {
  if (side.fd.valid()) loop_.Remove(side.id, side.fd.get());
}

bool ProxyConnection::ConnectNext() {
  while (next_ < backends_.size()) {
    const Backend& backend = backends_[next_++];
    sockaddr_in address{.sin_family = AF_INET, .sin_port = htons(backend.port)};
    if (::inet_pton(AF_INET, backend.ip.c_str(), &address.sin_addr) != 1) continue;
    Unwatch(backend_);
    backend_.fd = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!backend_.fd.valid()) return false;
    SendSmallPiecesAtOnce(backend_.fd.get());
    backend_.readable = backend_.writable = false;
    const int made = ::connect(backend_.fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address);
    if (made != 0 && errno != EINPROGRESS) continue;
    return Watch(backend_);
  }
  return false;
}

ProxyConnection::Result ProxyConnection::FinishConnect() {
  if (!backend_.writable) return Result::kIdle;
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(backend_.fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error == 0) {
    connecting_ = false;
    return Result::kMore;
  }
  return ConnectNext() ? Result::kIdle : Result::kBroken;
}

void ProxyConnection::Drive() {
  if (connecting_) {
    const Result result = FinishConnect();
    if (result == Result::kBroken) return Close(/*reset=*/true);
    if (result == Result::kIdle) return;
  }
  const Result to_backend = Move(client_, backend_);
  const Result to_client = to_backend == Result::kBroken ? Result::kBroken : Move(backend_, client_);
  if (to_client == Result::kBroken) return Close(/*reset=*/true);
  if (client_.shut && backend_.shut) return Close(/*reset=*/false);
  if (to_backend == Result::kMore || to_client == Result::kMore) loop_.waker()->Wake(client_.id);
}

bool ProxyConnection::Send(Side& side, const char* bytes, std::size_t count) {
  while (count > 0 && side.writable) {
    const ssize_t sent = ::send(side.fd.get(), bytes, count, MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes += sent;
      count -= static_cast<std::size_t>(sent);
    } else if (WouldBlock(errno)) {
      side.writable = false;
    } else if (errno != EINTR) {
      return false;
    }
  }
  // Whoever is idle holds no memory.
  side.unsent = std::string(bytes, count);
  return true;
}

bool ProxyConnection::Flush(Side& side) {
  if (side.unsent.empty() || !side.writable) return true;
  const std::string unsent = std::move(side.unsent);
  return Send(side, unsent.data(), unsent.size());
}

ProxyConnection::Result ProxyConnection::Move(Side& from, Side& to) {
  thread_local std::vector<char> piece(kPiece);  // on the heap: an array would be part of every thread
  for (int i = 0; i < kPiecesInARow; ++i) {
    if (!Flush(to)) return Result::kBroken;
    if (!to.unsent.empty()) return Result::kIdle;
    if (from.ended) {
      if (!to.shut) ::shutdown(to.fd.get(), SHUT_WR);
      to.shut = true;
      return Result::kIdle;
    }
    if (!from.readable) return Result::kIdle;
    const ssize_t got = ::recv(from.fd.get(), piece.data(), piece.size(), 0);
    if (got > 0) {
      if (!Send(to, piece.data(), static_cast<std::size_t>(got))) return Result::kBroken;
    } else if (got == 0) {
      from.ended = true;
    } else if (WouldBlock(errno)) {
      from.readable = false;
      return Result::kIdle;
    } else if (errno != EINTR) {
      return Result::kBroken;
    }
  }
  return Result::kMore;
}

void ProxyConnection::Close(bool reset) {
  if (reset) {
    // The other end learns that it was cut off, and does not take it for the end.
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    for (Side* side : {&client_, &backend_}) {
      if (side->fd.valid()) ::setsockopt(side->fd.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
  }
  const std::function<void()> closed = std::move(closed_);
  closed();
}

}  // namespace trainyard::controllers
