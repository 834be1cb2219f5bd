// What only the lead does, on its own thread: one thing after the other.
#include <atomic>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "ps/graph_pserver.h"
#include "ps/rpc/places.h"

namespace trainyard::ps {
namespace {

constexpr absl::Duration kCallTimeout = absl::Seconds(5);
constexpr absl::Duration kRetry = absl::Milliseconds(20);

}  // namespace

void GraphPserver::HandleJoin(Held exchange) {
  wire::JoinRequest request;
  if (!exchange->message().Head(request))
    return exchange->Fail(absl::InvalidArgumentError("a call of Join cannot be read"));
  // Whoever joins asks for the generation, so it need not know it.
  if (request.caller().receiver() != options_.graph)
    return exchange->Fail(absl::NotFoundError(StrCat("this is ", options_.graph)));
  if (newest_generation_ > generation_)
    return exchange->Fail(absl::UnavailableError("a new generation is beginning"));
  const int trainer = TrainerOf(request.caller().sender());
  absl::StatusOr<JoinAnswer> answer = lead_->Join(trainer, request.caller().incarnation(), request.records());
  if (!answer.ok()) return exchange->Fail(answer.status());
  log::Info("a trainer has joined", {{"graph", request.caller().sender()},
                                     {"incarnation", request.caller().incarnation()},
                                     {"step", answer->step}});
  wire::JoinReply reply;
  reply.set_generation(generation_);
  reply.set_step(answer->step);
  *reply.mutable_share() = ToWire(answer->share);
  exchange->Reply(reply);
  CommitIfComplete();
}

void GraphPserver::HandleContribute(Held exchange) {
  wire::ContributeRequest request;
  if (!Accept(*exchange, request)) return;
  const absl::StatusOr<Share> used = FromWire(request.used());
  if (!used.ok()) return exchange->Fail(used.status());
  const absl::Status told = lead_->Contribute(TrainerOf(request.caller().sender()),
                                              request.caller().incarnation(), request.step(), *used);
  if (!told.ok()) return exchange->Fail(told);
  exchange->Reply(wire::ContributeReply());
  CommitIfComplete();
}

// A trainer that has nothing left waits here until all are done: a pserver's restart may give it work again.
void GraphPserver::HandleShare(Held exchange) {
  wire::ShareRequest request;
  if (!Accept(*exchange, request)) return;
  const absl::StatusOr<JoinAnswer> answer =
      lead_->NextShare(TrainerOf(request.caller().sender()), request.caller().incarnation());
  if (!answer.ok()) return exchange->Fail(answer.status());
  if (!answer->done) {
    wire::ShareReply reply;
    *reply.mutable_share() = ToWire(answer->share);
    return exchange->Reply(reply);
  }
  if (stopping_) return exchange->Fail(absl::UnavailableError("the pserver is stopping"));
  idle_.push_back(std::move(exchange));
  CommitIfComplete();  // the others may have waited for this one
  FinishIfDone();
}

void GraphPserver::AnswerIdle(const absl::Status& status) {
  for (const Held& exchange : std::exchange(idle_, {})) {
    if (!status.ok()) {
      exchange->Fail(status);
      continue;
    }
    wire::ShareReply reply;
    reply.set_done(true);
    exchange->Reply(reply);
  }
}

void GraphPserver::FinishIfDone() {
  if (!lead_->Done()) return;
  const absl::Status finished = finished_ ? absl::OkStatus() : Finish();
  finished_ = finished.ok();
  if (finished.ok()) return AnswerIdle(finished);
  // It is asked again, by whoever waits.
  log::Warn("the job cannot be ended yet", {{"error", finished}});
  AnswerIdle(absl::UnavailableError(finished.message()));
}

void GraphPserver::CommitIfComplete() {
  if (mode_ != graph::SyncMode::kSync) return;
  const std::optional<std::vector<int>> contributors = lead_->Complete();
  if (!contributors || !ApplyEverywhere(lead_->state().step, *contributors)) return;
  lead_->Commit();
  CheckpointIfDue();
  FinishIfDone();
}

// False: a new generation has begun, which undoes the step, or this is the end.
bool GraphPserver::ApplyEverywhere(std::int64_t step, const std::vector<int>& trainers) {
  std::atomic<bool> everywhere = true;
  std::vector<std::thread> telling;
  for (const std::string& pserver : Pservers()) {
    if (pserver == options_.graph) continue;
    telling.emplace_back([&, pserver] {
      wire::ApplyRequest request;
      request.set_step(step);
      *request.mutable_trainers() = {trainers.begin(), trainers.end()};
      const absl::Status told = Tell(pserver, "Apply", request);
      if (told.ok()) return;
      everywhere = false;
      if (!absl::IsAborted(told) && !absl::IsCancelled(told))
        log::Error("a pserver cannot apply a step", {{"graph", pserver}, {"step", step}, {"error", told}});
    });
  }
  const absl::Status applied = parameters_->Apply(step, trainers);
  AnswerWaiting();
  for (std::thread& thread : telling) thread.join();
  if (!applied.ok()) End(Annotate(applied, StrCat("step ", step, " cannot be applied")));
  return applied.ok() && everywhere;
}

template <typename Request>
absl::Status GraphPserver::Tell(const std::string& graph, std::string_view method, Request request) {
  request.mutable_caller()->set_receiver(graph);
  request.mutable_caller()->set_sender(options_.graph);
  request.mutable_caller()->set_incarnation(incarnation_);
  request.mutable_caller()->set_generation(generation_);
  for (;;) {
    if (stopping_) return absl::CancelledError("the pserver is stopping");
    if (newest_generation_ > generation_ && method != "Switch")
      return absl::AbortedError("a new generation has begun");
    const std::optional<GraphPod> pod = registry_->WaitFor(graph, 0, kRetry);
    if (!pod) continue;
    wire::ApplyReply reply;
    const absl::Status told = ChannelTo(graph, *pod)->Call(method, request, kCallTimeout, reply);
    if (told.ok() || absl::IsAborted(told) || absl::IsInvalidArgument(told) ||
        absl::IsFailedPrecondition(told))
      return told;
    registry_->WaitFor(graph, pod->incarnation, kRetry);
  }
}
template absl::Status GraphPserver::Tell(const std::string& graph, std::string_view method,
                                         wire::SwitchRequest request);

std::shared_ptr<Channel> GraphPserver::ChannelTo(const std::string& graph, const GraphPod& pod) {
  const MutexLock lock(mu_);
  auto& [incarnation, channel] = channels_[graph];
  if (channel == nullptr || incarnation != pod.incarnation) {
    incarnation = pod.incarnation;
    channel = std::make_shared<Channel>(pod.Address(), options_.token);
  }
  return channel;
}

// All records of all passes are used: everything is written down, and then the job is complete.
absl::Status GraphPserver::Finish() {
  for (const std::string& pserver : Pservers()) {
    if (pserver == options_.graph) continue;
    wire::CheckpointRequest request;
    request.set_step(parameters_->step());
    TY_RETURN_IF_ERROR(Tell(pserver, "Checkpoint", request));
  }
  TY_RETURN_IF_ERROR(WriteNow(parameters_->Copy(), lead_->Save()));
  for (;;) {
    TY_ASSIGN_OR_RETURN(StoredMeta stored, GetMeta(store_, options_.keys));
    if (stored.meta.generation != generation_) return absl::AbortedError("a new generation has begun");
    stored.meta.state = JobState::kComplete;
    stored.meta.steps = parameters_->step();
    const absl::StatusOr<kv::Revision> put = PutMeta(store_, options_.keys, stored.meta, stored.revision);
    if (!absl::IsAborted(put.status())) return put.status();
  }
}

}  // namespace trainyard::ps
