// Gives memory back to the system that a process has used once and keeps. Buffers of messages are kept on
// purpose (wire_options.cc), as long as they are needed again soon.
#pragma once

#include <cstdint>
#include <deque>
#include <thread>

#include "absl/time/time.h"
#include "base/mutex.h"

namespace trainyard::ps {

// What a process has, in bytes.
struct MemoryLook {
  std::int64_t resident = 0;  // without what is mapped from files
  std::int64_t in_use = 0;
};
MemoryLook LookAtMemory();

// Pure: whether it is time to give some back.
class SpareMemoryJudge {
 public:
  // One more look. True: in each of the last kLooks the process had more beside what it used than kMostSpare
  // and a quarter of what it used.
  bool Take(const MemoryLook& look);

  static constexpr std::size_t kLooks = 5;
  static constexpr std::int64_t kMostSpare = std::int64_t{64} << 20;

 private:
  std::deque<bool> looks_;  // whether it had too much
};

// Looks again and again, on a thread of its own.
class SpareMemory {
 public:
  explicit SpareMemory(absl::Duration between_looks = absl::Seconds(1));
  ~SpareMemory();

 private:
  void Run();

  const absl::Duration between_looks_;
  Mutex mu_;
  CondVar changed_;
  bool stopping_ TY_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace trainyard::ps
