#include "ps/trainer_peers.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "graph/pass/transpile.h"
#include "ps/rpc/places.h"
#include "ps/rpc/tensor_parts.h"

namespace trainyard::ps {
namespace {

constexpr absl::Duration kCallTimeout = absl::Seconds(10);
constexpr absl::Duration kRetry = absl::Milliseconds(20);
constexpr absl::Duration kTellAfter = absl::Seconds(5);  // that somebody is waited for

const std::string& LeadId() {
  static const std::string& id = *new std::string(graph::GraphId(graph::GraphRole::kPserver, 0));
  return id;
}

// Whether the same call may succeed later, perhaps elsewhere.
bool MayPass(const absl::Status& status) {
  // NotFound is another graph's answer from an address that was this one's.
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) || absl::IsNotFound(status) ||
         absl::IsCancelled(status) || absl::IsUnknown(status) || absl::IsInternal(status);
}

}  // namespace

// One message of those that run beside the program: a part of a gradient on its way out, or of a parameter on
// its way in.
struct TrainerPeers::Part {
  std::string graph;
  std::string method;
  wire::PushRequest push;
  wire::PullRequest pull;
  std::vector<Payload> payloads;
  graph::Tensor into;
  std::int64_t tried = 0;  // the incarnation of the peer that was tried
  SteadyTime began;
  bool told = false;
};

TrainerPeers::TrainerPeers(Registry& registry, TrainerIdentity identity, std::function<Share()> last_used)
    : registry_(registry),
      identity_(std::move(identity)),
      last_used_(std::move(last_used)),
      channels_(identity_.token) {}

TrainerPeers::~TrainerPeers() {
  Stop();
  Drain().IgnoreError();
  retries_.reset();
}

void TrainerPeers::Stop() { stopping_ = true; }

void TrainerPeers::Supersede(std::int64_t generation) {
  std::int64_t known = newest_generation_;
  while (known < generation && !newest_generation_.compare_exchange_weak(known, generation)) {
  }
}

absl::Status TrainerPeers::Hopeless() const {
  if (stopping_) return absl::CancelledError("the trainer is stopping");
  if (newest_generation_ > generation_)
    return absl::AbortedError(StrCat("generation ", newest_generation_.load(), " has begun"));
  return absl::OkStatus();
}

wire::Caller TrainerPeers::CallerTo(std::string_view graph) const {
  wire::Caller caller;
  caller.set_receiver(std::string(graph));
  caller.set_sender(identity_.graph);
  caller.set_incarnation(identity_.incarnation);
  caller.set_attempt(attempt_);
  caller.set_generation(generation_);
  return caller;
}

// ---- Parts that run beside the program
// ----------------------------------------------------------------------------------

void TrainerPeers::Launch(const std::shared_ptr<Part>& part) {
  const std::optional<GraphPod> pod = registry_.Find(part->graph);
  if (!pod) return Settle(part, absl::UnavailableError(StrCat(part->graph, " is not registered")));
  part->tried = pod->incarnation;
  const google::protobuf::MessageLite& head =
      part->method == "Push" ? static_cast<const google::protobuf::MessageLite&>(part->push) : part->pull;
  channels_.To(part->graph, *pod)
      ->Start(part->method, head, part->payloads, kCallTimeout,
              [this, part](absl::StatusOr<Unpacked> answer) { Settle(part, std::move(answer)); });
}

