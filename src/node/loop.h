// One thread that waits for many descriptors and times: epoll, with functions as handlers.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mutex.h"

namespace trainyard::node {

// Used by the thread that runs it, except where said.
class Loop {
 public:
  using TimerId = std::uint64_t;
  using Ready = std::function<void(std::uint32_t events)>;

  // The clock must outlive it. Its waits are by the machine's time whatever the clock.
  static absl::StatusOr<std::unique_ptr<Loop>> Make(Clock& clock);

  // Calls `ready` while the descriptor is (level-triggered).
  void Watch(int fd, std::uint32_t events, Ready ready);
  void Change(int fd, std::uint32_t events);
  // Before the descriptor is closed. From within its handler too.
  void Forget(int fd);

  TimerId At(SteadyTime when, std::function<void()> call);
  void Cancel(TimerId timer);

  // Runs it on the loop's thread, soon. From any thread.
  void Post(std::function<void()> work);

  // Until Stop(), which may come from any thread. What was posted before is done.
  void Run();
  void Stop();
  // One turn: waits at most so long, then does what is due.
  void Turn(absl::Duration most);

  Clock& clock() { return clock_; }

 private:
  explicit Loop(Clock& clock) : clock_(clock) {}
  struct Handler {
    std::uint32_t serial = 0;
    std::shared_ptr<Ready> ready;
  };
  void RunPosted();
  void RunTimers();
  int WaitMillis(absl::Duration most);

  Clock& clock_;
  Fd epoll_;
  Fd wake_;
  std::uint32_t next_serial_ = 1;
  std::unordered_map<int, Handler> handlers_;
  std::map<std::pair<SteadyTime, TimerId>, std::function<void()>> timers_;
  std::unordered_map<TimerId, SteadyTime> timer_times_;
  TimerId next_timer_ = 1;

  Mutex mu_;
  std::vector<std::function<void()>> posted_ TY_GUARDED_BY(mu_);
  bool stopping_ TY_GUARDED_BY(mu_) = false;
};

}  // namespace trainyard::node
