#include "http/event_loop.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <atomic>
#include <functional>

#include <gtest/gtest.h>

namespace trainyard::http {
namespace {

struct SocketPair {
  SocketPair() {
    int fds[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    ours = Fd(fds[0]);
    theirs = Fd(fds[1]);
  }
  Fd ours, theirs;
};

class Recorder final : public EventLoop::Handler {
 public:
  void OnReady(std::uint32_t) override {
    ++ready;
    if (then != nullptr) then();
  }
  void OnWake() override {
    ++woken;
    if (then != nullptr) then();
  }
  std::function<void()> then;
  int ready = 0;
  int woken = 0;
};

TEST(EventLoop, TellsNothingOfAHandlerThatAnotherRemovedInTheSameTurn) {
  const auto loop = *EventLoop::Make();
  SocketPair pairs[2];
  Recorder handlers[2];
  EventLoop::Id ids[2];
  for (int i = 0; i < 2; ++i) {
    ids[i] = loop->NewId();
    ASSERT_TRUE(loop->Add(ids[i], pairs[i].ours.get(), EPOLLIN, handlers[i]).ok());
    handlers[i].then = [&, i] { loop->Remove(ids[1 - i], pairs[1 - i].ours.get()); };
    ASSERT_EQ(::send(pairs[i].theirs.get(), "x", 1, 0), 1);
  }
  loop->Turn(absl::ZeroDuration());
  EXPECT_EQ(handlers[0].ready + handlers[1].ready, 1);
}

TEST(EventLoop, WakesAHandlerOnceForManyWakesAndOnlyIfItIsThere) {
  const auto loop = *EventLoop::Make();
  Recorder handler;
  const EventLoop::Id id = loop->NewId();
  loop->AddWoken(id, handler);
  for (int i = 0; i < 3; ++i) loop->waker()->Wake(id);
  loop->waker()->Wake(id + 1);
  loop->Turn(absl::InfiniteDuration());
  EXPECT_EQ(handler.woken, 1);
  loop->waker()->Wake(id);
  loop->Remove(id, -1);
  loop->Turn(absl::ZeroDuration());
  EXPECT_EQ(handler.woken, 1);
}

TEST(EventLoop, TicksAtTheEarliestTimeThatItWasGiven) {
  const auto loop = *EventLoop::Make();
  int ticks = 0;
  loop->SetTick([&](SteadyTime) {
    ++ticks;
    return SteadyTime::Never();
  });
  loop->TickBy(loop->now() + absl::Hours(1));
  loop->Turn(absl::ZeroDuration());
  EXPECT_EQ(ticks, 0);
  const SteadyTime soon = loop->now() + absl::Milliseconds(1);
  loop->TickBy(soon);
  loop->Turn(absl::InfiniteDuration());
  EXPECT_EQ(ticks, 1);
  EXPECT_GE(loop->now(), soon);
}

TEST(EventLoop, IsWokenAndStoppedFromOtherThreads) {
  const auto loop = *EventLoop::Make();
  const std::shared_ptr<EventLoop::Waker> waker = loop->waker();
  Recorder handler;
  const EventLoop::Id id = loop->NewId();
  loop->AddWoken(id, handler);
  std::atomic<int> seen = 0;
  handler.then = [&] {
    ++seen;
    seen.notify_all();
  };
  std::thread thread([&] { loop->Run(); });
  for (int i = 0; i < 100; ++i) {
    waker->Wake(id);
    seen.wait(i);
  }
  loop->Stop();
  thread.join();
  EXPECT_EQ(handler.woken, 100);
}

TEST(EventLoop, LeavesAWakerThatMayOutliveIt) {
  std::shared_ptr<EventLoop::Waker> waker;
  {
    const auto loop = *EventLoop::Make();
    waker = loop->waker();
  }
  waker->Wake(7);
  EXPECT_EQ(waker.use_count(), 1);
}

}  // namespace
}  // namespace trainyard::http
