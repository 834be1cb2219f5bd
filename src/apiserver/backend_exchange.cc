#include "apiserver/backend_exchange.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>
#include <vector>

#include "apiserver/backend_proxy.h"
#include "base/status.h"
#include "base/text.h"
#include "kube/error.h"

namespace trainyard::apiserver {
namespace {

constexpr std::size_t kPiece = std::size_t{64} * 1024;
// What may wait for a client that reads slowly.
constexpr std::size_t kMostBacklog = std::size_t{256} * 1024;
// Steps of one exchange before the others have their turn.
constexpr int kStepsInARow = 16;
constexpr absl::Duration kConnectTimeout = absl::Seconds(30);
constexpr std::uint32_t kEvents = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;

bool WouldBlock(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

// "connection refused": the words of a system error as they stand in the middle of a sentence.
std::string Reason(int error) {
  std::string reason = std::strerror(error);
  if (!reason.empty() && reason[0] >= 'A' && reason[0] <= 'Z')
    reason[0] = static_cast<char>(reason[0] | 0x20);
  return reason;
}

std::string Hex(std::size_t number) {
  std::array<char, 16> text;
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), number, 16).ptr};
}

struct BackendAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

absl::StatusOr<BackendAddress> AddressOf(const ProxyBackend& backend) {
  BackendAddress address;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  if (::inet_pton(AF_INET, backend.ip.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(backend.port);
    address.size = sizeof *v4;
  } else if (::inet_pton(AF_INET6, backend.ip.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(backend.port);
    address.size = sizeof *v6;
  } else {
    return absl::InvalidArgumentError(StrCat("\"", Escaped(backend.ip), "\" is no address"));
  }
  return address;
}

std::string Dialled(const ProxyBackend& backend, std::string_view why) {
  return StrCat("dial tcp ", backend.ip, ":", backend.port, ": ", why);
}

}  // namespace

BackendExchange::BackendExchange(http::EventLoop& loop, ProxyRequest request,
                                 std::shared_ptr<http::RequestBody> body,
                                 std::unique_ptr<http::Responder> responder)
    : loop_(loop),
      id_(loop.NewId()),
      request_(std::move(request)),
      body_(std::move(body)),
      responder_(std::move(responder)),
      out_(PrintRequestHead(request_)),
      body_done_(body_ == nullptr),
      parser_(/*to_head=*/request_.method == "HEAD") {}

BackendExchange::~BackendExchange() {
  if (responder_ != nullptr) Break("the server is stopping");
  if (fd_.valid()) loop_.Remove(id_, fd_.get());
}

std::function<void()> BackendExchange::Wake() const {
  return [waker = loop_.waker(), id = id_] { waker->Wake(id); };
}

void BackendExchange::Start(std::function<void()> over) {
  over_ = std::move(over);
  if (const absl::Status begun = Connect(); !begun.ok()) {
    Break(Dialled(request_.backend, Message(begun)));
    return Settle();
  }
  deadline_ = loop_.now() + kConnectTimeout;
  loop_.TickBy(deadline_);
  responder_->OnGone([gone = gone_, wake = Wake()] {
    gone->store(true);
    wake();
  });
  if (body_ != nullptr) body_->OnNews(Wake());
}

absl::Status BackendExchange::Connect() {
  TY_ASSIGN_OR_RETURN(const BackendAddress address, AddressOf(request_.backend));
  Fd fd(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return absl::ResourceExhaustedError(StrCat("socket: ", Reason(errno)));
  const int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(fd.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  const auto* to = reinterpret_cast<const sockaddr*>(&address.storage);
  if (::connect(fd.get(), to, address.size) != 0 && errno != EINPROGRESS)
    return absl::UnavailableError(StrCat("connect: ", Reason(errno)));
  TY_RETURN_IF_ERROR(loop_.Add(id_, fd.get(), kEvents, *this));
  fd_ = std::move(fd);
  return absl::OkStatus();
}

bool BackendExchange::FinishConnect() {
  if (connected_ || !writable_) return connected_;
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) {
    Break(Dialled(request_.backend, StrCat("connect: ", Reason(error))));
    return false;
  }
  connected_ = true;
  deadline_ = SteadyTime::Never();
  return true;
}

void BackendExchange::OnTime() {
  Break(Dialled(request_.backend, "i/o timeout"));
  Settle();
}

void BackendExchange::OnReady(std::uint32_t events) {
  if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) readable_ = true;
  if ((events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0) writable_ = true;
  Drive();
}

void BackendExchange::Drive() {
  if (gone_->load()) ended_ = true;
  if (!ended_ && FinishConnect()) {
    bool more = true;
    for (int step = 0; more && !ended_; ++step) {
      if (step == kStepsInARow) {
        loop_.waker()->Wake(id_);
        break;
      }
      more = Send();
      more = Receive() || more;
    }
  }
  Settle();
}

void BackendExchange::Settle() {
  if (!ended_) return;
  const std::function<void()> over = std::move(over_);
  over();
}

// ---- to the backend

bool BackendExchange::Send() {
  if (out_.empty()) FillOut();
  if (out_.empty() || !writable_) return false;
  const ssize_t sent = ::send(fd_.get(), out_.data() + written_, out_.size() - written_, MSG_NOSIGNAL);
  if (sent < 0 && errno == EINTR) return true;
  if (sent < 0 && WouldBlock(errno)) {
    writable_ = false;
    return false;
  }
  if (sent < 0) {
    // It takes no more. What it has said before that, or that it broke, is found by reading.
    body_done_ = true;
    readable_ = true;
  } else {
    written_ += static_cast<std::size_t>(sent);
    if (written_ < out_.size()) return true;
  }
  out_ = {};
  written_ = 0;
  return true;
}

void BackendExchange::FillOut() {
  if (body_done_) return;
  http::RequestBody::Taken taken = body_->Take();
  body_done_ = taken.whole;
  if (request_.body_length) {
    out_ = std::move(taken.bytes);
    return;
  }
  if (!taken.bytes.empty()) StrAppend(out_, Hex(taken.bytes.size()), "\r\n", taken.bytes, "\r\n");
  if (taken.whole) out_ += "0\r\n\r\n";
}

// ---- from the backend

bool BackendExchange::Receive() {
  if (!readable_) return false;
  if (answer_ != nullptr && answer_->Backlog() > kMostBacklog) {
    answer_->OnRoom(kMostBacklog / 2, Wake());
    return false;
  }
  thread_local std::vector<char> piece(kPiece);  // on the heap: an array would be part of every thread
  const ssize_t got = ::recv(fd_.get(), piece.data(), piece.size(), 0);
  if (got > 0) {
    Parse({piece.data(), static_cast<std::size_t>(got)});
  } else if (got == 0) {
    parser_.FeedEnd();
    PassOn();
  } else if (WouldBlock(errno)) {
    readable_ = false;
    return false;
  } else if (errno != EINTR) {
    Break(StrCat("read tcp ", request_.backend.ip, ":", request_.backend.port, ": ", Reason(errno)));
  }
  return true;
}

void BackendExchange::Parse(std::string_view bytes) {
  if (in_.empty()) {
    in_ = std::string(bytes.substr(parser_.Feed(bytes)));
  } else {
    in_ += bytes;
    in_.erase(0, parser_.Feed(in_));
  }
  PassOn();
}

void BackendExchange::PassOn() {
  const http::ResponseParser::State state = parser_.state();
  if (state == http::ResponseParser::State::kHead) return;
  if (state == http::ResponseParser::State::kFailed) return Break(parser_.error());
  if (answer_ == nullptr) BeginAnswer();
  if (ended_) return;
  std::string piece = parser_.TakeBody();
  if (!piece.empty() && !answer_->Write(std::make_shared<const std::string>(std::move(piece)))) {
    ended_ = true;  // nobody reads it any more
    return;
  }
  if (state != http::ResponseParser::State::kWhole) return;
  answer_->Close();
  ended_ = true;
}

void BackendExchange::BeginAnswer() {
  if (parser_.head().code < 200)
    return Break("the backend changed to another protocol, which it was not asked for");
  const std::unique_ptr<http::Responder> responder = std::move(responder_);
  answer_ = responder->Stream(AnswerHead(request_, parser_.head()));
  answer_->OnGone([gone = gone_, wake = Wake()] {
    gone->store(true);
    wake();
  });
}

void BackendExchange::Break(std::string_view why) {
  ended_ = true;
  answer_.reset();  // which cuts it off, if it has begun
  if (responder_ == nullptr) return;
  const std::unique_ptr<http::Responder> responder = std::move(responder_);
  responder->Send(UnreachableResponse(why));
}

}  // namespace trainyard::apiserver
