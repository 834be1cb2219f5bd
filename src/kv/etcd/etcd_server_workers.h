// What the servers of a store run on: threads for what may block, a tick, and a bound on what is under way.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "base/mutex.h"

namespace trainyard::kv {

// Threads that run what they are given, several at a time. A library's callback posts here and returns.
class Workers {
 public:
  explicit Workers(int threads);
  ~Workers() { Stop(); }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // From any thread, but not once Stop() has begun. Never blocks.
  void Post(std::function<void()> work);
  // Runs what is left, then ends. By one thread, and none of these.
  void Stop();

 private:
  void Run();

  Mutex mu_;
  CondVar changed_;
  std::deque<std::function<void()>> work_ TY_GUARDED_BY(mu_);
  bool stopping_ TY_GUARDED_BY(mu_) = false;
  std::vector<std::thread> threads_;
};

// Calls `tick` every `period`, from a thread of its own.
class Ticker {
 public:
  Ticker(absl::Duration period, std::function<void()> tick);
  ~Ticker();  // waits for a tick that is under way
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

 private:
  void Run();

  const absl::Duration period_;
  const std::function<void()> tick_;
  Mutex mu_;
  CondVar changed_;
  bool stopping_ TY_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

// How many calls are under way, and how many bytes they and their answers hold. From any thread.
class Budget {
 public:
  Budget(std::size_t most_calls, std::size_t most_bytes) : most_calls_(most_calls), most_bytes_(most_bytes) {}

  // Lets one call in that holds so many bytes. False: there is too much already, and nothing was taken.
  bool Enter(std::size_t bytes);
  // A call that is in holds more: false, and nothing was taken, if that is too much.
  bool Grow(std::size_t bytes);
  // Its answer is there and has to be sent, however much it is; others wait for it to be gone.
  void Hold(std::size_t bytes);
  // One call has ended; `bytes` is all that it held.
  void Leave(std::size_t bytes);

 private:
  const std::size_t most_calls_;
  const std::size_t most_bytes_;
  Mutex mu_;
  std::size_t calls_ TY_GUARDED_BY(mu_) = 0;
  std::size_t bytes_ TY_GUARDED_BY(mu_) = 0;
};

}  // namespace trainyard::kv
