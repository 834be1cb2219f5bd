#include "kv/etcd/etcd_server_workers.h"

#include <utility>

#include "base/clock.h"

namespace trainyard::kv {

Workers::Workers(int threads) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
}

void Workers::Stop() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
    changed_.SignalAll();
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void Workers::Post(std::function<void()> work) {
  MutexLock lock(mu_);
  work_.push_back(std::move(work));
  changed_.Signal();  // under the lock: what is posted may be the last thing before this object goes
}

void Workers::Run() {
  while (true) {
    std::function<void()> work;
    {
      MutexLock lock(mu_);
      while (work_.empty() && !stopping_) changed_.Wait(mu_);
      if (work_.empty()) return;
      work = std::move(work_.front());
      work_.pop_front();
    }
    work();
  }
}

Ticker::Ticker(absl::Duration period, std::function<void()> tick)
    : period_(period), tick_(std::move(tick)), thread_([this] { Run(); }) {}

Ticker::~Ticker() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
    changed_.SignalAll();
  }
  thread_.join();
}

void Ticker::Run() {
  while (true) {
    {
      MutexLock lock(mu_);
      const SteadyTime next = Clock::System().Steady() + period_;
      while (!stopping_ && changed_.WaitUntil(mu_, next)) {
      }
      if (stopping_) return;
    }
    tick_();
  }
}

bool Budget::Enter(std::size_t bytes) {
  MutexLock lock(mu_);
  if (calls_ >= most_calls_ || bytes_ + bytes > most_bytes_) return false;
  ++calls_;
  bytes_ += bytes;
  return true;
}

bool Budget::Grow(std::size_t bytes) {
  MutexLock lock(mu_);
  if (bytes_ + bytes > most_bytes_) return false;
  bytes_ += bytes;
  return true;
}

void Budget::Hold(std::size_t bytes) {
  MutexLock lock(mu_);
  bytes_ += bytes;
}

void Budget::Leave(std::size_t bytes) {
  MutexLock lock(mu_);
  --calls_;
  bytes_ -= bytes;
}

}  // namespace trainyard::kv
