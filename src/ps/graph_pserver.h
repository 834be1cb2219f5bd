// Pserver's insides, in one class and five files: pserver.cc (begin and end, and what the store tells),
// pserver_generations.cc (from one generation to the next), pserver_calls.cc (what others call),
// pserver_lead.cc (what only the lead does), pserver_checkpoints.cc.
//
// Threads: calls come on the RPC server's threads and hold `calls_mu_` together; what changes the generation
// holds it alone, so no call sees half of a change. The lead's account is used on `lead_thread_` alone, where
// new generations begin too, on every pserver.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/executor.h"
#include "base/mutex.h"
#include "ps/checkpoint.h"
#include "ps/held_outputs.h"
#include "ps/lead.h"
#include "ps/parameters.h"
#include "ps/peer_calls.h"
#include "ps/pserver.h"
#include "ps/registration.h"
#include "ps/registry.h"
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
  std::int64_t step() const override;

 private:
  using Held = std::unique_ptr<Exchange>;
  using Pulling = std::pair<wire::TransferRequest, Held>;

  void End(const absl::Status& status);
  absl::Status Serve();
  void OnPod(const std::string& name, const std::optional<GraphPod>& pod);
  void OnMeta(const JobMeta& meta);

  // Generations: pserver_generations.cc.
  absl::StatusOr<JobMeta> BeginAnew();
  absl::Status TakePrograms(const JobMeta& meta);
  absl::Status TakeState(const JobMeta& meta);
  absl::StatusOr<std::optional<CheckpointData>> FindState(const JobMeta& meta);
  absl::StatusOr<CheckpointData> CutAnew(const JobMeta& meta);
  absl::Status Advance(const JobMeta& meta);
  absl::Status AdvanceTo(std::int64_t generation);
  void AdvanceAll(const JobMeta& meta);

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
  absl::Status Keep(const wire::TransferRequest& request, const Unpacked& message);
  void AnswerPull(const wire::TransferRequest& request, Exchange& exchange);
  // Those that waited for a step which has been applied.
  void AnswerWaiting();
  void DropWaiting(const absl::Status& why);

  // The lead: pserver_lead.cc.
  void HandleJoin(Held exchange);
  void HandleContribute(Held exchange);
  void HandleShare(Held exchange);
  void CommitIfComplete();
  bool ApplyEverywhere(std::int64_t step, const std::vector<int>& trainers);
  void AnnounceRunning();
  void FinishIfDone();
  absl::Status Finish();
  // Writes the outputs of committed steps that trainers which are gone have left; `all`: also of the others.
  absl::Status WriteHeldOutputs(bool all = false);
  void TellOfHeldOutputs();
  void AnswerIdle(const absl::Status& status);
  void RouseIdle();
  // Calls all other pservers, does `meanwhile`, and waits until they have answered or a later generation has
  // begun: any, or, `to_the_end`, one that goes back and so undoes whatever was half done.
  struct Telling {
    std::string method;
    absl::Duration timeout = absl::Seconds(5);
    std::int64_t generation = 0;
    int pservers = 0;
    bool to_the_end = false;
    std::function<void()> meanwhile = [] {};
  };
  template <typename Request>
  absl::Status TellOthers(const Telling& telling, const Request& request);

  // Checkpoints: pserver_checkpoints.cc.
  void CheckpointIfDue();
  // `common`: all pservers write one under this step.
  absl::Status WriteNow(const JobMeta& meta, Parameters::Snapshot snapshot, std::string extra,
                        bool common = false);
  absl::StatusOr<std::int64_t> WriteEverywhere();
  void WriteAsAsked();

  kv::Store& store_;
  const PserverOptions options_;
  const int index_;
  const bool is_lead_;
  // Set by Begin() and then only read.
  std::int64_t incarnation_ = 0;
  graph::SyncMode mode_ = graph::SyncMode::kSync;

  // Changed on lead_thread_, while no call holds calls_mu_; read there, or in a call.
  JobMeta meta_;  // as the generation has it
  graph::Graph graph_;
  std::unique_ptr<Parameters> parameters_;
  mutable std::shared_mutex calls_mu_;

  // lead_thread_'s.
  std::unique_ptr<Lead> lead_;
  bool finished_ = false;   // all is written down
  bool announced_ = false;  // that the job runs
  HeldOutputs outputs_;
  std::map<int, Held> idle_;   // trainers that have nothing to do until all have
  std::int64_t asked_ = 0;     // checkpoints beside those that are due
  std::int64_t answered_ = 0;  // of these

  std::atomic<std::int64_t> generation_ = 0;
  std::atomic<std::int64_t> newest_generation_ = 0;  // that the store has told of
  std::atomic<std::int64_t> newest_back_ = 0;        // of those that went back
  std::atomic<std::int64_t> last_checkpoint_ = -1;
  std::atomic<bool> writing_ = false;
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> between_ = false;  // two generations: what is here is of neither

  // Held while checkpoints are published or forgotten, so that none of an undone step comes after that.
  Mutex publish_mu_;
  std::int64_t taken_back_ TY_GUARDED_BY(publish_mu_) = 0;  // the generation that went back last, here

  Mutex mu_;
  CondVar changed_;
  std::optional<absl::Status> ended_ TY_GUARDED_BY(mu_);
  std::vector<Pulling> waiting_ TY_GUARDED_BY(mu_);
  std::map<std::string, std::int64_t> incarnations_ TY_GUARDED_BY(mu_);

  Channels channels_;
  std::unique_ptr<Executor> lead_thread_ = std::make_unique<Executor>();
  std::unique_ptr<Executor> checkpoint_thread_ = std::make_unique<Executor>();
  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<Registry> registry_;
  std::unique_ptr<Registration> registration_;
};

// The number of "trainer-3", or -1.
int TrainerOf(std::string_view graph);

absl::Status GenerationBegun(std::int64_t generation);

}  // namespace trainyard::ps
