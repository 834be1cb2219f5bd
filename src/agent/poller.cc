#include "agent/poller.h"

#include <algorithm>

namespace trainyard::agent {

bool Poller::Watch(int fd, Source source, std::uint32_t events, std::uint32_t serial) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = std::uint64_t{serial} << 8 | static_cast<std::uint8_t>(source);
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return true;
  return errno == EEXIST && ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) == 0;
}

void Poller::Forget(int fd) { ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

int Poller::Wait(Event* events, int most, std::uint64_t until) {
  constexpr int kMost = 64;
  constexpr std::uint64_t kLongest = 60'000;
  const std::uint64_t now = SteadyMillis();
  const std::uint64_t wait = until <= now ? 0 : std::min(until - now, kLongest);
  epoll_event ready[kMost];
  const int count = ::epoll_wait(epoll_.get(), ready, std::min(most, kMost), static_cast<int>(wait));
  for (int i = 0; i < count; ++i) {
    events[i] = {.source = static_cast<Source>(ready[i].data.u64 & 0xff),
                 .serial = static_cast<std::uint32_t>(ready[i].data.u64 >> 8),
                 .events = ready[i].events};
  }
  return std::max(count, 0);
}

}  // namespace trainyard::agent
