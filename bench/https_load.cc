#include "bench/https_load.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <optional>

#include <openssl/err.h>
#include <openssl/pem.h>

#include "base/check.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::bench {
namespace {

struct FreeSsl {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};
struct FreeBio {
  void operator()(BIO* bio) const { BIO_free(bio); }
};

absl::Status Trust(SSL_CTX* context, const std::string& ca_pem) {
  const std::unique_ptr<BIO, FreeBio> text(BIO_new_mem_buf(ca_pem.data(), static_cast<int>(ca_pem.size())));
  X509* ca = PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr);
  if (ca == nullptr)
    return absl::InvalidArgumentError("cannot read the authority of the server's certificate");
  X509_STORE_add_cert(SSL_CTX_get_cert_store(context), ca);
  X509_free(ca);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  return absl::OkStatus();
}

absl::StatusOr<Fd> ConnectSocket(std::uint16_t port) {
  Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return ErrnoStatus(errno, "cannot make a socket");
  const int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
      errno != EINPROGRESS) {
    return ErrnoStatus(errno, StrCat("cannot connect to port ", port));
  }
  return fd;
}

// The value of a header, whose name is given in lower case with its colon; nothing if it is not there.
std::optional<std::string_view> Header(std::string_view head, std::string_view name) {
  for (std::size_t at = head.find("\r\n"); at != std::string_view::npos; at = head.find("\r\n", at)) {
    at += 2;
    const std::string_view line = head.substr(at, head.find("\r\n", at) - at);
    bool same = line.size() >= name.size();
    for (std::size_t i = 0; same && i < name.size(); ++i) {
      const char c = line[i];
      same = (c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c) == name[i];
    }
    if (!same) continue;
    std::string_view value = line.substr(name.size());
    while (value.starts_with(' ')) value.remove_prefix(1);
    return value;
  }
  return std::nullopt;
}

}  // namespace

//   handshake -> idle <-> request sent, answer comes in (head, then a body of a length or in chunks)
struct HttpsLoad::Connection {
  int index = 0;
  Fd fd;
  std::unique_ptr<SSL, FreeSsl> ssl;
  bool open = false;  // the handshake is done
  bool streaming = false;
  std::string out;
  std::string in;  // not yet looked at
  bool head_done = false;
  bool chunked = false;
  std::size_t length = 0;
  HttpsAnswer answer;
};

absl::StatusOr<std::unique_ptr<HttpsLoad>> HttpsLoad::Connect(HttpsTarget target, int count) {
  std::unique_ptr<HttpsLoad> load(new HttpsLoad(std::move(target)));
  TY_RETURN_IF_ERROR(load->Open(count));
  return load;
}

HttpsLoad::HttpsLoad(HttpsTarget target) : target_(std::move(target)) {}
HttpsLoad::~HttpsLoad() = default;

absl::Status HttpsLoad::Open(int count) {
  context_.reset(SSL_CTX_new(TLS_client_method()));
  TY_CHECK(context_ != nullptr, "out of memory");
  SSL_CTX_set_mode(context_.get(), SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                       SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (!target_.ca_pem.empty()) TY_RETURN_IF_ERROR(Trust(context_.get(), target_.ca_pem));
  epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_.valid()) return ErrnoStatus(errno, "cannot make an epoll descriptor");
  // A few at a time: a server's queue of new connections is finite.
  constexpr int kAtOnce = 64;
  for (int i = 0; i < count; ++i) {
    TY_RETURN_IF_ERROR(OpenOne(i));
    TY_RETURN_IF_ERROR(TurnUntil([&] { return size() - ready_ < kAtOnce; }, absl::Seconds(30)));
  }
  return TurnUntil([&] { return ready_ == size(); }, absl::Seconds(30));
}

absl::Status HttpsLoad::OpenOne(int index) {
  auto connection = std::make_unique<Connection>();
  connection->index = index;
  TY_ASSIGN_OR_RETURN(connection->fd, ConnectSocket(target_.port));
  connection->ssl.reset(SSL_new(context_.get()));
  SSL_set_fd(connection->ssl.get(), connection->fd.get());
  SSL_set_connect_state(connection->ssl.get());
  epoll_event event{.events = EPOLLIN | EPOLLOUT | EPOLLET, .data = {.ptr = connection.get()}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, connection->fd.get(), &event) != 0)
    return ErrnoStatus(errno, "cannot add to epoll");
  connections_.push_back(std::move(connection));
  return absl::OkStatus();
}

void HttpsLoad::Send(int connection, std::string_view method, std::string_view path, std::string_view body) {
  Connection& on = *connections_[static_cast<std::size_t>(connection)];
  StrAppend(on.out, method, " ", path,
            " HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json\r\nAuthorization: Bearer ",
            target_.token);
  if (!body.empty()) StrAppend(on.out, "\r\nContent-Type: application/json\r\nContent-Length: ", body.size());
  StrAppend(on.out, "\r\n\r\n", body);
  Write(on);
}

void HttpsLoad::Stream(int connection, std::string_view path) {
  connections_[static_cast<std::size_t>(connection)]->streaming = true;
  Send(connection, "GET", path);
}

absl::StatusOr<HttpsAnswer> HttpsLoad::Ask(int connection, std::string_view method, std::string_view path,
                                           std::string_view body) {
  std::optional<HttpsAnswer> answer;
  const auto before = std::exchange(on_answer, [&](int, const HttpsAnswer& got) { answer = got; });
  Send(connection, method, path, body);
  const absl::Status done = TurnUntil([&] { return answer.has_value(); }, absl::Seconds(30));
  on_answer = before;
  TY_RETURN_IF_ERROR(done);
  return *std::move(answer);
}

