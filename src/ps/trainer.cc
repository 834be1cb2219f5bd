#include "ps/trainer.h"

#include <atomic>
#include <chrono>
#include <limits>
#include <optional>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/pace.h"
#include "base/status.h"
#include "base/text.h"
#include "graph/exec/executor.h"
#include "ps/job.h"
#include "ps/origin.h"
#include "ps/outputs.h"
#include "ps/record_batches.h"
#include "ps/registration.h"
#include "ps/registry.h"
#include "ps/rpc/places.h"
#include "ps/step_outputs.h"
#include "ps/trainer_peers.h"

namespace trainyard::ps {
namespace {

constexpr absl::Duration kFlush = absl::Seconds(10);
constexpr std::chrono::milliseconds kTrainerRetry(20);

// The lead's shares, one after the other, as one source.
class SharedBatches final : public graph::BatchSource {
 public:
  SharedBatches(RecordBatches& batches, TrainerPeers& peers, StepOutputs& outputs)
      : batches_(batches), peers_(peers), outputs_(outputs) {}

  void Begin(const TrainerPeers::Place& place) {
    done_ = false;
    generation_ = place.generation;
    outputs_.Resume(place.step);
    batches_.Assign(place.share);
  }

  absl::Status Next(absl::Span<graph::Tensor* const> fields) override {
    outputs_.Settle(true);  // the parameters that came of it are here
    for (;;) {
      absl::Status next = batches_.Next(fields);
      if (next.ok()) outputs_.Begin(generation_, batches_.last().pass, peers_.step());
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
  StepOutputs& outputs_;
  std::int64_t generation_ = 0;
  bool done_ = false;
};

class GraphTrainer final : public Trainer {
 public:
  GraphTrainer(kv::Store& store, TrainerOptions options) : store_(store), options_(std::move(options)) {}

  ~GraphTrainer() override {
    Stop();
    registration_.reset();
    main_.reset();
    startup_.reset();
    step_outputs_.reset();
    outputs_.reset();
    if (registry_ != nullptr) registry_->Stop();  // nobody tells the peers of anything any more
    peers_.reset();
    registry_.reset();
  }

  absl::Status Begin() {
    TY_ASSIGN_OR_RETURN(const StoredMeta stored, GetMeta(store_, options_.keys));
    TY_RETURN_IF_ERROR(TakePrograms(stored.meta));
    TY_ASSIGN_OR_RETURN(const graph::Op* const read, FindRead(graph_));
    TY_ASSIGN_OR_RETURN(batches_, RecordBatches::Open(*read));
    TY_ASSIGN_OR_RETURN(const std::int64_t incarnation,
                        NextIncarnation(store_, options_.keys, options_.graph));
    outputs_ = std::make_unique<Outputs>(store_, Clock::System(), options_.keys, options_.graph);
    step_outputs_ = std::make_unique<StepOutputs>(*outputs_, Clock::System());
    Registry::Listener listener{.on_meta = [this](const JobMeta& meta) { OnMeta(meta); },
                                .on_deleted = [this] { End(JobDeletedError(options_.keys)); }};
    if (stored.meta.foreground) {
      listener.on_client_gone = [this] { FailWithoutClient(store_, options_.keys, ending_); };
    }
    registry_ = std::make_unique<Registry>(store_, options_.keys, std::move(listener));
    peers_ = std::make_unique<TrainerPeers>(*registry_,
                                            TrainerIdentity{options_.graph, incarnation, options_.token},
                                            [this](wire::ContributeRequest& request) {
                                              *request.mutable_used() = ToWire(batches_->last());
                                              request.set_output(step_outputs_->Pending());
                                              request.set_unwritten(outputs_->CountUnwritten());
                                            });
    TY_RETURN_IF_ERROR(registry_->Start());
    const GraphPod pod{
        .pod_name = options_.pod_name, .pod_ip = options_.pod_ip, .pod_port = 0, .incarnation = incarnation};
    TY_ASSIGN_OR_RETURN(registration_,
                        Registration::Make(store_, options_.keys, options_.graph, pod, options_.lease,
                                           [this](const absl::Status& status) { End(status); }));
    log::Info("training",
              {{"graph", options_.graph}, {"records", batches_->count()}, {"incarnation", incarnation}});
    return absl::OkStatus();
  }

  absl::Status Run() override {
    for (;;) {
      const absl::Status ran = RunOnce();
      if (const std::optional<absl::Status> outcome = Outcome(); outcome && !ran.ok()) {
        if (outcome->ok()) outputs_->Flush(kFlush).IgnoreError();
        return *outcome;
      }
      if (absl::IsAborted(ran)) {
        log::Info("joins again", {{"graph", options_.graph}, {"because", ran}});
        continue;
      }
      if (ran.ok()) outputs_->Flush(kFlush).IgnoreError();
      return ran;
    }
  }

  void Stop() override { End(absl::CancelledError("the trainer was told to stop")); }

 private:
  // Whatever it does ends, and this is why.
  void End(const absl::Status& why) {
    ending_ = true;
    const MutexLock lock(mu_);
    if (!outcome_) outcome_ = why;
    if (peers_ != nullptr) peers_->Stop();
  }

  std::optional<absl::Status> Outcome() {
    const MutexLock lock(mu_);
    return outcome_;
  }

  // The graph as the job is cut now.
  absl::Status TakePrograms(const JobMeta& meta) {
    if (main_ != nullptr && graph_.cut == meta.Cut()) return absl::OkStatus();
    TY_ASSIGN_OR_RETURN(graph_, TakeGraph(store_, options_.keys, meta, options_.graph));
    const graph::ExecutorOptions executing{
        .threads = options_.threads,
        .check_finite = options_.check_finite,
        .on_loss = [this, policy = meta.on_nonfinite](const std::string& name, const graph::Tensor& loss) {
          return CheckLoss(policy, name, loss);
        }};
    main_.reset();
    startup_.reset();
    scope_ = std::make_unique<graph::Scope>();
    TY_ASSIGN_OR_RETURN(startup_, graph::PreparedBlock::Make(graph_.startup, 0, *scope_, executing));
    TY_ASSIGN_OR_RETURN(main_, graph::PreparedBlock::Make(graph_.main, 0, *scope_, executing));
    return absl::OkStatus();
  }

  // What the pservers make of the gradients that follow is theirs to check.
  absl::Status CheckLoss(graph::OnNonFinite policy, const std::string& name, const graph::Tensor& loss) {
    const std::string nonfinite = graph::FindNonFinite(name, loss);
    if (nonfinite.empty()) return absl::OkStatus();
    if (policy == graph::OnNonFinite::kFail)
      return absl::FailedPreconditionError(
          StrCat("step ", peers_->step(), ": ", nonfinite, ": ", graph::kNonFiniteHint));
    if (nonfinite_pace_.Take(Clock::System().Steady()))
      log::Warn("a number is not finite", {{"graph", options_.graph},
                                           {"step", peers_->step()},
                                           {"what", nonfinite},
                                           {"policy", graph::Name(policy)}});
    return absl::OkStatus();
  }

  // The lead's place for this trainer, and a graph that fits its generation. None: the job has no place for
  // it any more.
  absl::StatusOr<std::optional<TrainerPeers::Place>> TakePlace() {
    for (;;) {
      const absl::StatusOr<StoredMeta> stored = GetMeta(store_, options_.keys);
      if (absl::IsNotFound(stored.status())) return stored.status();
      if (stored.ok()) {
        if (graph_.index >= stored->meta.trainers) return std::nullopt;
        TY_RETURN_IF_ERROR(TakePrograms(stored->meta));
        const absl::StatusOr<TrainerPeers::Place> place = peers_->Join(batches_->count());
        if (place.ok() && place->generation == stored->meta.generation) return *place;
        if (!place.ok() && !absl::IsNotFound(place.status())) return place.status();
      }
      // The store cannot be reached, or the lead is on its way from one generation to the next.
      if (ending_) return absl::CancelledError("the trainer is ending");
      std::this_thread::sleep_for(kTrainerRetry);
    }
  }

  // From joining to the end of the data, or to whatever makes it join again.
  absl::Status RunOnce() {
    TY_ASSIGN_OR_RETURN(const std::optional<TrainerPeers::Place> found, TakePlace());
    if (!found) {
      log::Info("the job has no place for this trainer any more", {{"graph", options_.graph}});
      return absl::OkStatus();
    }
    const TrainerPeers::Place& place = *found;
    SharedBatches batches(*batches_, *peers_, *step_outputs_);
    batches.Begin(place);
    graph::Services services{.batches = &batches,
                             .peers = peers_.get(),
                             .outputs = step_outputs_.get(),
                             .seed = graph_.main.seed,
                             .step = place.step,
                             .worker = static_cast<std::uint64_t>(graph_.index)};
    TY_RETURN_IF_ERROR(startup_->Run(services));
    services.step = place.step;
    return main_->Run(services);
  }

  void OnMeta(const JobMeta& meta) {
    peers_->Supersede(meta.generation);
    if (meta.state == JobState::kComplete) End(absl::OkStatus());
    if (meta.state == JobState::kFailed) End(JobFailedError(meta));
  }

  kv::Store& store_;
  const TrainerOptions options_;
  graph::Graph graph_;
  std::unique_ptr<graph::Scope> scope_;
  std::unique_ptr<RecordBatches> batches_;
  std::unique_ptr<graph::PreparedBlock> startup_;
  std::unique_ptr<graph::PreparedBlock> main_;
  std::unique_ptr<Outputs> outputs_;
  std::unique_ptr<StepOutputs> step_outputs_;
  std::unique_ptr<TrainerPeers> peers_;
  std::unique_ptr<Registry> registry_;
  std::unique_ptr<Registration> registration_;
  Pace nonfinite_pace_ = Pace(Clock::System().Steady());  // of the thread that runs
  std::atomic<bool> ending_ = false;
  Mutex mu_;
  std::optional<absl::Status> outcome_ TY_GUARDED_BY(mu_);
};

}  // namespace

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Start(kv::Store& store, TrainerOptions options) {
  auto trainer = std::make_unique<GraphTrainer>(store, std::move(options));
  TY_RETURN_IF_ERROR(trainer->Begin());
  return trainer;
}

}  // namespace trainyard::ps
