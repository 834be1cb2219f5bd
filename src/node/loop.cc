#include "node/loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/check.h"
#include "base/status.h"

namespace trainyard::node {

absl::StatusOr<std::unique_ptr<Loop>> Loop::Make(Clock& clock) {
  auto loop = std::unique_ptr<Loop>(new Loop(clock));
  loop->epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  loop->wake_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!loop->epoll_.valid() || !loop->wake_.valid()) return ErrnoStatus(errno, "cannot make an event loop");
  loop->Watch(loop->wake_.get(), EPOLLIN, [fd = loop->wake_.get()](std::uint32_t) {
    std::uint64_t count = 0;
    (void)!::read(fd, &count, sizeof count);
  });
  return loop;
}

void Loop::Watch(int fd, std::uint32_t events, Ready ready) {
  Handler& handler = handlers_[fd];
  TY_CHECK(handler.serial == 0, "a descriptor is watched twice");
  handler = {.serial = next_serial_++, .ready = std::make_shared<Ready>(std::move(ready))};
  epoll_event event{};
  event.events = events;
  event.data.u64 = std::uint64_t{handler.serial} << 32 | static_cast<std::uint32_t>(fd);
  TY_CHECK(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0, "cannot watch a descriptor");
}

void Loop::Change(int fd, std::uint32_t events) {
  const auto found = handlers_.find(fd);
  if (found == handlers_.end()) return;
  epoll_event event{};
  event.events = events;
  event.data.u64 = std::uint64_t{found->second.serial} << 32 | static_cast<std::uint32_t>(fd);
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void Loop::Forget(int fd) {
  if (handlers_.erase(fd) > 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

Loop::TimerId Loop::At(SteadyTime when, std::function<void()> call) {
  const TimerId id = next_timer_++;
  timers_.emplace(std::pair(when, id), std::move(call));
  timer_times_.emplace(id, when);
  return id;
}

void Loop::Cancel(TimerId timer) {
  const auto found = timer_times_.find(timer);
  if (found == timer_times_.end()) return;
  timers_.erase({found->second, timer});
  timer_times_.erase(found);
}

void Loop::Post(std::function<void()> work) {
  {
    MutexLock lock(mu_);
    posted_.push_back(std::move(work));
  }
  const std::uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
}

void Loop::Stop() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
  }
  Post([] {});
}

void Loop::Run() {
  while (true) {
    Turn(absl::Minutes(1));
    MutexLock lock(mu_);
    if (stopping_ && posted_.empty()) return;
  }
}

int Loop::WaitMillis(absl::Duration most) {
  if (!timers_.empty()) most = std::min(most, timers_.begin()->first.first - clock_.Steady());
  return static_cast<int>(absl::ToInt64Milliseconds(
      std::clamp(absl::Ceil(most, absl::Milliseconds(1)), absl::ZeroDuration(), absl::Minutes(1))));
}

void Loop::Turn(absl::Duration most) {
  epoll_event events[64];
  const int count = ::epoll_wait(epoll_.get(), events, 64, WaitMillis(most));
  for (int i = 0; i < count; ++i) {
    const auto found = handlers_.find(static_cast<int>(events[i].data.u64 & 0xffffffff));
    // A handler before this one may have closed the descriptor, and opened another of the same number.
    if (found == handlers_.end() || found->second.serial != events[i].data.u64 >> 32) continue;
    const std::shared_ptr<Ready> ready = found->second.ready;
    (*ready)(events[i].events);
  }
  RunPosted();
  RunTimers();
}

void Loop::RunPosted() {
  std::vector<std::function<void()>> posted;
  {
    MutexLock lock(mu_);
    posted.swap(posted_);
  }
  for (const auto& work : posted) work();
}

void Loop::RunTimers() {
  const SteadyTime now = clock_.Steady();
  while (!timers_.empty() && timers_.begin()->first.first <= now) {
    auto due = timers_.extract(timers_.begin());
    timer_times_.erase(due.key().second);
    due.mapped()();
  }
}

}  // namespace trainyard::node
