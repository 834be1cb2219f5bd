// Parameters without steps: each gradient is applied when it has come, those of one parameter one after the
// other, and the schedule moves on once for each step of each trainer.
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/text.h"
#include "ps/inbox.h"
#include "ps/parameter_blocks.h"
#include "ps/parameters_made.h"
#include "ps/rpc/tensor_parts.h"

namespace trainyard::ps {
namespace {

class AsyncParameters final : public Parameters {
 public:
  explicit AsyncParameters(std::unique_ptr<ParameterBlocks> blocks) : blocks_(std::move(blocks)) {
    FindPieces();
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
    senders_.clear();
    FindPieces();
    return absl::OkStatus();
  }

  void Forget() override {
    const MutexLock lock(mu_);
    senders_.clear();
  }

  std::int64_t step() const override {
    const MutexLock lock(mu_);
    return step_;
  }

  absl::Status Push(const GradientPart& part) override {
    const std::string& name = part.part.name();
    const auto found = pieces_.find(name);
    if (found == pieces_.end())
      return absl::InvalidArgumentError(
          StrCat(blocks_->graph().id, " has no gradient ", Shortened(name, 128)));
    Piece& piece = *found->second;
    Box* box = nullptr;
    {
      const MutexLock lock(mu_);
      box = &senders_[part.caller.sender()].boxes[name];
      if (box->Has(part)) return absl::OkStatus();
      TY_ASSIGN_OR_RETURN(const Inbox::Verdict verdict,
                          box->inbox.Expect(part, piece.update->type, box->value));
      if (verdict == Inbox::Verdict::kRepeat) return absl::OkStatus();
    }
    // Until the gradient has been applied, no other takes its place.
    const absl::Cleanup release = [&] {
      const MutexLock lock(mu_);
      box->inbox.Release();
    };
    const absl::Status copied = Inbox::Copy(part, box->value);
    bool moves_on = false;
    {
      const MutexLock lock(mu_);
      box->inbox.Arrived(part, copied.ok());
      TY_RETURN_IF_ERROR(copied);
      if (!box->inbox.Whole(part.step) || box->Has(part)) return absl::OkStatus();
      box->applied = part.step;
      box->attempt = AttemptOf(part.caller);
      Sender& sender = senders_[part.caller.sender()];
      moves_on = part.step > sender.step;
      if (moves_on) {
        sender.step = part.step;
        ++step_;
      }
    }
    if (moves_on) {
      const std::unique_lock<std::shared_mutex> alone(rate_mu_);
      TY_RETURN_IF_ERROR(blocks_->RunSchedule());
    }
    if (absl::Status updated = Update(piece, box->value); !updated.ok())
      return Annotate(updated, StrCat("step ", part.step, " of ", part.caller.sender()));
    return absl::OkStatus();
  }

  absl::Status Apply(std::int64_t, const std::vector<int>&) override {
    return absl::FailedPreconditionError(StrCat(blocks_->graph().id, " trains without steps"));
  }

  absl::StatusOr<std::vector<Payload>> Pull(std::string_view name, std::int64_t offset,
                                            std::int64_t length) override {
    const auto cut = [&] { return CutPart(blocks_->scope().FindTensor(name), name, offset, length); };
    const auto found = of_parameter_.find(name);
    if (found == of_parameter_.end()) return cut();  // nothing updates it
    const MutexLock lock(found->second->mu);
    TY_ASSIGN_OR_RETURN(std::vector<Payload> payloads, cut());
    for (Payload& payload : payloads) {
      const auto* bytes = static_cast<const std::byte*>(payload.data);
      auto copy = std::make_shared<std::vector<std::byte>>(bytes, bytes + payload.size);
      payload.data = copy->data();
      payload.owner = std::move(copy);
    }
    return payloads;
  }

  absl::StatusOr<graph::Tensor> Prefetch(std::string_view table, const graph::Tensor& ids) override {
    // A table's rows are read while others are updated only between updates.
    const std::unique_lock<std::shared_mutex> alone(rate_mu_);
    return LookUp(*blocks_, table, ids);
  }

  Snapshot Copy(std::optional<std::int64_t> as) override {
    const std::unique_lock<std::shared_mutex> alone(rate_mu_);
    std::int64_t now = 0;
    {
      const MutexLock lock(mu_);
      now = step_ = as.value_or(step_);
    }
    return {.step = now, .variables = blocks_->Copy()};
  }

 private:
  struct Piece {
    ParameterBlocks::Update* update = nullptr;
    graph::Variable* gradient = nullptr;
    Mutex mu;
  };
  struct Box {
    Inbox inbox;
    graph::Value value;
    std::int64_t applied = -1;
    Attempt attempt;  // that it was applied of

    // A later attempt may have other records in the same step: those count too.
    bool Has(const GradientPart& part) const {
      const Attempt other = AttemptOf(part.caller);
      return other < attempt || (other == attempt && part.step <= applied);
    }
  };
  struct Sender {
    std::map<std::string, Box, std::less<>> boxes;
    std::int64_t step = -1;
  };

  void FindPieces() {
    pieces_.clear();
    of_parameter_.clear();
    for (ParameterBlocks::Update& update : blocks_->updates()) {
      auto piece = std::make_unique<Piece>();
      piece->update = &update;
      piece->gradient = &blocks_->scope().Get(update.gradient);
      of_parameter_[update.parameter] = piece.get();
      pieces_[update.gradient] = std::move(piece);
    }
  }

  absl::Status Begin(std::int64_t step) {
    const MutexLock lock(mu_);
    step_ = step;
    senders_.clear();
    FindPieces();
    return absl::OkStatus();
  }

  absl::Status Update(Piece& piece, graph::Value& value) {
    const std::shared_lock<std::shared_mutex> together(rate_mu_);
    const MutexLock lock(piece.mu);
    // The gradient's own memory is lent to the block and taken back, so neither is allocated anew.
    std::swap(piece.gradient->value, value);
    piece.gradient->absent = false;
    absl::Status run = blocks_->Run(*piece.update);
    std::swap(piece.gradient->value, value);
    return run;
  }

  std::unique_ptr<ParameterBlocks> blocks_;
  std::map<std::string, std::unique_ptr<Piece>, std::less<>> pieces_;  // by gradient
  std::map<std::string, Piece*, std::less<>> of_parameter_;
  std::shared_mutex rate_mu_;  // held together by updates; alone by what must see no update half done
  mutable Mutex mu_;
  std::int64_t step_ TY_GUARDED_BY(mu_) = 0;
  std::map<std::string, Sender, std::less<>> senders_ TY_GUARDED_BY(mu_);
};

}  // namespace

std::unique_ptr<Parameters> MakeAsyncParameters(std::unique_ptr<ParameterBlocks> blocks) {
  return std::make_unique<AsyncParameters>(std::move(blocks));
}

}  // namespace trainyard::ps
