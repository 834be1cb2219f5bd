// What only the lead does, on its own thread: one thing after the other.
#include <memory>
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "ps/graph_pserver.h"
#include "ps/job.h"
#include "ps/outputs.h"
#include "ps/rpc/places.h"

namespace trainyard::ps {

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
  absl::StatusOr<JoinAnswer> answer =
      lead_->Join(trainer, request.caller().incarnation(), request.records(), request.caller().attempt());
  if (!answer.ok()) return exchange->Fail(answer.status());
  // Before it puts out something itself, so that what is in the store is in order.
  if (const absl::Status written = WriteHeldOutputs(); !written.ok())
    return exchange->Fail(absl::UnavailableError(written.message()));
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
  const absl::Status told =
      lead_->Contribute(TrainerOf(request.caller().sender()), request.caller().incarnation(), request.step(),
                        *used, request.caller().attempt());
  if (!told.ok()) return exchange->Fail(told);
  outputs_.Add(TrainerOf(request.caller().sender()),
               {request.caller().incarnation(), request.step(), request.output()}, request.unwritten());
  exchange->Reply(wire::ContributeReply());
  if (mode_ == graph::SyncMode::kAsync) AnnounceRunning();
  CommitIfComplete();
}

// A trainer that has nothing left waits here until all are done: another's end, or a pserver's restart, may
// give it work again.
void GraphPserver::HandleShare(Held exchange) {
  wire::ShareRequest request;
  if (!Accept(*exchange, request)) return;
  const int trainer = TrainerOf(request.caller().sender());
  const absl::StatusOr<JoinAnswer> answer = lead_->NextShare(trainer, request.caller().incarnation());
  if (!answer.ok()) return exchange->Fail(answer.status());
  if (!answer->done) {
    wire::ShareReply reply;
    *reply.mutable_share() = ToWire(answer->share);
    exchange->Reply(reply);
    return RouseIdle();  // what one that is gone had left may be theirs now
  }
  if (stopping_) return exchange->Fail(absl::UnavailableError("the pserver is stopping"));
  idle_[trainer] = std::move(exchange);
  RouseIdle();
  CommitIfComplete();  // the others may have waited for this one
  FinishIfDone();
}

void GraphPserver::RouseIdle() {
  for (const int trainer : lead_->Rouse()) {
    const auto found = idle_.find(trainer);
    if (found == idle_.end()) continue;  // it asks again
    found->second->Fail(absl::AbortedError("another trainer is gone: there is something to do again"));
    idle_.erase(found);
  }
}

