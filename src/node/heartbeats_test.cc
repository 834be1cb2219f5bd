#include "node/heartbeats.h"

#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "node/node_keeper.h"

namespace trainyard::node {
namespace {

// An API server that notes which Leases are applied, and fails every request.
class LeaseServer final : public kube::Transport {
 public:
  std::vector<absl::StatusOr<kube::Response>> DoAll(std::vector<kube::Request> requests) override {
    MutexLock lock(mu_);
    std::vector<std::string> batch;
    for (const kube::Request& request : requests) {
      const std::size_t name = request.target.find("/leases/");
      if (name == std::string::npos || request.content_type != "application/apply-patch+yaml") continue;
      batch.push_back(request.target.substr(name + 8, request.target.find('?') - name - 8));
    }
    if (!batch.empty()) last_ = std::move(batch);
    changed_.SignalAll();
    return std::vector<absl::StatusOr<kube::Response>>(requests.size(), absl::UnavailableError("down"));
  }
  absl::StatusOr<kube::OpenedResponse> Open(kube::Request) override { return absl::UnavailableError("down"); }
  std::string Server() const override { return "test"; }

  // Returns when these Leases, and no others, are renewed together; the test's time limit is the patience.
  void Await(const std::vector<std::string>& leases) {
    MutexLock lock(mu_);
    while (std::exchange(last_, {}) != leases) changed_.Wait(mu_);
  }

 private:
  Mutex mu_;
  CondVar changed_;
  std::vector<std::string> last_ TY_GUARDED_BY(mu_);
};

class HeartbeatsTest : public ::testing::Test {
 protected:
  ManualClock clock_;
  LeaseServer server_;
  Heartbeats heartbeats_{server_, clock_, {.interval = absl::Seconds(2)}};
};

TEST_F(HeartbeatsTest, RenewTheLeasesOfAllNodesThatRunEvenWhenTheServerFails) {
  heartbeats_.StartNode("n1");
  server_.Await({"n1"});
  heartbeats_.StartNode("n2");
  server_.Await({"n1", "n2"});
  heartbeats_.StopNode("n1");
  clock_.Advance(absl::Seconds(2));
  server_.Await({"n2"});
}

TEST_F(HeartbeatsTest, GoOnWhileTheNodesLoopIsBusy) {
  kube::Api api(server_, clock_, IdSource(1), {.attempts = 1});
  const std::unique_ptr<Loop> loop = Loop::Make(clock_).value();
  const NodeAgentOptions options{.nodes = {{.name = "n1"}}};
  ApiSender sender(api, *loop);
  NodeKeeper keeper(*loop, options, {}, sender, heartbeats_);
  keeper.NoteListed({});
  loop->Turn(absl::ZeroDuration());  // and then never again
  for (int beat = 0; beat < 5; ++beat) {
    server_.Await({"n1"});
    clock_.Advance(absl::Seconds(2));
  }
}

}  // namespace
}  // namespace trainyard::node
