// What others call a pserver for.
#include <algorithm>
#include <iterator>
#include <shared_mutex>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "ps/graph_pserver.h"
#include "ps/job.h"
#include "ps/rpc/tensor_parts.h"

namespace trainyard::ps {
namespace {

// What its parts are together. InvalidArgument: more than a message may carry.
absl::StatusOr<std::size_t> BytesOf(const wire::TransferRequest& request) {
  std::int64_t bytes = 0;
  for (const wire::Part& part : request.parts()) {
    if (part.length() < 0 || part.length() > kFrameBytes - bytes)
      return absl::InvalidArgumentError(StrCat("parts of more than ", kFrameBytes, " bytes"));
    bytes += part.length();
  }
  return static_cast<std::size_t>(bytes);
}

}  // namespace

void GraphPserver::Handle(Held exchange) {
  const std::string method(exchange->method());
  if (method == "Push") return HandlePush(std::move(exchange));
  if (method == "Pull") return HandlePull(std::move(exchange));
  if (method == "Prefetch") return HandlePrefetch(std::move(exchange));
  if (method == "Apply") return HandleApply(std::move(exchange));
  if (method == "Switch") return HandleSwitch(std::move(exchange));
  if (method == "Checkpoint") return HandleCheckpoint(std::move(exchange));
  void (GraphPserver::*of_lead)(Held) = method == "Join"         ? &GraphPserver::HandleJoin
                                        : method == "Contribute" ? &GraphPserver::HandleContribute
                                        : method == "Share"      ? &GraphPserver::HandleShare
                                                                 : nullptr;
  if (of_lead == nullptr)
    return exchange->Fail(absl::UnimplementedError(StrCat("there is no call ", Shortened(method, 64))));
  if (!is_lead_)
    return exchange->Fail(
        absl::UnimplementedError(StrCat(options_.graph, " does not do ", method, ": ask pserver-0")));
  // Shared, since what is posted must be copyable.
  auto shared = std::make_shared<Held>(std::move(exchange));
  lead_thread_->Post([this, of_lead, shared] { (this->*of_lead)(std::move(*shared)); });
}

// Whether a call is meant for this graph and is of its time.
absl::Status GraphPserver::Check(const wire::Caller& caller) const {
  if (caller.receiver() != options_.graph)
    return absl::NotFoundError(
        StrCat("this is ", options_.graph, " and not ", Shortened(caller.receiver(), 64)));
  const std::int64_t generation = generation_;
  if (between_) return absl::UnavailableError(StrCat(options_.graph, " is between two generations"));
  if (caller.generation() < generation)
    return absl::AbortedError(StrCat("generation ", caller.generation(), " is over, this is ", generation));
  if (caller.generation() > generation)
    return absl::UnavailableError(StrCat(options_.graph, " is still in generation ", generation));
  return absl::OkStatus();
}

template <typename Request>
bool GraphPserver::Accept(Exchange& exchange, Request& request) const {
  const absl::Status checked =
      exchange.message().Head(request)
          ? Check(request.caller())
          : absl::InvalidArgumentError(StrCat("a call of ", exchange.method(), " cannot be read"));
  if (!checked.ok()) exchange.Fail(checked);
  return checked.ok();
}
template bool GraphPserver::Accept(Exchange& exchange, wire::ContributeRequest& request) const;
template bool GraphPserver::Accept(Exchange& exchange, wire::ShareRequest& request) const;

// Takes the gradients of a message in.
absl::Status GraphPserver::Keep(const wire::TransferRequest& request, const Unpacked& message) {
  TY_ASSIGN_OR_RETURN(const std::size_t bytes, BytesOf(request));
  if (bytes != message.payload_size())
    return absl::InvalidArgumentError(
        StrCat("parts of ", bytes, " bytes came with ", message.payload_size()));
  std::size_t at = 0;
  for (const wire::Part& head : request.parts()) {
    TY_RETURN_IF_ERROR(parameters_->Push(
        {.caller = request.caller(), .step = request.step(), .part = head, .message = message, .at = at}));
    at += static_cast<std::size_t>(head.length());
  }
  return absl::OkStatus();
}

void GraphPserver::HandlePush(Held exchange) {
  const std::shared_lock<std::shared_mutex> together(calls_mu_);
  wire::TransferRequest request;
  if (!Accept(*exchange, request)) return;
  if (absl::Status kept = Keep(request, exchange->message()); !kept.ok()) return exchange->Fail(kept);
  exchange->Reply(wire::TransferReply());
  if (mode_ == graph::SyncMode::kSync || parameters_->step() % meta_.checkpoint_every != 0) return;
  if (!is_lead_) return CheckpointIfDue();
  lead_thread_->Post([this] { CheckpointIfDue(); });
}

void GraphPserver::HandlePull(Held exchange) {
  const std::shared_lock<std::shared_mutex> together(calls_mu_);
  wire::TransferRequest request;
  if (!Accept(*exchange, request)) return;
  if (mode_ == graph::SyncMode::kSync) {
    const MutexLock lock(mu_);
    // Nobody would answer it any more, and the server would wait for that.
    if (stopping_) return exchange->Fail(absl::UnavailableError("the pserver is stopping"));
    // Looked at under the lock, or the step could be applied between the look and the wait.
    if (parameters_->step() < request.step()) {
      waiting_.emplace_back(std::move(request), std::move(exchange));
      return;
    }
  }
  AnswerPull(request, *exchange);
}

void GraphPserver::AnswerPull(const wire::TransferRequest& request, Exchange& exchange) {
  if (absl::Status size = BytesOf(request).status(); !size.ok()) return exchange.Fail(size);
  std::vector<Payload> all;
  for (const wire::Part& part : request.parts()) {
    absl::StatusOr<std::vector<Payload>> payloads =
        parameters_->Pull(part.name(), part.offset(), part.length());
    if (!payloads.ok()) return exchange.Fail(payloads.status());
    std::move(payloads->begin(), payloads->end(), std::back_inserter(all));
  }
  exchange.Reply(wire::TransferReply(), std::move(all));
}

void GraphPserver::AnswerWaiting() {
  std::vector<Pulling> ready;
  {
    const MutexLock lock(mu_);
    const std::int64_t step = parameters_->step();
    const auto first = std::stable_partition(waiting_.begin(), waiting_.end(), [&](const Pulling& pulling) {
      return pulling.first.step() > step;
    });
    ready.assign(std::make_move_iterator(first), std::make_move_iterator(waiting_.end()));
    waiting_.erase(first, waiting_.end());
  }
  for (Pulling& pulling : ready) AnswerPull(pulling.first, *pulling.second);
}

void GraphPserver::DropWaiting(const absl::Status& why) {
  std::vector<Pulling> dropped;
  {
    const MutexLock lock(mu_);
    dropped.swap(waiting_);
  }
  for (Pulling& pulling : dropped) pulling.second->Fail(why);
}

void GraphPserver::HandlePrefetch(Held exchange) {
  const std::shared_lock<std::shared_mutex> together(calls_mu_);
  wire::PrefetchRequest request;
  if (!Accept(*exchange, request)) return;
  if (mode_ == graph::SyncMode::kSync && parameters_->step() < request.step())
    return exchange->Fail(absl::UnavailableError("the step before is not applied yet"));
  const std::size_t bytes = exchange->message().payload_size();
  if (bytes % sizeof(std::int64_t) != 0)
    return exchange->Fail(absl::InvalidArgumentError("ids have 8 bytes each"));
  graph::Tensor ids(graph::DataType::kInt64, {static_cast<std::int64_t>(bytes / sizeof(std::int64_t))});
  exchange->message().Copy(0, ids.raw(), bytes);
  absl::StatusOr<graph::Tensor> rows = parameters_->Prefetch(request.table(), ids);
  if (!rows.ok()) return exchange->Fail(rows.status());
  const graph::Value value = *std::move(rows);
  exchange->Reply(wire::TransferReply(), PartOf(value, 0, BytesOf(value)));
}

void GraphPserver::HandleApply(Held exchange) {
  const std::shared_lock<std::shared_mutex> together(calls_mu_);
  wire::ApplyRequest request;
  if (!Accept(*exchange, request)) return;
  absl::Status applied =
      parameters_->Apply(request.step(), {request.trainers().begin(), request.trainers().end()});
  if (!applied.ok()) return exchange->Fail(applied);
  CheckpointIfDue();
  AnswerWaiting();
  exchange->Reply(wire::ApplyReply());
}

void GraphPserver::HandleSwitch(Held exchange) {
  wire::SwitchRequest request;
  if (!exchange->message().Head(request) || request.caller().receiver() != options_.graph)
    return exchange->Fail(absl::InvalidArgumentError("a call of Switch cannot be read"));
  auto shared = std::make_shared<Held>(std::move(exchange));
  lead_thread_->Post([this, shared, generation = request.generation()] {
    const absl::Status advanced = AdvanceTo(generation);
    if (advanced.ok()) return (*shared)->Reply(wire::SwitchReply());
    (*shared)->Fail(advanced);
    if (IsFinal(advanced)) End(Annotate(advanced, "cannot begin the next generation"));
  });
}

void GraphPserver::HandleCheckpoint(Held exchange) {
  const std::shared_lock<std::shared_mutex> together(calls_mu_);
  wire::CheckpointRequest request;
  if (!Accept(*exchange, request)) return;
  auto shared = std::make_shared<Held>(std::move(exchange));
  auto snapshot = std::make_shared<Parameters::Snapshot>(parameters_->Copy(request.step()));
  checkpoint_thread_->Post([this, shared, snapshot, meta = meta_] {
    const absl::Status written = WriteNow(meta, std::move(*snapshot), "", true);
    if (!written.ok()) return (*shared)->Fail(written);
    (*shared)->Reply(wire::CheckpointReply());
  });
}

}  // namespace trainyard::ps
