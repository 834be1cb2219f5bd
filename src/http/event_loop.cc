#include "http/event_loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/check.h"
#include "base/status.h"

namespace trainyard::http {
namespace {

constexpr EventLoop::Id kWakerId = 0;
constexpr EventLoop::Id kStopId = 1;

}  // namespace

absl::Status EventLoop::Waker::Open() {
  MutexLock lock(mu_);
  event_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  return event_.valid() ? absl::OkStatus() : ErrnoStatus(errno, "cannot make an eventfd");
}

void EventLoop::Waker::Wake(Id id) {
  MutexLock lock(mu_);
  if (!event_.valid()) return;
  woken_.push_back(id);
  if (told_ || owner_ == std::this_thread::get_id()) return;
  told_ = true;
  const std::uint64_t one = 1;
  // Cannot fail: the counter is far from full, and then it is readable anyway.
  [[maybe_unused]] const ssize_t written = ::write(event_.get(), &one, sizeof one);
}

void EventLoop::Waker::Close() {
  MutexLock lock(mu_);
  event_.Reset();
  woken_.clear();
}

void EventLoop::Waker::Claim() {
  MutexLock lock(mu_);
  owner_ = std::this_thread::get_id();
}

std::vector<EventLoop::Id> EventLoop::Waker::Take() {
  std::vector<Id> taken;
  MutexLock lock(mu_);
  taken.swap(woken_);
  if (told_) {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = ::read(event_.get(), &count, sizeof count);
    told_ = false;
  }
  return taken;
}

bool EventLoop::Waker::pending() {
  MutexLock lock(mu_);
  return !woken_.empty();
}

absl::StatusOr<std::unique_ptr<EventLoop>> EventLoop::Make() {
  std::unique_ptr<EventLoop> loop(new EventLoop);
  loop->epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  if (!loop->epoll_.valid()) return ErrnoStatus(errno, "cannot make an epoll descriptor");
  loop->waker_ = std::make_shared<Waker>();
  TY_RETURN_IF_ERROR(loop->waker_->Open());
  epoll_event event{.events = EPOLLIN, .data = {.u64 = kWakerId}};
  int fd = -1;
  {
    MutexLock lock(loop->waker_->mu_);
    fd = loop->waker_->event_.get();
  }
  if (::epoll_ctl(loop->epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return ErrnoStatus(errno, "cannot watch an eventfd");
  }
  loop->now_ = Clock::System().Steady();
  return loop;
}

EventLoop::~EventLoop() { waker_->Close(); }

absl::Status EventLoop::Add(Id id, int fd, std::uint32_t events, Handler& handler) {
  epoll_event event{.events = events, .data = {.u64 = id}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return ErrnoStatus(errno, "cannot watch a descriptor");
  }
  handlers_[id] = &handler;
  return absl::OkStatus();
}

void EventLoop::Change(Id id, int fd, std::uint32_t events) {
  epoll_event event{.events = events, .data = {.u64 = id}};
  TY_CHECK(::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) == 0, "the descriptor is watched");
}

void EventLoop::Remove(Id id, int fd) {
  handlers_.erase(id);
  if (fd >= 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

int EventLoop::Timeout(absl::Duration most) {
  if (waker_->pending()) return 0;
  most = std::min(most, next_tick_ == SteadyTime::Never() ? absl::InfiniteDuration()
                                                          : next_tick_ - Clock::System().Steady());
  if (most == absl::InfiniteDuration()) return -1;
  // Rounded up: a wait that ends a little early would turn in circles until the time has come.
  const std::int64_t millis =
      absl::ToInt64Milliseconds(absl::Ceil(std::max(most, absl::ZeroDuration()), absl::Milliseconds(1)));
  return static_cast<int>(std::min<std::int64_t>(millis, 3'600'000));
}

void EventLoop::Turn(absl::Duration most) {
  std::array<epoll_event, 256> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), Timeout(most));
  now_ = Clock::System().Steady();
  // Looked up one by one: what one handler does may end another that is further down the list.
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    const Id id = event.data.u64;  // the event is packed: a reference into it would not be aligned
    const auto handler = handlers_.find(id);
    if (handler != handlers_.end()) handler->second->OnReady(event.events);
  }
  std::vector<Id> woken = waker_->Take();
  if (woken.size() > 1) {
    std::ranges::sort(woken);
    woken.erase(std::ranges::unique(woken).begin(), woken.end());
  }
  for (const Id id : woken) {
    if (id == kStopId) stopped_ = true;
    const auto handler = handlers_.find(id);
    if (handler != handlers_.end()) handler->second->OnWake();
  }
  if (tick_ != nullptr && now_ >= next_tick_) {
    next_tick_ = SteadyTime::Never();
    TickBy(tick_(now_));
  }
}

void EventLoop::Run() {
  waker_->Claim();
  while (!stopped_) Turn(absl::InfiniteDuration());
}

void EventLoop::Stop() { waker_->Wake(kStopId); }

}  // namespace trainyard::http
