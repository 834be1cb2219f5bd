#include "ps/rpc/spare_memory.h"

#include <malloc.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "base/clock.h"

namespace trainyard::ps {
namespace {

constexpr std::int64_t kKilobyte = 1024;

}  // namespace

MemoryLook LookAtMemory() {
  MemoryLook look;
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != "RssAnon:") continue;
    status >> look.resident;
    look.resident *= kKilobyte;
    break;
  }
  const auto heap = ::mallinfo2();
  look.in_use = static_cast<std::int64_t>(heap.uordblks + heap.hblkhd);
  return look;
}

bool SpareMemoryJudge::Take(const MemoryLook& look) {
  looks_.push_back(look.resident - look.in_use > kMostSpare + look.in_use / 4);
  if (looks_.size() > kLooks) looks_.pop_front();
  const bool due =
      looks_.size() == kLooks && std::all_of(looks_.begin(), looks_.end(), [](bool much) { return much; });
  if (due) looks_.clear();
  return due;
}

SpareMemory::SpareMemory(absl::Duration between_looks)
    : between_looks_(between_looks), thread_([this] { Run(); }) {}

SpareMemory::~SpareMemory() {
  {
    const MutexLock lock(mu_);
    stopping_ = true;
    changed_.SignalAll();
  }
  thread_.join();
}

void SpareMemory::Run() {
  SpareMemoryJudge judge;
  for (;;) {
    const SteadyTime next = Clock::System().Steady() + between_looks_;
    {
      const MutexLock lock(mu_);
      while (!stopping_ && changed_.WaitUntil(mu_, next)) {
      }
      if (stopping_) return;
    }
    if (judge.Take(LookAtMemory())) ::malloc_trim(0);
  }
}

}  // namespace trainyard::ps
