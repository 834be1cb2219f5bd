// Sends batches of writes to the API server from a thread of its own and brings the answers back to the
// node's loop, which therefore never waits.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "kube/api.h"
#include "node/loop.h"

namespace trainyard::node {

class ApiSender {
 public:
  using Results = std::vector<absl::StatusOr<std::string>>;
  // The API and the loop must outlive it.
  ApiSender(kube::Api& api, Loop& loop) : api_(api), loop_(loop), thread_([this] { Run(); }) {}
  ~ApiSender() { Stop(); }
  ApiSender(const ApiSender&) = delete;
  ApiSender& operator=(const ApiSender&) = delete;

  // All at once; batches one after the other. `done` is called on the loop.
  void Send(std::vector<kube::Operation> operations, std::function<void(Results)> done);
  // Ends after the batch that is under way; the others are dropped. May be called twice.
  void Stop();

 private:
  struct Batch {
    std::vector<kube::Operation> operations;
    std::function<void(Results)> done;
  };
  void Run();

  kube::Api& api_;
  Loop& loop_;
  Mutex mu_;
  CondVar changed_;
  std::deque<Batch> batches_ TY_GUARDED_BY(mu_);
  bool stopping_ TY_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace trainyard::node
