// A trainer's side of the calls: gradients go out while the backward pass goes on, parameters come in, and
// the lead is told what was done. A peer that cannot be reached is looked up again and tried again, until it
// answers or the job has gone on without this trainer.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/executor.h"
#include "base/mutex.h"
#include "graph/kernel/services.h"
#include "ps/peer_calls.h"
#include "ps/record_batches.h"
#include "ps/registry.h"
#include "ps/rpc/message.pb.h"

namespace trainyard::ps {

struct TrainerIdentity {
  std::string graph;
  std::int64_t incarnation = 0;
  std::string token;
};

// Errors of all calls: Aborted: a new generation has begun, or a later incarnation of this trainer: join
// again. NotFound, of Join(): the lead knows of no such trainer, or not yet. Cancelled: after Stop(). Others
// are for good.
class TrainerPeers final : public graph::Peers {
 public:
  // `describe` puts into a contribution which records its gradients are of, and what the step has put out.
  using Describe = std::function<void(wire::ContributeRequest& request)>;
  TrainerPeers(Registry& registry, TrainerIdentity identity, Describe describe);
  ~TrainerPeers() override;

  struct Place {
    std::int64_t generation = 0;
    std::int64_t step = 0;
    Share share;
  };
  // Tells the lead that this trainer is here, and learns where it stands. Waits for the lead.
  absl::StatusOr<Place> Join(std::int64_t records);
  // What to read next; no places: all is done. Waits until there is something or the job is complete.
  absl::StatusOr<Share> NextShare();

  absl::Status Send(std::string_view graph, const std::string& name, const graph::Value& value) override;
  absl::Status SendBarrier(const graph::Strings& graphs) override;
  absl::Status Receive(std::string_view graph, const std::string& name, graph::Tensor& into) override;
  absl::Status FetchBarrier(const graph::Strings& graphs) override;
  absl::Status Prefetch(std::string_view graph, const std::string& table, const graph::Tensor& ids,
                        graph::Tensor& rows) override;

  // The step that is being done.
  std::int64_t step() const { return step_; }
  // A later generation than that of the last Join() has begun: what waits need not wait any longer.
  void Supersede(std::int64_t generation);
  // Whatever waits ends with Cancelled.
  void Stop();

 private:
  struct Bundle;
  using Bundles = std::map<std::string, std::shared_ptr<Bundle>, std::less<>>;  // by the graph they go to
  wire::Caller CallerTo(std::string_view graph) const;
  // Adds a part to the bundle for that graph, which goes when it is large enough.
  void Add(Bundles& bundles, std::string_view method, std::string_view graph, wire::Part part,
           const graph::Value& value);
  // Lets all of them go.
  void Flush(Bundles& bundles);
  void Dispatch(const std::shared_ptr<Bundle>& bundle);
  void Launch(const std::shared_ptr<Bundle>& bundle);
  void Settle(const std::shared_ptr<Bundle>& bundle, absl::StatusOr<Unpacked> answer);
  static absl::Status Take(Bundle& bundle, const Unpacked& answer);
  void Finished(const absl::Status& status);
  // Waits until nothing is under way.
  absl::Status Drain();
  // All gradients of the step have arrived: tells the lead, and goes on to the next.
  absl::Status Contribute();
  template <typename Request, typename Reply>
  absl::Status CallLead(std::string_view method, Request request, Reply& reply);
  // Whether waiting has become pointless, and why.
  absl::Status Hopeless() const;

  Registry& registry_;
  const TrainerIdentity identity_;
  const Describe describe_;
  std::atomic<std::int64_t> attempt_ = 0;  // how often it has joined
  std::atomic<std::int64_t> generation_ = 0;
  std::atomic<std::int64_t> newest_generation_ = 0;
  std::atomic<std::int64_t> step_ = 0;
  std::atomic<bool> stopping_ = false;
  bool sent_ = false;  // something was sent since the last contribution
  Bundles pushes_;     // that are still being filled, as are these
  Bundles pulls_;

  Mutex mu_;
  CondVar changed_;
  int under_way_ TY_GUARDED_BY(mu_) = 0;
  absl::Status failure_ TY_GUARDED_BY(mu_);
  Channels channels_;
  std::unique_ptr<Executor> retries_ = std::make_unique<Executor>();
};

}  // namespace trainyard::ps