void GraphPserver::AnswerIdle(const absl::Status& status) {
  for (const auto& [trainer, exchange] : std::exchange(idle_, {})) {
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
  if (IsFinal(finished)) return End(finished);
  // It is asked again, by whoever waits.
  log::Warn("the job cannot be ended yet", {{"error", finished}});
  AnswerIdle(absl::UnavailableError(finished.message()));
}

void GraphPserver::CommitIfComplete() {
  if (mode_ != graph::SyncMode::kSync) return;
  const std::optional<std::vector<int>> contributors = lead_->Complete();
  if (!contributors || !ApplyEverywhere(lead_->state().step, *contributors)) return;
  lead_->Commit();
  TellOfHeldOutputs();
  AnnounceRunning();
  CheckpointIfDue();
  FinishIfDone();
}

// False: a new generation has begun, which undoes the step, or this is the end. Generations that only have
// other trainers wait: a step that some have applied and others not would be neither done nor undone.
bool GraphPserver::ApplyEverywhere(std::int64_t step, const std::vector<int>& trainers) {
  wire::ApplyRequest request;
  request.set_step(step);
  *request.mutable_trainers() = {trainers.begin(), trainers.end()};
  absl::Status applied;
  const absl::Status told = TellOthers({.method = "Apply",
                                        .generation = generation_,
                                        .pservers = meta_.pservers,
                                        .to_the_end = true,
                                        .meanwhile =
                                            [&] {
                                              applied = parameters_->Apply(step, trainers);
                                              AnswerWaiting();
                                            }},
                                       request);
  for (const absl::Status& status : {applied, told}) {
    if (status.ok() || absl::IsAborted(status) || absl::IsCancelled(status)) continue;
    End(Annotate(status, StrCat("step ", step, " cannot be applied")));
  }
  return applied.ok() && told.ok();
}

template <typename Request>
absl::Status GraphPserver::TellOthers(const Telling& telling, const Request& request) {
  GroupCall calls(*registry_, channels_,
                  {.method = telling.method, .timeout = telling.timeout, .hopeless = [&]() -> absl::Status {
                     if (stopping_) return absl::CancelledError("the pserver is stopping");
                     const std::int64_t newest = telling.to_the_end ? newest_back_ : newest_generation_;
                     return newest > telling.generation ? GenerationBegun(newest) : absl::OkStatus();
                   }});
  for (int i = 0; i < telling.pservers; ++i) {
    if (i == index_) continue;
    auto own = std::make_shared<Request>(request);
    const std::string graph = graph::GraphId(graph::GraphRole::kPserver, i);
    own->mutable_caller()->set_receiver(graph);
    own->mutable_caller()->set_sender(options_.graph);
    own->mutable_caller()->set_incarnation(incarnation_);
    own->mutable_caller()->set_generation(generation_);
    calls.Add(graph, std::move(own));
  }
  telling.meanwhile();
  return calls.Wait();
}
template absl::Status GraphPserver::TellOthers(const Telling& telling, const wire::SwitchRequest& request);
template absl::Status GraphPserver::TellOthers(const Telling& telling,
                                               const wire::CheckpointRequest& request);

// For people: the first step of the job, or the first since this pserver began, is done.
void GraphPserver::AnnounceRunning() {
  if (std::exchange(announced_, true)) return;
  const absl::StatusOr<StoredMeta> stored = GetMeta(store_, options_.keys);
  if (!stored.ok() || stored->meta.state != JobState::kWaiting) return;
  JobMeta meta = stored->meta;
  meta.state = JobState::kRunning;
  const absl::Status put = PutMeta(store_, options_.keys, meta, stored->revision).status();
  announced_ = put.ok();  // else after the next step
}

absl::Status GraphPserver::WriteHeldOutputs(bool all) {
  const HeldOutputs::Match ready = [&](int trainer, const HeldOutputs::Entry& entry) {
    return (all || !lead_->IsHere(trainer, entry.incarnation)) && entry.step < lead_->OpenStepOf(trainer);
  };
  for (const auto& [trainer, outputs] : outputs_.Find(ready)) {
    TY_RETURN_IF_ERROR(
        AppendOutputs(store_, options_.keys, graph::GraphId(graph::GraphRole::kTrainer, trainer), outputs));
    outputs_.Drop([&, written = trainer](int one, const HeldOutputs::Entry& entry) {
      return one == written && ready(one, entry);
    });
  }
  return absl::OkStatus();
}

// What cannot be written now is written when a trainer joins, or at the end.
void GraphPserver::TellOfHeldOutputs() {
  if (const absl::Status written = WriteHeldOutputs(); !written.ok())
    log::Warn("outputs of a trainer that is gone are not written yet", {{"error", written}});
}

// All records of all passes are used: everything is written down, and then the job is complete.
absl::Status GraphPserver::Finish() {
  TY_RETURN_IF_ERROR(WriteHeldOutputs(/*all=*/true));
  TY_ASSIGN_OR_RETURN(const std::int64_t step, WriteEverywhere());
  for (;;) {
    TY_ASSIGN_OR_RETURN(StoredMeta stored, GetMeta(store_, options_.keys));
    if (stored.meta.generation != generation_) return GenerationBegun(stored.meta.generation);
    if (stored.meta.state == JobState::kFailed) return JobFailedError(stored.meta);
    stored.meta.state = JobState::kComplete;
    stored.meta.steps = step;
    const absl::StatusOr<kv::Revision> put = PutMeta(store_, options_.keys, stored.meta, stored.revision);
    if (!absl::IsAborted(put.status())) return put.status();
  }
}

}  // namespace trainyard::ps
