#include "ps/pool.h"

namespace trainyard::ps {

Pool::Pool(int threads) {
  for (int i = 1; i < threads; ++i) threads_.emplace_back([this] { Serve(); });
}

Pool::~Pool() {
  {
    const MutexLock lock(mu_);
    stopping_ = true;
  }
  changed_.SignalAll();
  for (std::thread& thread : threads_) thread.join();
}

void Pool::RunAll(std::size_t count, const std::function<void(std::size_t)>& work) {
  {
    const MutexLock lock(mu_);
    work_ = &work;
    next_ = 0;
    count_ = count;
  }
  changed_.SignalAll();
  Help();
  const MutexLock lock(mu_);
  while (running_ > 0) changed_.Wait(mu_);
  work_ = nullptr;
}

void Pool::Help() {
  for (;;) {
    std::size_t job = 0;
    const std::function<void(std::size_t)>* work = nullptr;
    {
      const MutexLock lock(mu_);
      if (work_ == nullptr || next_ >= count_) return;
      job = next_++;
      work = work_;
      ++running_;
    }
    (*work)(job);
    const MutexLock lock(mu_);
    if (--running_ == 0) changed_.SignalAll();
  }
}

void Pool::Serve() {
  for (;;) {
    {
      const MutexLock lock(mu_);
      while (!stopping_ && (work_ == nullptr || next_ >= count_)) changed_.Wait(mu_);
      if (stopping_) return;
    }
    Help();
  }
}

}  // namespace trainyard::ps
