#include "master/pserver/shard.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "graph/ir/codec.h"
#include "graph/pass/shards.h"
#include "master/checkpoints.h"

namespace trainyard::master {
namespace {

// A worker that is gone may have told the master of a gradient that it has not looked at yet.
constexpr absl::Duration kKeepAfterEnd = absl::Seconds(10);
constexpr std::size_t kMostKept = 4096;  // gradients of one worker

wire::Slice SliceOf(const graph::Slice& slice) {
  wire::Slice out;
  out.set_of(slice.of);
  for (const std::int64_t size : slice.whole) out.add_whole(size);
  out.set_offset(slice.offset);
  return out;
}

wire::Variable GradientHead(const graph::Var& gradient) {
  wire::Variable head;
  head.set_name(gradient.name);
  head.set_data_type(static_cast<std::uint32_t>(gradient.type.data_type));
  for (const std::int64_t size : gradient.type.dims) head.add_dims(size);
  if (gradient.slice) *head.mutable_slice() = SliceOf(*gradient.slice);
  return head;
}

void SetStatus(const absl::Status& status, wire::Obeyed& obeyed) {
  obeyed.set_code(static_cast<std::int32_t>(status.code()));
  obeyed.set_message(std::string(status.message()));
}

}  // namespace

void Shard::Obey(wire::Order order, std::function<void(wire::Obeyed)> done) {
  thread_->Post([this, order = std::move(order), done = std::move(done)] {
    wire::Obeyed obeyed;
    obeyed.set_order(order.id());
    absl::Status status;
    switch (order.what_case()) {
      case wire::Order::kBegin:
        status = Begin(order.begin());
        break;
      case wire::Order::kApply:
        status = Apply(order.apply(), obeyed);
        break;
      case wire::Order::kFreeze:
        status = Freeze(order.freeze());
        break;
      case wire::Order::kWrite:
        return Write(order.write(), std::move(obeyed), done);
      case wire::Order::kEnd:
        break;
      case wire::Order::WHAT_NOT_SET:
        status = absl::InvalidArgumentError("an order that cannot be understood");
        break;
    }
    SetStatus(status, obeyed);
    done(std::move(obeyed));
  });
}

absl::Status Shard::Begin(const wire::Order::Begin& begin) {
  generation_ = 0;
  model_.reset();
  senders_.clear();
  graph::Programs learning;
  TY_ASSIGN_OR_RETURN(learning.main, graph::Decode(begin.update()));
  TY_ASSIGN_OR_RETURN(learning.startup, graph::Decode(begin.startup()));
  if (begin.pservers() <= index_)
    return absl::InvalidArgumentError(StrCat("the model is cut into ", begin.pservers(), " parts"));
  TY_ASSIGN_OR_RETURN(
      const std::vector<graph::Shard> shards,
      graph::CutIntoShards(learning, {begin.shared().begin(), begin.shared().end()}, begin.pservers()));
  const graph::Shard& own = shards[static_cast<std::size_t>(index_)];
  TY_ASSIGN_OR_RETURN(
      model_,
      Model::Make(own.programs.main, own.programs.startup, own.shared,
                  {.threads = std::max(begin.threads(), 1),
                   .on_nonfinite =
                       graph::ParseOnNonFinite(begin.on_nonfinite()).value_or(graph::OnNonFinite::kFail)}));
  if (begin.checkpoint().empty()) {
    TY_RETURN_IF_ERROR(model_->Start({}));
  } else {
    TY_ASSIGN_OR_RETURN(const auto values, ReadShard(begin.checkpoint(), index_, begin.pservers()));
    TY_RETURN_IF_ERROR(model_->Restore(begin.version(), values));
  }
  std::map<std::string, wire::Slice> slices;
  for (const graph::Var& var : own.programs.main.main().vars) {
    if (var.slice) slices.emplace(var.name, SliceOf(*var.slice));
  }
  std::vector<wire::Variable> gradients;
  gradients.reserve(own.gradients.size());
  for (const graph::Var& gradient : own.gradients) gradients.push_back(GradientHead(gradient));
  shelf_ = std::make_unique<Shelf>(begin.generation());
  shelf_->Describe(std::move(slices), std::move(gradients));
  PutNewest();
  generation_ = begin.generation();
  log::Info("has a part of the model", {{"pserver", index_},
                                        {"of", begin.pservers()},
                                        {"version", begin.version()},
                                        {"generation", generation_}});
  return absl::OkStatus();
}

void Shard::PutNewest() { shelf_->Put(model_->version(), model_->TakeShared()); }

absl::Status Shard::CheckVersion(std::int64_t version) const {
  if (generation_ == 0) return absl::UnavailableError("it has no part of a model");
  if (model_->version() == version) return absl::OkStatus();
  return absl::UnavailableError(StrCat("it is at version ", model_->version(), ", not at ", version));
}

absl::Status Shard::Apply(const wire::Order::Apply& apply, wire::Obeyed& obeyed) {
  if (generation_ != 0 && model_->version() == apply.version()) return absl::OkStatus();  // told twice
  TY_RETURN_IF_ERROR(CheckVersion(apply.version() - 1));
  GradientSum sum;
  for (const wire::Order::Part& part : apply.parts()) {
    const auto sender = senders_.find(part.name().incarnation());
    const auto found = sender == senders_.end() ? decltype(sender->second.gradients.begin())()
                                                : sender->second.gradients.find(part.name().sequence());
    if (sender == senders_.end() || found == sender->second.gradients.end())
      return absl::UnavailableError(StrCat("gradient ", part.name().sequence(), " is not here"));
    sum.Add(std::move(found->second), part.records());
    sender->second.gradients.erase(found);
  }
  shelf_->TakeAway();
  TY_ASSIGN_OR_RETURN(*obeyed.mutable_nonfinite(), model_->Apply(sum.TakeMean(), apply.rate()));
  PutNewest();
  ForgetUseless();
  return absl::OkStatus();
}

// All that the master had accepted has been used now. What a worker sent before its last one was refused, and
// so is what one sent that has long been gone.
void Shard::ForgetUseless() {
  const SteadyTime now = Clock::System().Steady();
  for (auto& [incarnation, sender] : senders_) {
    while (sender.gradients.size() > 1) sender.gradients.erase(sender.gradients.begin());
  }
  std::erase_if(senders_,
                [&](const auto& one) { return one.second.left && now - *one.second.left > kKeepAfterEnd; });
}

absl::Status Shard::Freeze(const wire::Order::Freeze& freeze) {
  TY_RETURN_IF_ERROR(CheckVersion(freeze.version()));
  shelf_->Freeze();
  return absl::OkStatus();
}

void Shard::Write(const wire::Order::Write& write, wire::Obeyed obeyed,
                  std::function<void(wire::Obeyed)> done) {
  if (const absl::Status other = CheckVersion(write.version()); !other.ok()) {
    SetStatus(other, obeyed);
    return done(std::move(obeyed));
  }
  writer_->Post([this, write, obeyed = std::move(obeyed), done = std::move(done),
                 variables = model_->TakeAll()]() mutable {
    const absl::StatusOr<CheckpointPart> part =
        WriteCheckpointPart(write.folder(), index_, write.version(), variables);
    SetStatus(part.status(), obeyed);
    obeyed.set_nonfinite(graph::FindNonFinite(variables));
    if (part.ok()) {
      obeyed.mutable_written()->set_file(part->file);
      obeyed.mutable_written()->set_bytes(part->bytes);
      obeyed.mutable_written()->set_crc32c(part->crc32c);
    }
    done(std::move(obeyed));
  });
}

void Shard::OnMessage(const std::shared_ptr<Session>& session, ps::Unpacked message) {
  thread_->Post([this, session, message = std::move(message)] {
    wire::Request request;
    if (!message.Head(request))
      return session->Close(absl::InvalidArgumentError("a message that cannot be read"));
    OnRequest({session, request.number()}, request, message);
  });
}

void Shard::OnRequest(const Call& call, wire::Request& request, const ps::Unpacked& message) {
  switch (request.what_case()) {
    case wire::Request::kHello: {
      incarnations_[call.session.get()] = request.hello().incarnation();
      senders_[request.hello().incarnation()].left.reset();
      wire::Answer answer;
      answer.mutable_welcome()->set_worker(request.hello().worker());
      answer.mutable_welcome()->set_generation(generation_);
      return call.Reply(std::move(answer));
    }
    case wire::Request::kPush:
      return OnPush(call, request.push(), message);
    case wire::Request::kPull:
      if (generation_ == 0 || request.pull().generation() != generation_)
        return call.Refuse(absl::AbortedError("there is another model now: begin anew"));
      return shelf_->Answer(call, request.pull());
    default:
      return call.session->Close(
          absl::InvalidArgumentError("this is a pserver: it takes gradients, and has a model"));
  }
}

void Shard::OnPush(const Call& call, const wire::Push& push, const ps::Unpacked& message) {
  if (generation_ == 0 || (push.offset() == 0 && push.generation() != generation_))
    return call.Refuse(absl::AbortedError("there is another model now: begin anew"));
  const auto whole = intake_.Take(call, push, message, [this](Assembly& assembly, const wire::Push& first) {
    return assembly.Begin(first.variables(), first.total(), model_->sent());
  });
  if (!whole) return;
  auto& kept = senders_[whole->head.name().incarnation()].gradients;
  if (kept.size() >= kMostKept)
    return whole->calls.back().Refuse(
        absl::ResourceExhaustedError("too many gradients that nobody has asked for"));
  Gradients gradients;
  for (const auto& [name, value] : whole->values) gradients.emplace(name, value);
  kept[whole->head.name().sequence()] = std::move(gradients);
  wire::Answer answer;
  answer.mutable_pushed()->set_verdict(wire::Pushed::kAccepted);
  answer.mutable_pushed()->set_version(model_->version());
  AnswerPush(whole->calls, std::move(answer));
}

void Shard::OnEnd(const std::shared_ptr<Session>& session) {
  thread_->Post([this, session] {
    intake_.Forget(session.get());
    if (shelf_ != nullptr) shelf_->Forget(session.get());
    const auto found = incarnations_.find(session.get());
    if (found == incarnations_.end()) return;
    const std::int64_t incarnation = found->second;
    incarnations_.erase(found);
    // A worker whose stream broke may have come back before its end was noticed.
    const bool back =
        std::ranges::any_of(incarnations_, [&](const auto& one) { return one.second == incarnation; });
    if (const auto sender = senders_.find(incarnation); sender != senders_.end() && !back)
      sender->second.left = Clock::System().Steady();
  });
}

}  // namespace trainyard::master
