#include "base/http_loop.h"

#include <microhttpd.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <iterator>
#include <limits>

#include "base/check.h"

namespace trainyard {

HttpLoop::HttpLoop() : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

absl::Status HttpLoop::Start(MHD_Daemon* daemon) {
  TY_CHECK(daemon_ == nullptr, "a loop drives one daemon");
  daemon_ = daemon;
  if (!wake_.valid()) return absl::ResourceExhaustedError("too many files are open");
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

void HttpLoop::Wake() { ::eventfd_write(wake_.get(), 1); }

void HttpLoop::Run() {
  const MHD_DaemonInfo* const info = MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_EPOLL_FD);
  TY_CHECK(info != nullptr, "the daemon polls by epoll");
  pollfd events[] = {{.fd = info->epoll_fd, .events = POLLIN, .revents = 0},
                     {.fd = wake_.get(), .events = POLLIN, .revents = 0}};
  while (!stopping_) {
    MHD_UNSIGNED_LONG_LONG due = 0;
    int timeout = -1;  // nothing is due
    if (MHD_get_timeout(daemon_, &due) == MHD_YES) {
      timeout = static_cast<int>(std::min<MHD_UNSIGNED_LONG_LONG>(due, std::numeric_limits<int>::max()));
    }
    ::poll(events, std::size(events), timeout);
    eventfd_t woken = 0;
    ::eventfd_read(wake_.get(), &woken);  // before the round, which sees what it was woken for
    MHD_run(daemon_);
  }
}

}  // namespace trainyard
