// Pserver's insides, in one class and four files: pserver.cc (begin and end, and what the store tells),
// pserver_calls.cc (what others call), pserver_lead.cc (what only the lead does), pserver_checkpoints.cc.
//
// Threads: calls come on the RPC server's threads and hold `calls_mu_` together; what changes the generation
// holds it alone, so no call sees half of a change. The lead's account is used on `lead_thread_` alone, where
// new generations begin too.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/executor.h"
#include "base/mutex.h"
#include "ps/lead.h"
#include "ps/parameters.h"
#include "ps/pserver.h"
#include "ps/registration.h"
#include "ps/registry.h"
#include "ps/rpc/channel.h"
#include "ps/rpc/message.pb.h"
#include "ps/rpc/server.h"

namespace trainyard::ps {

class GraphPserver final : public Pserver {
 public:
  GraphPserver(kv::Store& store, PserverOptions options);
  ~GraphPserver() override;

  absl::Status Begin();
  absl::Status Wait() override;
  void Stop() override;
  int port() const override { return server_->port(); }
  std::int64_t step() const override { return parameters_->step(); }

 private:
  using Held = std::unique_ptr<Exchange>;
  using Pulling = std::pair<wire::PullRequest, Held>;

  void End(const absl::Status& status);
  std::vector<std::string> Pservers() const;

  // The job's way: pserver.cc.
  absl::StatusOr<StoredMeta> RollBack();
  absl::Status TakeState(const JobMeta& meta);
  void OnPod(const std::string& name, const std::optional<GraphPod>& pod);
  void OnMeta(const JobMeta& meta);
  void GoBack(const JobMeta& meta);
  void SwitchAll(const JobMeta& meta);
  absl::Status Switch(std::int64_t generation);

  // Calls: pserver_calls.cc.
  void Handle(Held exchange);
  absl::Status Check(const wire::Caller& caller) const;
  template <typename Request>
  bool Accept(Exchange& exchange, Request& request) const;
  void HandlePush(Held exchange);
  void HandlePull(Held exchange);
  void HandlePrefetch(Held exchange);
  void HandleApply(Held exchange);
  void HandleSwitch(Held exchange);
  void HandleCheckpoint(Held exchange);
  void AnswerPull(const wire::PullRequest& request, Exchange& exchange);
  // Those that waited for a step which has been applied.
  void AnswerWaiting();
  void DropWaiting(const absl::Status& why);

  // The lead: pserver_lead.cc.
  void HandleJoin(Held exchange);
  void HandleContribute(Held exchange);
  void HandleShare(Held exchange);
  void CommitIfComplete();
  bool ApplyEverywhere(std::int64_t step, const std::vector<int>& trainers);
  void FinishIfDone();
  absl::Status Finish();
  void AnswerIdle(const absl::Status& status);
  // Calls another pserver until it answers or a new generation has begun.
  template <typename Request>
  absl::Status Tell(const std::string& graph, std::string_view method, Request request);
  std::shared_ptr<Channel> ChannelTo(const std::string& graph, const GraphPod& pod);

  // Checkpoints: pserver_checkpoints.cc.
  void CheckpointIfDue();
  absl::Status WriteNow(Parameters::Snapshot snapshot, std::string extra);

  kv::Store& store_;
  const PserverOptions options_;
  const bool is_lead_;
  // Set by Begin() and then only read.
  std::int64_t incarnation_ = 0;
  graph::SyncMode mode_ = graph::SyncMode::kSync;
  std::string layout_;
  std::int64_t checkpoint_every_ = 100;
  int pservers_ = 1;
  std::unique_ptr<Parameters> parameters_;

  std::unique_ptr<Lead> lead_;  // lead_thread_
  bool finished_ = false;       // lead_thread_: all is written down
  std::vector<Held> idle_;      // lead_thread_: trainers that have nothing to do until all have
  std::atomic<std::int64_t> generation_ = 0;
  std::atomic<std::int64_t> newest_generation_ = 0;  // that the store has told of
  std::atomic<std::int64_t> last_checkpoint_ = -1;
  std::atomic<bool> writing_ = false;
  std::atomic<bool> stopping_ = false;
  std::shared_mutex calls_mu_;

  Mutex mu_;
  CondVar changed_;
  std::optional<absl::Status> ended_ TY_GUARDED_BY(mu_);
  std::vector<Pulling> waiting_ TY_GUARDED_BY(mu_);
  std::map<std::string, std::int64_t> incarnations_ TY_GUARDED_BY(mu_);
  std::map<std::string, std::pair<std::int64_t, std::shared_ptr<Channel>>> channels_ TY_GUARDED_BY(mu_);

  std::unique_ptr<Executor> lead_thread_ = std::make_unique<Executor>();
  std::unique_ptr<Executor> checkpoint_thread_ = std::make_unique<Executor>();
  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<Registry> registry_;
  std::unique_ptr<Registration> registration_;
};

// The number of "trainer-3", or -1.
int TrainerOf(std::string_view graph);

}  // namespace trainyard::ps