void TrainerPeers::Settle(const std::shared_ptr<Part>& part, absl::StatusOr<Unpacked> answer) {
  if (answer.ok()) {
    if (part->method == "Push") return Finished(absl::OkStatus());
    graph::Value value = part->into;
    if (answer->payload_size() != static_cast<std::size_t>(part->pull.length())) {
      return Finished(
          absl::InternalError(StrCat("parameter ", part->pull.name(), " came with ", answer->payload_size(),
                                     " bytes instead of ", part->pull.length())));
    }
    return Finished(PutPart(*answer, static_cast<std::size_t>(part->pull.offset()), value));
  }
  if (!MayPass(answer.status())) return Finished(answer.status());
  // Not on gRPC's thread: it waits.
  retries_->Post([this, part, why = answer.status()] {
    if (absl::Status hopeless = Hopeless(); !hopeless.ok()) return Finished(hopeless);
    if (!part->told && Clock::System().Steady() - part->began > kTellAfter) {
      part->told = true;
      log::Warn("waiting for a pserver", {{"graph", part->graph}, {"because", why}});
    }
    registry_.WaitFor(part->graph, part->tried, kRetry);
    Launch(part);
  });
}

void TrainerPeers::Finished(const absl::Status& status) {
  const MutexLock lock(mu_);
  if (!status.ok() && failure_.ok()) failure_ = status;
  if (--under_way_ == 0) changed_.SignalAll();
}

absl::Status TrainerPeers::Drain() {
  const MutexLock lock(mu_);
  while (under_way_ > 0) changed_.Wait(mu_);
  return std::exchange(failure_, absl::OkStatus());
}

absl::Status TrainerPeers::Send(std::string_view graph, const std::string& name, const graph::Value& value) {
  sent_ = true;
  const std::size_t bytes = BytesOf(value);
  const std::size_t parts =
      std::max<std::size_t>(1, (bytes + kFrameBytes - 1) / static_cast<std::size_t>(kFrameBytes));
  for (std::size_t i = 0; i < parts; ++i) {
    auto part = std::make_shared<Part>();
    part->graph = graph;
    part->method = "Push";
    part->began = Clock::System().Steady();
    *part->push.mutable_caller() = CallerTo(graph);
    part->push.set_step(step_);
    part->push.set_name(name);
    *part->push.mutable_tensor() = HeadOf(value);
    const std::size_t offset = i * static_cast<std::size_t>(kFrameBytes);
    part->push.set_offset(static_cast<std::int64_t>(offset));
    part->payloads = PartOf(value, offset, std::min<std::size_t>(kFrameBytes, bytes - offset));
    {
      const MutexLock lock(mu_);
      ++under_way_;
    }
    Launch(part);
  }
  return absl::OkStatus();
}

absl::Status TrainerPeers::Contribute() {
  if (absl::Status arrived = Drain(); !arrived.ok()) return arrived;
  if (!std::exchange(sent_, false)) return absl::OkStatus();
  wire::ContributeRequest request;
  request.set_step(step_);
  *request.mutable_used() = ToWire(last_used_());
  wire::ContributeReply reply;
  if (absl::Status told = CallLead("Contribute", request, reply); !told.ok()) return told;
  ++step_;
  return absl::OkStatus();
}

absl::Status TrainerPeers::SendBarrier(const graph::Strings&) { return Contribute(); }

absl::Status TrainerPeers::Receive(std::string_view graph, const std::string& name, graph::Tensor& into) {
  // Without a barrier the first parameter that is asked for ends the step.
  if (sent_) TY_RETURN_IF_ERROR(Contribute());
  const auto bytes = static_cast<std::int64_t>(into.bytes());
  for (std::int64_t offset = 0; offset < bytes; offset += kFrameBytes) {
    auto part = std::make_shared<Part>();
    part->graph = graph;
    part->method = "Pull";
    part->began = Clock::System().Steady();
    *part->pull.mutable_caller() = CallerTo(graph);
    part->pull.set_step(step_);
    part->pull.set_name(name);
    part->pull.set_offset(offset);
    part->pull.set_length(std::min(kFrameBytes, bytes - offset));
    part->into = into;
    {
      const MutexLock lock(mu_);
      ++under_way_;
    }
    Launch(part);
  }
  return absl::OkStatus();
}

absl::Status TrainerPeers::FetchBarrier(const graph::Strings&) { return Drain(); }

