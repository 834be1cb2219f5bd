#include "node/api_sender.h"

#include <utility>

namespace trainyard::node {

void ApiSender::Send(std::vector<kube::Operation> operations, std::function<void(Results)> done) {
  MutexLock lock(mu_);
  batches_.push_back({.operations = std::move(operations), .done = std::move(done)});
  changed_.Signal();
}

void ApiSender::Stop() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
    changed_.Signal();
  }
  if (thread_.joinable()) thread_.join();
}

void ApiSender::Run() {
  while (true) {
    Batch batch;
    {
      MutexLock lock(mu_);
      while (batches_.empty() && !stopping_) changed_.Wait(mu_);
      if (stopping_) return;
      batch = std::move(batches_.front());
      batches_.pop_front();
    }
    // Shared, because what is posted to a loop must be copyable.
    auto results = std::make_shared<Results>(api_.Do(std::move(batch.operations)));
    loop_.Post([done = std::move(batch.done), results] { done(std::move(*results)); });
  }
}

}  // namespace trainyard::node
