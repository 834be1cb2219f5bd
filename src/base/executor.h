// A thread that runs what it is given, in order. Where a library calls back on a thread of its own, its
// callback posts here and returns.
#pragma once

#include <deque>
#include <functional>
#include <thread>

#include "base/mutex.h"

namespace trainyard {

class Executor {
 public:
  Executor() : thread_([this] { Run(); }) {}
  // Runs what is left, then ends.
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // From any thread, but not once the destructor has begun.
  void Post(std::function<void()> work);

 private:
  void Run();

  Mutex mu_;
  CondVar changed_;
  std::deque<std::function<void()>> work_ TY_GUARDED_BY(mu_);
  bool stopping_ TY_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace trainyard
