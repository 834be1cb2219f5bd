#include "http/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <thread>

#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "http/connection.h"
#include "http/event_loop.h"
#include "http/openssl.h"
#include "http/response_head.h"
#include "http/tls.h"

namespace trainyard::http {
namespace {

constexpr std::uint32_t kAllEvents = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
constexpr int kAcceptsPerTurn = 64;
// Deadlines are looked at no more often than this.
constexpr absl::Duration kTick = absl::Milliseconds(50);
// How long accepting rests when the system has no descriptors left.
constexpr absl::Duration kAcceptRest = absl::Milliseconds(100);

struct ListenAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

absl::StatusOr<ListenAddress> ParseAddress(const std::string& address, std::uint16_t port) {
  ListenAddress parsed;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&parsed.storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&parsed.storage);
  if (::inet_pton(AF_INET, address.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    parsed.size = sizeof *v4;
  } else if (::inet_pton(AF_INET6, address.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    parsed.size = sizeof *v6;
  } else {
    return absl::InvalidArgumentError(StrCat("\"", address, "\" is not an IP address to listen on"));
  }
  return parsed;
}

absl::StatusOr<Fd> Listen(const std::string& address, std::uint16_t port) {
  const std::string what = StrCat("cannot listen on ", address, " port ", port);
  TY_ASSIGN_OR_RETURN(ListenAddress to, ParseAddress(address, port));
  Fd fd(::socket(to.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return ErrnoStatus(errno, what);
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(fd.get(), to.get(), to.size) != 0 || ::listen(fd.get(), 4096) != 0) {
    if (errno == EADDRINUSE) {
      return absl::UnavailableError(
          StrCat(what, ": another process has the port; stop it or choose another port"));
    }
    return ErrnoStatus(errno, what);
  }
  return fd;
}

std::uint16_t PortOf(int fd) {
  ListenAddress own;
  own.size = sizeof own.storage;
  ::getsockname(fd, own.get(), &own.size);
  return ntohs(own.storage.ss_family == AF_INET ? reinterpret_cast<sockaddr_in*>(&own.storage)->sin_port
                                                : reinterpret_cast<sockaddr_in6*>(&own.storage)->sin6_port);
}

class LoopServer final : public Server, private EventLoop::Handler {
 public:
  LoopServer(ServerOptions options, TokenCheck tokens, RequestHandler handler)
      : table_({.most = MostConnections(options.max_connections), .most_strangers = options.max_strangers}) {
    host_.options = std::move(options);
    host_.tokens = std::move(tokens);
    host_.handler = std::move(handler);
  }
  ~LoopServer() override {
    if (!thread_.joinable()) return;
    loop_->Stop();
    thread_.join();
    loop_->waker()->Close();
    peers_.clear();
  }

  absl::Status Begin() {
    const ServerOptions& options = host_.options;
    TY_ASSIGN_OR_RETURN(tls_,
                        TlsContext::Make(options.certificate_pem, options.key_pem, options.client_ca_pem));
    TY_ASSIGN_OR_RETURN(listener_, Listen(options.address, options.port));
    port_ = PortOf(listener_.get());
    TY_ASSIGN_OR_RETURN(loop_, EventLoop::Make());
    listener_id_ = loop_->NewId();
    TY_RETURN_IF_ERROR(loop_->Add(listener_id_, listener_.get(), EPOLLIN, *this));
    loop_->SetTick([this](SteadyTime now) { return Tick(now); });
    thread_ = std::thread([this] { loop_->Run(); });
    return absl::OkStatus();
  }

  std::uint16_t port() const override { return port_; }

 private:
  class Peer final : public EventLoop::Handler {
   public:
    Peer(LoopServer& server, EventLoop::Id id, Fd socket)
        : server_(server),
          id_(id),
          fd_(socket.get()),
          connection_(server.host_, server.tls_->Accept(std::move(socket)),
                      [waker = server.loop_->waker(), id] { waker->Wake(id); }) {}
    void OnReady(std::uint32_t events) override {
      server_.SetNow();
      Settle(connection_.Advance(true, (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0));
    }
    void OnWake() override {
      server_.SetNow();
      Settle(connection_.Advance(false, false));
    }
    void OnTime() { Settle(connection_.OnTime()); }

    EventLoop::Id id() const { return id_; }
    int fd() const { return fd_; }
    const Connection& connection() const { return connection_; }

   private:
    void Settle(bool goes_on) {
      if (goes_on) {
        server_.table_.Update(id_, connection_.standing(), connection_.idle_since());
        server_.WakeBy(connection_.deadline());
      } else {
        server_.Drop(id_);  // and with it this object
      }
    }

    LoopServer& server_;
    const EventLoop::Id id_;
    const int fd_;
    Connection connection_;
  };

  void SetNow() {
    if (host_.now == loop_->now()) return;
    host_.now = loop_->now();
    const absl::Time wall = absl::FromUnixSeconds(absl::ToUnixSeconds(Clock::System().Now()));
    if (wall == dated_) return;
    dated_ = wall;
    host_.date = PrintHttpDate(wall);
  }

  void WakeBy(SteadyTime deadline) {
    if (deadline != SteadyTime::Never()) loop_->TickBy(std::max(deadline, next_tick_));
  }

  // The listener is ready.
  void OnReady(std::uint32_t /*events*/) override {
    SetNow();
    for (int i = 0; i < kAcceptsPerTurn; ++i) {
      if (!table_.HasRoom()) return PauseAccepting();
      ListenAddress from;
      from.size = sizeof from.storage;
      Fd socket(::accept4(listener_.get(), from.get(), &from.size, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket.valid()) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
          WarnOfAccepting(ErrnoStatus(errno, "accept"));
          PauseAccepting();
        }
        // Else there is none, or one that has gone already.
        return;
      }
      const int on = 1;
      ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      ::setsockopt(socket.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
      const EventLoop::Id id = loop_->NewId();
      const int fd = socket.get();
      auto peer = std::make_unique<Peer>(*this, id, std::move(socket));
      const absl::Status added = loop_->Add(id, fd, kAllEvents, *peer);
      if (!added.ok()) {
        WarnOfAccepting(added);
        return PauseAccepting();
      }
      WakeBy(peer->connection().deadline());
      peers_.emplace(id, std::move(peer));
      table_.Add(id, PeerOf(from.get()), host_.now);
      while (const auto excess = table_.Excess()) Drop(*excess);
    }
  }

  // Not every time that it tries again: a shortage may last.
  void WarnOfAccepting(const absl::Status& error) {
    if (loop_->now() < next_warning_) return;
    next_warning_ = loop_->now() + absl::Minutes(1);
    log::Warn("cannot accept connections; trying again until it works",
              {{"error", error}, {"connections", peers_.size()}});
  }

  void PauseAccepting() {
    if (resume_accepting_ != SteadyTime::Never()) return;
    loop_->Change(listener_id_, listener_.get(), 0);
    resume_accepting_ = loop_->now() + kAcceptRest;
    loop_->TickBy(resume_accepting_);
  }
  void ResumeAccepting() {
    if (resume_accepting_ == SteadyTime::Never()) return;
    resume_accepting_ = SteadyTime::Never();
    loop_->Change(listener_id_, listener_.get(), EPOLLIN);
  }

  void Drop(EventLoop::Id id) {
    table_.Remove(id);
    auto peer = peers_.extract(id);
    loop_->Remove(id, peer.mapped()->fd());
    ResumeAccepting();
  }

  SteadyTime Tick(SteadyTime now) {
    SetNow();
    next_tick_ = now + kTick;
    if (now >= resume_accepting_) ResumeAccepting();
    SteadyTime next = resume_accepting_;
    std::vector<Peer*> due;
    for (const auto& [id, peer] : peers_) {
      const SteadyTime deadline = peer->connection().deadline();
      if (deadline <= now) {
        due.push_back(peer.get());
      } else {
        next = std::min(next, deadline);
      }
    }
    for (Peer* peer : due) peer->OnTime();
    return std::max(next, next_tick_);
  }

  ConnectionHost host_;
  std::unique_ptr<TlsContext> tls_;
  Fd listener_;
  EventLoop::Id listener_id_ = 0;
  std::uint16_t port_ = 0;
  std::unique_ptr<EventLoop> loop_;
  absl::flat_hash_map<EventLoop::Id, std::unique_ptr<Peer>> peers_;
  ConnectionTable table_;  // the same ones
  SteadyTime resume_accepting_ = SteadyTime::Never();
  SteadyTime next_tick_;
  SteadyTime next_warning_;
  absl::Time dated_ = absl::InfinitePast();
  std::thread thread_;
};

}  // namespace

// Digests have one length, so that not even the length of the secret shows.
bool SameSecret(std::string_view a, std::string_view b) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest_a{};
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest_b{};
  unsigned int size = 0;
  if (EVP_Digest(a.data(), a.size(), digest_a.data(), &size, EVP_sha256(), nullptr) != 1) return false;
  if (EVP_Digest(b.data(), b.size(), digest_b.data(), &size, EVP_sha256(), nullptr) != 1) return false;
  return CRYPTO_memcmp(digest_a.data(), digest_b.data(), size) == 0;
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(ServerOptions options, TokenCheck tokens,
                                                      RequestHandler handler) {
  auto server = std::make_unique<LoopServer>(std::move(options), std::move(tokens), std::move(handler));
  TY_RETURN_IF_ERROR(server->Begin());
  return server;
}

}  // namespace trainyard::http