absl::Status TrainerPeers::Prefetch(std::string_view graph, const std::string& table,
                                    const graph::Tensor& ids, graph::Tensor& rows) {
  wire::PrefetchRequest request;
  request.set_step(step_);
  request.set_table(table);
  const std::string peer(graph);
  for (;;) {
    TY_RETURN_IF_ERROR(Hopeless());
    const std::optional<GraphPod> pod = registry_.WaitFor(peer, 0, kRetry);
    if (!pod) continue;
    *request.mutable_caller() = CallerTo(peer);
    Mutex mu;
    CondVar changed;
    std::optional<absl::StatusOr<Unpacked>> answer;
    channels_.To(peer, *pod)
        ->Start("Prefetch", request, PartOf(graph::Value(ids), 0, ids.bytes()), kCallTimeout,
                [&](absl::StatusOr<Unpacked> got) {
                  const MutexLock lock(mu);
                  answer = std::move(got);
                  changed.Signal();
                });
    {
      const MutexLock lock(mu);
      while (!answer) changed.Wait(mu);
    }
    if (answer->ok()) {
      graph::Value value = rows;
      if ((*answer)->payload_size() != rows.bytes())
        return absl::InternalError(StrCat("rows of table ", table, " came with ", (*answer)->payload_size(),
                                          " bytes instead of ", rows.bytes()));
      return PutPart(**answer, 0, value);
    }
    if (!MayPass(answer->status())) return answer->status();
    registry_.WaitFor(peer, pod->incarnation, kRetry);
  }
}

// ---- The lead
// -----------------------------------------------------------------------------------------------------------

template <typename Request, typename Reply>
absl::Status TrainerPeers::CallLead(std::string_view method, Request request, Reply& reply) {
  const bool joining = method == "Join";
  const SteadyTime began = Clock::System().Steady();
  bool told = false;
  for (;;) {
    if (stopping_) return absl::CancelledError("the trainer is stopping");
    if (!joining) TY_RETURN_IF_ERROR(Hopeless());
    absl::Status why = absl::UnavailableError("it is not registered");
    const std::optional<GraphPod> pod = registry_.WaitFor(LeadId(), 0, kRetry);
    if (pod) {
      *request.mutable_caller() = CallerTo(LeadId());
      why = channels_.To(LeadId(), *pod)->Call(method, request, kCallTimeout, reply);
      // The lead says NotFound of a trainer that the job does not have; another graph says it of a lead that
      // has moved.
      const bool of_lead = absl::IsNotFound(why) && Message(why).find("this is ") != 0;
      if (of_lead && !joining) return absl::AbortedError(why.message());
      if (why.ok() || of_lead || !MayPass(why)) return why;
      registry_.WaitFor(LeadId(), pod->incarnation, kRetry);
    }
    if (!told && Clock::System().Steady() - began > kTellAfter) {
      told = true;
      log::Warn("waiting for the lead", {{"call", method}, {"because", why}});
    }
  }
}

absl::StatusOr<TrainerPeers::Place> TrainerPeers::Join(std::int64_t records) {
  Drain().IgnoreError();  // what was under way belongs to the past
  sent_ = false;
  ++attempt_;
  wire::JoinRequest request;
  request.set_records(records);
  wire::JoinReply reply;
  TY_RETURN_IF_ERROR(CallLead("Join", request, reply));
  generation_ = reply.generation();
  Supersede(reply.generation());
  step_ = reply.step();
  TY_ASSIGN_OR_RETURN(Share share, FromWire(reply.share()));
  return Place{.generation = reply.generation(), .step = reply.step(), .share = std::move(share)};
}

absl::StatusOr<Share> TrainerPeers::NextShare() {
  wire::ShareReply reply;
  TY_RETURN_IF_ERROR(CallLead("Share", wire::ShareRequest(), reply));
  if (reply.done()) return Share();
  return FromWire(reply.share());
}

}  // namespace trainyard::ps
