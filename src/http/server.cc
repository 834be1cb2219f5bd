#include "http/server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <thread>

#include "base/document.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "http/connection.h"
#include "http/connection_table.h"
#include "http/event_loop.h"
#include "http/plain_stream.h"
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

bool IsProbe(std::string_view target) {
  const std::string_view path = target.substr(0, target.find('?'));
  return std::ranges::any_of(
      std::array<std::string_view, 3>{"/healthz", "/livez", "/readyz"}, [&](std::string_view probe) {
        return path.starts_with(probe) && (path.size() == probe.size() || path[probe.size()] == '/');
      });
}

class LoopServer final : public Server, private EventLoop::Handler {
 public:
  LoopServer(ServerOptions options, Judge judge, RequestHandler handler)
      : table_({.most = MostConnections(options.max_connections), .most_strangers = options.max_strangers}) {
    host_.options = std::move(options);
    host_.judge = std::move(judge);
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
    if (!options.certificate_pem.empty()) {
      TY_ASSIGN_OR_RETURN(tls_,
                          TlsContext::Make(options.certificate_pem, options.key_pem, options.client_ca_pem));
    }
    address_ = options.listen;
    TY_ASSIGN_OR_RETURN(listener_, Listen(address_));
    TY_ASSIGN_OR_RETURN(address_.port, PortOf(listener_));
    TY_ASSIGN_OR_RETURN(loop_, EventLoop::Make());
    listener_id_ = loop_->NewId();
    TY_RETURN_IF_ERROR(loop_->Add(listener_id_, listener_.get(), EPOLLIN, *this));
    loop_->SetTick([this](SteadyTime now) { return Tick(now); });
    thread_ = std::thread([this] { loop_->Run(); });
    return absl::OkStatus();
  }

  std::uint16_t port() const override { return address_.port; }
  std::string address() const override { return address_.Text(); }

 private:
  class Peer final : public EventLoop::Handler {
   public:
    Peer(LoopServer& server, EventLoop::Id id, Fd socket)
        : server_(server),
          id_(id),
          fd_(socket.get()),
          connection_(server.host_, server.Open(std::move(socket)),
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

  std::unique_ptr<ByteStream> Open(Fd socket) const {
    return tls_ == nullptr ? NewPlainStream(std::move(socket)) : tls_->Accept(std::move(socket));
  }

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
      sockaddr_storage from{};
      socklen_t size = sizeof from;
      auto* const client = reinterpret_cast<sockaddr*>(&from);
      Fd socket(::accept4(listener_.get(), client, &size, SOCK_CLOEXEC | SOCK_NONBLOCK));
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
      table_.Add(id, PeerOf(client), host_.now);
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
  ListenAddress address_;
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

Response PrintJsonError(int code, std::string_view message) {
  return {.code = code, .body = PrintJson(Object{{"error", message}})};
}

Judge JudgeByToken(TokenCheck tokens, std::string_view server, ErrorPrinter print_error) {
  return [tokens = std::move(tokens), wrong = std::make_shared<WrongTokens>(server), print_error](
             const RequestHead& head, const std::optional<Identity>& certified) -> Verdict {
    if (certified) return {.identity = *certified, .admitted = true};
    const std::string_view token = BearerToken(head.authorization);
    if (!token.empty()) {
      if (auto identity = tokens(token)) return {.identity = *std::move(identity), .admitted = true};
    }
    wrong->Note(token);
    if (IsProbe(head.target)) {
      return {.identity = {.user = "system:anonymous", .groups = {"system:unauthenticated"}}};
    }
    return {.refusal = print_error(401, token.empty() ? "Unauthorized" : "Unauthorized: wrong token")};
  };
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(ServerOptions options, Judge judge,
                                                      RequestHandler handler) {
  auto server = std::make_unique<LoopServer>(std::move(options), std::move(judge), std::move(handler));
  TY_RETURN_IF_ERROR(server->Begin());
  return server;
}

}  // namespace trainyard::http
