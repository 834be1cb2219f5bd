#include "base/executor.h"

#include <utility>

namespace trainyard {

Executor::~Executor() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
  }
  changed_.SignalAll();
  thread_.join();
}

void Executor::Post(std::function<void()> work) {
  MutexLock lock(mu_);
  work_.push_back(std::move(work));
  changed_.Signal();  // under the lock: what is posted may be the last thing before this object goes
}

void Executor::Run() {
  while (true) {
    std::deque<std::function<void()>> work;
    {
      MutexLock lock(mu_);
      while (work_.empty() && !stopping_) changed_.Wait(mu_);
      if (work_.empty()) return;
      work.swap(work_);
    }
    for (const std::function<void()>& item : work) item();
  }
}

}  // namespace trainyard
