// Threads that share a list of jobs.
#pragma once

#include <functional>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace trainyard::ps {

class Pool {
 public:
  // The thread that calls RunAll() is one of them.
  explicit Pool(int threads);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // Calls work(0) ... work(count - 1), each once, and returns when all have. One caller at a time.
  void RunAll(std::size_t count, const std::function<void(std::size_t)>& work);

 private:
  void Serve();
  // Takes jobs until there are none left.
  void Help();

  Mutex mu_;
  CondVar changed_;
  const std::function<void(std::size_t)>* work_ TY_GUARDED_BY(mu_) = nullptr;
  std::size_t next_ TY_GUARDED_BY(mu_) = 0;
  std::size_t count_ TY_GUARDED_BY(mu_) = 0;
  std::size_t running_ TY_GUARDED_BY(mu_) = 0;
  bool stopping_ TY_GUARDED_BY(mu_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace trainyard::ps