void HttpsLoad::Turn(absl::Duration most) {
  std::array<epoll_event, 256> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(),
                                 static_cast<int>(absl::ToInt64Milliseconds(most)));
  now_ = Clock::System().Steady();
  for (int i = 0; i < count && status_.ok(); ++i) {
    Connection& connection = *static_cast<Connection*>(events[static_cast<std::size_t>(i)].data.ptr);
    if (!connection.open) Handshake(connection);
    if (!connection.open) continue;
    if (!connection.out.empty()) Write(connection);
    Read(connection);
  }
}

absl::Status HttpsLoad::TurnUntil(const std::function<bool()>& condition, absl::Duration most) {
  const SteadyTime end = Clock::System().Steady() + most;
  while (status_.ok() && !condition()) {
    if (Clock::System().Steady() > end)
      return absl::DeadlineExceededError(StrCat("the server of port ", target_.port, " is too slow"));
    Turn(absl::Milliseconds(100));
  }
  return status_;
}

void HttpsLoad::Handshake(Connection& connection) {
  ERR_clear_error();
  const int done = SSL_do_handshake(connection.ssl.get());
  if (done == 1) {
    connection.open = true;
    ++ready_;
    return;
  }
  const int error = SSL_get_error(connection.ssl.get(), done);
  if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) Fail("the TLS handshake failed");
}

void HttpsLoad::Write(Connection& connection) {
  while (!connection.out.empty()) {
    std::size_t put = 0;
    ERR_clear_error();
    const int done = SSL_write_ex(connection.ssl.get(), connection.out.data(), connection.out.size(), &put);
    if (done != 1) {
      const int error = SSL_get_error(connection.ssl.get(), done);
      if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE)
        Fail("a connection broke while it was written to");
      return;
    }
    connection.out.erase(0, put);
  }
}

void HttpsLoad::Read(Connection& connection) {
  static thread_local std::array<char, 65536> buffer;
  while (status_.ok()) {
    std::size_t got = 0;
    ERR_clear_error();
    const int done = SSL_read_ex(connection.ssl.get(), buffer.data(), buffer.size(), &got);
    if (done != 1) {
      const int error = SSL_get_error(connection.ssl.get(), done);
      if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE)
        Fail("the server closed a connection");
      return;
    }
    connection.in.append(buffer.data(), got);
    Parse(connection);
  }
}

void HttpsLoad::Parse(Connection& connection) {
  while (status_.ok() && !connection.in.empty()) {
    if (!connection.head_done && !ParseHead(connection)) return;
    if (connection.chunked) {
      if (!ParseChunk(connection)) return;
    } else {
      if (connection.in.size() < connection.length) return;
      Take(connection, std::string_view(connection.in).substr(0, connection.length));
      connection.in.erase(0, connection.length);
      Finish(connection);
    }
  }
}

bool HttpsLoad::ParseHead(Connection& connection) {
  const std::size_t end = connection.in.find("\r\n\r\n");
  if (end == std::string::npos) return false;
  const std::string_view head = std::string_view(connection.in).substr(0, end + 2);
  if (!head.starts_with("HTTP/1.1 ") || head.size() < 12) {
    Fail("an answer is not HTTP/1.1");
    return false;
  }
  connection.answer.code = ParseNumber<int>(head.substr(9, 3)).value_or(0);
  connection.length = 0;
  connection.chunked = Header(head, "transfer-encoding:").value_or("") == "chunked";
  if (const auto length = Header(head, "content-length:"))
    connection.length = ParseNumber<std::size_t>(*length).value_or(0);
  connection.in.erase(0, end + 4);
  connection.head_done = true;
  if (connection.streaming && connection.answer.code == 200) ++streams_;
  return true;
}

// True if a whole chunk was there.
bool HttpsLoad::ParseChunk(Connection& connection) {
  const std::size_t line = connection.in.find("\r\n");
  if (line == std::string::npos) return false;
  const auto size = ParseNumber<std::size_t>(std::string_view(connection.in).substr(0, line), 16);
  if (!size) {
    Fail("a chunk of an answer has no length");
    return false;
  }
  if (connection.in.size() < line + 2 + *size + 2) return false;
  Take(connection, std::string_view(connection.in).substr(line + 2, *size));
  connection.in.erase(0, line + 2 + *size + 2);
  if (*size == 0) Finish(connection);
  return true;
}

void HttpsLoad::Take(Connection& connection, std::string_view piece) {
  connection.answer.body += piece;
  if (!connection.streaming || connection.answer.code != 200) return;
  std::string& text = connection.answer.body;
  std::size_t begin = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    if (on_line) on_line(connection.index, std::string_view(text).substr(begin, end - begin));
    begin = end + 1;
  }
  text.erase(0, begin);
}

void HttpsLoad::Finish(Connection& connection) {
  if (connection.streaming) {
    return Fail(StrCat("a stream ended: ", connection.answer.code, " ", connection.answer.body));
  }
  connection.head_done = false;
  const HttpsAnswer answer = std::exchange(connection.answer, {});
  if (on_answer) on_answer(connection.index, answer);
}

void HttpsLoad::Fail(std::string_view what) {
  if (status_.ok()) status_ = absl::UnavailableError(StrCat(what, " (port ", target_.port, ")"));
}

}  // namespace trainyard::bench
