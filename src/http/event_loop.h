// One thread that waits for many descriptors: epoll, edge-triggered, with a way to wake it from other threads
// and a tick for what time brings.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mutex.h"

namespace trainyard::http {

// Used by the thread that calls Run(), or by one thread while nobody runs it, except where said.
class EventLoop {
 public:
  // Names a handler; never used twice by one loop.
  using Id = std::uint64_t;

  class Handler {
   public:
    virtual ~Handler() = default;
    // `events` as epoll reports them. An edge is told once: read and write until the call would block.
    virtual void OnReady(std::uint32_t events) = 0;
    // Somebody called Waker::Wake() with this handler's id, once or more often.
    virtual void OnWake() {}
  };

  // Wakes handlers, from any thread. May outlive the loop, and then does nothing.
  class Waker {
   public:
    absl::Status Open();
    void Wake(Id id);
    void Close();

   private:
    friend class EventLoop;
    void Claim();  // this thread runs the loop, and needs no system call to be woken
    std::vector<Id> Take();
    bool pending();

    Mutex mu_;
    std::vector<Id> woken_ TY_GUARDED_BY(mu_);
    Fd event_ TY_GUARDED_BY(mu_);
    bool told_ TY_GUARDED_BY(mu_) = false;  // the descriptor is readable, or will be looked at anyway
    std::thread::id owner_ TY_GUARDED_BY(mu_);
  };

  // ResourceExhausted or Internal: the system gives no descriptor.
  static absl::StatusOr<std::unique_ptr<EventLoop>> Make();
  ~EventLoop();

  Id NewId() { return ++last_id_; }
  // Tells `handler`, which must stay until Remove(), of what becomes of the descriptor.
  absl::Status Add(Id id, int fd, std::uint32_t events, Handler& handler);
  // Changes what it is told of; 0 pauses it.
  void Change(Id id, int fd, std::uint32_t events);
  // Before the descriptor is closed. What is known of it already is not told any more.
  void Remove(Id id, int fd);
  // A handler without a descriptor, only to be woken.
  void AddWoken(Id id, Handler& handler) { handlers_[id] = &handler; }

  const std::shared_ptr<Waker>& waker() const { return waker_; }

  // When the present turn began.
  SteadyTime now() const { return now_; }
  // `tick` is called at the time that it returned last, or that TickBy() was given, whichever is earlier.
  void SetTick(std::function<SteadyTime(SteadyTime now)> tick) { tick_ = std::move(tick); }
  void TickBy(SteadyTime by) {
    if (by < next_tick_) next_tick_ = by;
  }

  // Until Stop().
  void Run();
  // One turn: waits, at most until the tick or `most`, and tells what happened.
  void Turn(absl::Duration most);
  // From any thread.
  void Stop();

 private:
  EventLoop() = default;
  int Timeout(absl::Duration most);

  Fd epoll_;
  std::shared_ptr<Waker> waker_;
  absl::flat_hash_map<Id, Handler*> handlers_;
  Id last_id_ = 1;  // 0 is the waker's descriptor, 1 the order to stop
  SteadyTime now_;
  SteadyTime next_tick_ = SteadyTime::Never();
  std::function<SteadyTime(SteadyTime)> tick_;
  bool stopped_ = false;
};

}  // namespace trainyard::http
