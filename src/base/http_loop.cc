#include "base/http_loop.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"

namespace trainyard {
namespace {

constexpr int kAcceptsPerRound = 64;
constexpr absl::Duration kLookForLate = absl::Milliseconds(250);
constexpr absl::Duration kAcceptRest = absl::Milliseconds(100);

ConnectionTable::Id IdOf(const MHD_Connection* connection) {
  return reinterpret_cast<ConnectionTable::Id>(connection);
}

// As the library does it, but for %00, which stays as it is: what follows a NUL in a C string is not seen.
std::size_t Unescape(void* /*self*/, MHD_Connection* /*connection*/, char* text) {
  const std::string_view from(text);
  std::size_t size = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    unsigned char decoded = 0;
    const char* const begin = from.data() + i + 1;
    const bool escape = from[i] == '%' && i + 2 < from.size() &&
                        std::from_chars(begin, begin + 2, decoded, 16).ptr == begin + 2 && decoded != 0;
    text[size++] = escape ? static_cast<char>(decoded) : from[i];
    if (escape) i += 2;
  }
  text[size] = '\0';
  return size;
}

}  // namespace

HttpLoop::HttpLoop() : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

absl::Status HttpLoop::Start(Fd listener, const HttpLoopOptions& options) {
  TY_CHECK(daemon_ == nullptr, "a loop drives one daemon");
  listener_ = std::move(listener);
  options_ = options;
  options_.limits.most = MostConnections(options.limits.most);
  table_.emplace(options_.limits);
  if (!wake_.valid()) return absl::ResourceExhaustedError("too many files are open");
  // The table decides; connections that it closes stay with the library for a moment.
  const auto most = static_cast<unsigned>(2 * options_.limits.most + kAcceptsPerRound);
  const auto timeout =
      static_cast<unsigned>(absl::ToInt64Seconds(absl::Ceil(options.write_timeout, absl::Seconds(1))));
  daemon_ = MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET, 0, nullptr,
                             nullptr, options.on_request, options.self, MHD_OPTION_NOTIFY_COMPLETED,
                             &OnCompleted, this, MHD_OPTION_NOTIFY_CONNECTION, &OnConnection, this,
                             MHD_OPTION_CONNECTION_LIMIT, most, MHD_OPTION_CONNECTION_TIMEOUT, timeout,
                             MHD_OPTION_UNESCAPE_CALLBACK, &Unescape, nullptr, MHD_OPTION_END);
  if (daemon_ == nullptr) return absl::UnavailableError("cannot start an HTTP server");
  thread_ = std::thread([this] { Run(); });
  return absl::OkStatus();
}

void HttpLoop::Stop() {
  if (daemon_ == nullptr || stopping_.exchange(true)) return;
  Wake();
  if (thread_.joinable()) thread_.join();
  MHD_stop_daemon(daemon_);
}

void HttpLoop::Resume(MHD_Connection* connection) {
  MHD_resume_connection(connection);
  Wake();
}

void HttpLoop::Serve(MHD_Connection* connection) { table_->Update(IdOf(connection), Standing::kServed, {}); }

void HttpLoop::Wake() { ::eventfd_write(wake_.get(), 1); }

void HttpLoop::OnConnection(void* self, MHD_Connection* connection, void** /*context*/,
                            MHD_ConnectionNotificationCode code) {
  HttpLoop& loop = *static_cast<HttpLoop*>(self);
  if (code == MHD_CONNECTION_NOTIFY_CLOSED) return loop.table_->Remove(IdOf(connection));
  const MHD_ConnectionInfo* const info =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
  loop.table_->Add(IdOf(connection), PeerOf(info->client_addr), Clock::System().Steady());
  while (const auto excess = loop.table_->Excess()) loop.Close(*excess);
}

void HttpLoop::OnCompleted(void* self, MHD_Connection* connection, void** state,
                           MHD_RequestTerminationCode code) {
  HttpLoop& loop = *static_cast<HttpLoop*>(self);
  loop.table_->Rest(IdOf(connection), Clock::System().Steady());
  if (loop.options_.on_completed != nullptr)
    loop.options_.on_completed(loop.options_.self, connection, state, code);
}

// The library sees that its client has gone, and closes it.
void HttpLoop::Close(ConnectionTable::Id id) {
  table_->Remove(id);
  const MHD_ConnectionInfo* const info =
      MHD_get_connection_info(reinterpret_cast<MHD_Connection*>(id), MHD_CONNECTION_INFO_CONNECTION_FD);
  if (info != nullptr) ::shutdown(info->connect_fd, SHUT_RDWR);
}

void HttpLoop::CloseLate(SteadyTime now) {
  for (const ConnectionTable::Id id : table_->WaitingSince(now + -options_.request_timeout)) Close(id);
}

void HttpLoop::Accept(SteadyTime now) {
  for (int i = 0; i < kAcceptsPerRound; ++i) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    auto* const peer = reinterpret_cast<sockaddr*>(&address);
    Fd socket(::accept4(listener_.get(), peer, &size, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.valid()) {
      MHD_add_connection(daemon_, socket.Release(), peer, size);  // closes it if it fails
      continue;
    }
    if (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR) return;
    accept_again_ = now + kAcceptRest;
    if (now < warn_again_) return;
    warn_again_ = now + absl::Minutes(1);
    return log::Warn("cannot accept connections; trying again until it works",
                     {{"error", ErrnoStatus(errno, "accept")}, {"connections", table_->size()}});
  }
}

// In milliseconds; -1: nothing is due.
int HttpLoop::Timeout(SteadyTime now) const {
  MHD_UNSIGNED_LONG_LONG due = std::numeric_limits<int>::max();
  const bool any = MHD_get_timeout(daemon_, &due) == MHD_YES;
  if (!any && table_->size() == 0 && accept_again_ <= now) return -1;
  return static_cast<int>(std::min<MHD_UNSIGNED_LONG_LONG>(due, absl::ToInt64Milliseconds(kLookForLate)));
}

void HttpLoop::Run() {
  const MHD_DaemonInfo* const info = MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_EPOLL_FD);
  TY_CHECK(info != nullptr, "the daemon polls by epoll");
  pollfd events[] = {{.fd = info->epoll_fd, .events = POLLIN, .revents = 0},
                     {.fd = wake_.get(), .events = POLLIN, .revents = 0},
                     {.fd = -1, .events = POLLIN, .revents = 0}};
  while (!stopping_) {
    SteadyTime now = Clock::System().Steady();
    CloseLate(now);
    events[2].fd = now >= accept_again_ && table_->HasRoom() ? listener_.get() : -1;
    ::poll(events, std::size(events), Timeout(now));
    eventfd_t woken = 0;
    ::eventfd_read(wake_.get(), &woken);  // before the round, which sees what it was woken for
    if (events[2].fd >= 0 && events[2].revents != 0) Accept(now);
    MHD_run(daemon_);
  }
}

}  // namespace trainyard
