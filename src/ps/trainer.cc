#include "ps/trainer.h"

#include <atomic>
#include <limits>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/text.h"
#include "graph/exec/executor.h"
#include "ps/outputs.h"
#include "ps/record_batches.h"
#include "ps/registration.h"
#include "ps/registry.h"
#include "ps/trainer_peers.h"

namespace trainyard::ps {
namespace {

// The lead's shares, one after the other, as one source.
class SharedBatches final : public graph::BatchSource {
 public:
  SharedBatches(RecordBatches& batches, TrainerPeers& peers, Outputs& outputs)
      : batches_(batches), peers_(peers), outputs_(outputs) {}

  void Begin(const TrainerPeers::Place& place) {
    done_ = false;
    generation_ = place.generation;
    batches_.Assign(place.share);
  }

  absl::Status Next(absl::Span<graph::Tensor* const> fields) override {
    for (;;) {
      absl::Status next = batches_.Next(fields);
      if (next.ok()) outputs_.SetPlace(generation_, batches_.last().pass, peers_.step());
      if (!absl::IsOutOfRange(next)) return next;
      absl::StatusOr<Share> share = peers_.NextShare();
      if (!share.ok()) return share.status();
      done_ = share->places.empty();
      if (done_) return next;
      batches_.Assign(*std::move(share));
    }
  }

  std::int64_t pass() const override {
    return done_ ? std::numeric_limits<std::int64_t>::max() : batches_.pass();
  }

 private:
  RecordBatches& batches_;
  TrainerPeers& peers_;
  Outputs& outputs_;
  std::int64_t generation_ = 0;
  bool done_ = false;
};

// The `read` of a trainer's steps.
absl::StatusOr<const graph::Op*> FindRead(const graph::Graph& graph) {
  const graph::Op* found = nullptr;
  for (const graph::Block& block : graph.main.blocks) {
    for (const graph::Op& op : block.ops) {
      if (op.type != "read") continue;
      if (found != nullptr)
        return absl::InvalidArgumentError(
            StrCat("graph ", graph.id, " reads in two places: a trainer has one reader"));
      found = &op;
    }
  }
  if (found == nullptr)
    return absl::InvalidArgumentError(
        StrCat("graph ", graph.id, " has no `read`: a trainer in a cluster is not fed, it reads its data"));
  return found;
}

class GraphTrainer final : public Trainer {
 public:
  GraphTrainer(kv::Store& store, TrainerOptions options) : store_(store), options_(std::move(options)) {}

  ~GraphTrainer() override {
    Stop();
    registration_.reset();
    main_.reset();
    startup_.reset();
    outputs_.reset();
    {
      const MutexLock lock(mu_);
      live_peers_ = nullptr;  // nobody tells them of anything any more
    }
    peers_.reset();
    registry_.reset();
  }

  absl::Status Begin() {
    TY_ASSIGN_OR_RETURN(graph_, GetGraph(store_, options_.keys, options_.graph));
    TY_ASSIGN_OR_RETURN(const graph::Op* const read, FindRead(graph_));
    TY_ASSIGN_OR_RETURN(batches_, RecordBatches::Open(*read));
    const graph::ExecutorOptions executing{.threads = options_.threads,
                                           .check_finite = options_.check_finite};
    TY_ASSIGN_OR_RETURN(startup_, graph::PreparedBlock::Make(graph_.startup, 0, scope_, executing));
    TY_ASSIGN_OR_RETURN(main_, graph::PreparedBlock::Make(graph_.main, 0, scope_, executing));
    TY_ASSIGN_OR_RETURN(const std::int64_t incarnation,
                        NextIncarnation(store_, options_.keys, options_.graph));
    outputs_ = std::make_unique<Outputs>(store_, Clock::System(), options_.keys, options_.graph);
    registry_ = std::make_unique<Registry>(
        store_, options_.keys, Registry::Listener{.on_meta = [this](const JobMeta& meta) { OnMeta(meta); }});
    auto peers = std::make_unique<TrainerPeers>(*registry_,
                                                TrainerIdentity{options_.graph, incarnation, options_.token},
                                                [this] { return batches_->last(); });
    {
      const MutexLock lock(mu_);
      peers_ = std::move(peers);
      live_peers_ = peers_.get();
    }
    // What the registry told before there was anybody to hear it.
    TY_ASSIGN_OR_RETURN(const StoredMeta stored, GetMeta(store_, options_.keys));
    OnMeta(stored.meta);
    const GraphPod pod{
        .pod_name = options_.pod_name, .pod_ip = options_.pod_ip, .pod_port = 0, .incarnation = incarnation};
    TY_ASSIGN_OR_RETURN(registration_,
                        Registration::Make(store_, options_.keys, options_.graph, pod, options_.lease,
                                           [this](const absl::Status& status) {
                                             log::Error("the lease was lost",
                                                        {{"graph", options_.graph}, {"error", status}});
                                             const MutexLock lock(mu_);
                                             lost_ = status;
                                             if (live_peers_ != nullptr) live_peers_->Stop();
                                           }));
    log::Info("training",
              {{"graph", options_.graph}, {"records", batches_->count()}, {"incarnation", incarnation}});
    return absl::OkStatus();
  }

