// Parameters in steps: all gradients of a step come together, then they are applied.
#include <algorithm>
#include <utility>

#include "base/mutex.h"
#include "base/status.h"
#include "base/text.h"
#include "ps/inbox.h"
#include "ps/parameter_blocks.h"
#include "ps/parameters_made.h"
#include "ps/pool.h"
#include "ps/rpc/tensor_parts.h"

namespace trainyard::ps {
namespace {

class SyncParameters final : public Parameters {
 public:
  SyncParameters(std::unique_ptr<ParameterBlocks> blocks, int threads)
      : pool_(threads), blocks_(std::move(blocks)) {
    FindSlots();
  }

  absl::Status Start() override {
    TY_RETURN_IF_ERROR(blocks_->Start());
    return Begin(0);
  }

  absl::Status Restore(std::int64_t step, std::map<std::string, graph::Tensor> variables) override {
    TY_RETURN_IF_ERROR(blocks_->Restore(std::move(variables)));
    return Begin(step);
  }

  absl::Status Reprogram(const graph::Graph& graph) override {
    TY_ASSIGN_OR_RETURN(std::unique_ptr<ParameterBlocks> blocks,
                        ParameterBlocks::Make(graph, blocks_->on_nonfinite()));
    TY_RETURN_IF_ERROR(blocks->TakeFrom(*blocks_));
    const MutexLock lock(mu_);
    blocks_ = std::move(blocks);
    FindSlots();
    return absl::OkStatus();
  }

  void Forget() override {
    const MutexLock lock(mu_);
    for (auto& [name, slot] : slots_) slot.inbox.Clear();
  }

  std::int64_t step() const override {
    const MutexLock lock(mu_);
    return step_;
  }

  absl::Status Push(const GradientPart& part) override {
    Slot* slot = nullptr;
    {
      const MutexLock lock(mu_);
      if (part.step < step_) return absl::OkStatus();
      if (part.step > step_ || applying_)
        return absl::UnavailableError(StrCat("step ", part.step, " is not open yet, step ", step_, " is"));
      const auto found = slots_.find(part.part.name());
      if (found == slots_.end())
        return absl::InvalidArgumentError(
            StrCat(blocks_->graph().id, " has no gradient ", Shortened(part.part.name(), 128)));
      slot = &found->second;
      TY_ASSIGN_OR_RETURN(const Inbox::Verdict verdict,
                          slot->inbox.Expect(part, slot->type, slot->variable->value));
      if (verdict == Inbox::Verdict::kRepeat) return absl::OkStatus();
      ++copying_;
    }
    // Outside the lock, so that gradients of several trainers come in at once.
    absl::Status copied = Inbox::Copy(part, slot->variable->value);
    const MutexLock lock(mu_);
    slot->inbox.Arrived(part, copied.ok());
    slot->inbox.Release();
    if (--copying_ == 0) changed_.SignalAll();
    return copied;
  }

  absl::Status Apply(std::int64_t step, const std::vector<int>& trainers) override {
    {
      const MutexLock lock(mu_);
      while (applying_) changed_.Wait(mu_);
      if (step < step_) return absl::OkStatus();
      if (step > step_)
        return absl::FailedPreconditionError(
            StrCat("step ", step, " is to be applied and ", blocks_->graph().id, " is at ", step_));
      TY_RETURN_IF_ERROR(Choose(trainers));
      applying_ = true;
      while (copying_ > 0) changed_.Wait(mu_);
    }
    absl::Status applied = RunBlocks();
    const MutexLock lock(mu_);
    applying_ = false;
    if (applied.ok()) ++step_;
    changed_.SignalAll();
    return applied;
  }

  absl::StatusOr<std::vector<Payload>> Pull(std::string_view name, std::int64_t offset,
                                            std::int64_t length) override {
    const graph::Tensor* tensor = nullptr;
    {
      const MutexLock lock(mu_);
      tensor = blocks_->scope().FindTensor(name);
    }
    return CutPart(tensor, name, offset, length);
  }

  absl::StatusOr<graph::Tensor> Prefetch(std::string_view table, const graph::Tensor& ids) override {
    const MutexLock lock(lookup_mu_);
    return LookUp(*blocks_, table, ids);
  }

  Snapshot Copy(std::optional<std::int64_t>) override {
    const MutexLock lock(mu_);
    while (applying_) changed_.Wait(mu_);
    return {.step = step_, .variables = blocks_->Copy()};
  }

 private:
  struct Slot {
    graph::VarType type;
    graph::Variable* variable = nullptr;
    Inbox inbox;
  };

  void FindSlots() {
    slots_.clear();
    for (ParameterBlocks::Update& update : blocks_->updates()) {
      for (const std::string& name : update.slots)
        slots_[name] = Slot{.type = update.type, .variable = &blocks_->scope().Get(name)};
    }
  }

  absl::Status Begin(std::int64_t step) {
    const MutexLock lock(mu_);
    step_ = step;
    FindSlots();
    return absl::OkStatus();
  }

  // Leaves only the gradients of these trainers to be added.
  absl::Status Choose(const std::vector<int>& trainers) TY_REQUIRES(mu_) {
    for (ParameterBlocks::Update& update : blocks_->updates()) {
      const bool told_apart = update.slots.size() > 1;
      for (std::size_t i = 0; i < update.slots.size(); ++i) {
        Slot& slot = slots_.find(update.slots[i])->second;
        const bool counts =
            !told_apart || std::find(trainers.begin(), trainers.end(), static_cast<int>(i)) != trainers.end();
        if (counts && !slot.inbox.Whole(step_))
          return absl::FailedPreconditionError(StrCat("gradient ", update.slots[i], " of step ", step_,
                                                      " has not come to ", blocks_->graph().id));
        slot.variable->absent = !counts;
      }
    }
    if (graph::Variable* share = blocks_->scope().Find(graph::kShare); share != nullptr && !share->absent) {
      std::get<graph::Tensor>(share->value).data<float>()[0] =
          1.0F / static_cast<float>(std::max<std::size_t>(1, trainers.size()));
    }
    return absl::OkStatus();
  }

  absl::Status RunBlocks() {
    TY_RETURN_IF_ERROR(blocks_->RunSchedule());
    std::vector<ParameterBlocks::Update>& updates = blocks_->updates();
    std::vector<absl::Status> results(updates.size());
    pool_.RunAll(updates.size(), [&](std::size_t i) { results[i] = blocks_->Run(updates[i]); });
    for (absl::Status& result : results) TY_RETURN_IF_ERROR(result);
    return absl::OkStatus();
  }

  Pool pool_;
  mutable Mutex mu_;
  CondVar changed_;
  Mutex lookup_mu_;
  std::unique_ptr<ParameterBlocks> blocks_;
  std::int64_t step_ TY_GUARDED_BY(mu_) = 0;
  bool applying_ TY_GUARDED_BY(mu_) = false;
  int copying_ TY_GUARDED_BY(mu_) = 0;
  std::map<std::string, Slot, std::less<>> slots_;  // changed only while nothing else runs
};

}  // namespace

std::unique_ptr<Parameters> MakeSyncParameters(std::unique_ptr<ParameterBlocks> blocks, int threads) {
  return std::make_unique<SyncParameters>(std::move(blocks), threads);
}

}  // namespace trainyard::ps