  absl::Status Run() override {
    for (;;) {
      absl::Status ran = RunOnce();
      if (absl::IsAborted(ran) && complete_) ran = absl::OkStatus();
      if (absl::IsAborted(ran)) {
        log::Info("joins again", {{"graph", options_.graph}, {"because", ran}});
        continue;
      }
      if (absl::IsNotFound(ran)) {
        log::Info("the job has no place for this trainer any more", {{"graph", options_.graph}});
        return absl::OkStatus();
      }
      const MutexLock lock(mu_);
      if (lost_ && !ran.ok()) return absl::UnavailableError(lost_->message());
      if (ran.ok()) outputs_->Flush(absl::Seconds(10)).IgnoreError();
      return ran;
    }
  }

  void Stop() override {
    const MutexLock lock(mu_);
    if (live_peers_ != nullptr) live_peers_->Stop();
  }

 private:
  // From joining to the end of the data, or to whatever makes it join again.
  absl::Status RunOnce() {
    TY_ASSIGN_OR_RETURN(const TrainerPeers::Place place, peers_->Join(batches_->count()));
    SharedBatches batches(*batches_, *peers_, *outputs_);
    batches.Begin(place);
    graph::Services services{.batches = &batches,
                             .peers = peers_.get(),
                             .outputs = outputs_.get(),
                             .seed = graph_.main.seed,
                             .step = place.step,
                             .worker = static_cast<std::uint64_t>(graph_.index)};
    TY_RETURN_IF_ERROR(startup_->Run(services));
    services.step = place.step;
    return main_->Run(services);
  }

  void OnMeta(const JobMeta& meta) {
    const MutexLock lock(mu_);
    if (live_peers_ == nullptr) return;
    live_peers_->Supersede(meta.generation);
    if (meta.state != JobState::kComplete) return;
    complete_ = true;
    live_peers_->Complete();
  }

  kv::Store& store_;
  const TrainerOptions options_;
  graph::Graph graph_;
  graph::Scope scope_;
  std::unique_ptr<RecordBatches> batches_;
  std::unique_ptr<graph::PreparedBlock> startup_;
  std::unique_ptr<graph::PreparedBlock> main_;
  std::unique_ptr<Outputs> outputs_;
  std::unique_ptr<Registry> registry_;
  std::unique_ptr<TrainerPeers> peers_;
  std::unique_ptr<Registration> registration_;
  Mutex mu_;
  TrainerPeers* live_peers_ TY_GUARDED_BY(mu_) = nullptr;  // the peers, while others may talk to them
  std::optional<absl::Status> lost_ TY_GUARDED_BY(mu_);
  std::atomic<bool> complete_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Start(kv::Store& store, TrainerOptions options) {
  auto trainer = std::make_unique<GraphTrainer>(store, std::move(options));
  TY_RETURN_IF_ERROR(trainer->Begin());
  return trainer;
}

}  // namespace trainyard::ps
