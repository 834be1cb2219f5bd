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
constexpr absl::Duration kPeerRetry = absl::Milliseconds(20);
constexpr absl::Duration kTellAfter = absl::Seconds(5);  // that somebody is waited for
// A message costs about as much as a hundred KiB of payload: small parts wait for company, large ones go.
constexpr std::size_t kBundleBytes = std::size_t{512} << 10;
constexpr int kBundleParts = 256;

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

wire::Part PartHead(const std::string& name, std::int64_t offset, std::int64_t length) {
  wire::Part part;
  part.set_name(name);
  part.set_offset(offset);
  part.set_length(length);
  return part;
}

}  // namespace

// One message of those that run beside the program: parts of gradients on their way out, or of parameters on
// their way in.
struct TrainerPeers::Bundle {
  std::string graph;
  std::string method;
  wire::TransferRequest head;
  std::size_t bytes = 0;           // of its parts
  std::vector<Payload> payloads;   // Push: the parts
  std::vector<graph::Value> into;  // Pull: where each part belongs
  std::int64_t tried = 0;          // the incarnation of the peer that was tried
  SteadyTime began;
  bool told = false;
};

TrainerPeers::TrainerPeers(Registry& registry, TrainerIdentity identity, Describe describe)
    : registry_(registry),
      identity_(std::move(identity)),
      describe_(std::move(describe)),
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

// ---- Bundles that run beside the program
// ----------------------------------------------------------------------------------

void TrainerPeers::Add(Bundles& bundles, std::string_view method, std::string_view graph, wire::Part part,
                       const graph::Value& value) {
  const auto bytes = static_cast<std::size_t>(part.length());
  std::shared_ptr<Bundle>& bundle = bundles.try_emplace(std::string(graph)).first->second;
  if (bundle != nullptr && bundle->bytes + bytes > kFrameBytes) Dispatch(std::exchange(bundle, nullptr));
  if (bundle == nullptr) {
    bundle = std::make_shared<Bundle>();
    bundle->graph = graph;
    bundle->method = method;
    *bundle->head.mutable_caller() = CallerTo(graph);
    bundle->head.set_step(step_);
  }
  if (method == "Push") {
    *part.mutable_tensor() = HeadOf(value);
    for (Payload& payload : PartOf(value, static_cast<std::size_t>(part.offset()), bytes))
      bundle->payloads.push_back(std::move(payload));
  } else {
    bundle->into.push_back(value);
  }
  *bundle->head.add_parts() = std::move(part);
  bundle->bytes += bytes;
  if (bundle->bytes >= kBundleBytes || bundle->head.parts_size() >= kBundleParts)
    Dispatch(std::exchange(bundle, nullptr));
}

void TrainerPeers::Flush(Bundles& bundles) {
  for (auto& [graph, bundle] : bundles) {
    if (bundle != nullptr) Dispatch(std::exchange(bundle, nullptr));
  }
}

void TrainerPeers::Dispatch(const std::shared_ptr<Bundle>& bundle) {
  bundle->began = Clock::System().Steady();
  {
    const MutexLock lock(mu_);
    ++under_way_;
  }
  Launch(bundle);
}

void TrainerPeers::Launch(const std::shared_ptr<Bundle>& bundle) {
  const std::optional<GraphPod> pod = registry_.Find(bundle->graph);
  if (!pod) return Settle(bundle, absl::UnavailableError(StrCat(bundle->graph, " is not registered")));
  bundle->tried = pod->incarnation;
  channels_.To(bundle->graph, *pod)
      ->Start(bundle->method, bundle->head, bundle->payloads, kCallTimeout,
              [this, bundle](absl::StatusOr<Unpacked> answer) { Settle(bundle, std::move(answer)); });
}

void TrainerPeers::Settle(const std::shared_ptr<Bundle>& bundle, absl::StatusOr<Unpacked> answer) {
  if (answer.ok()) return Finished(Take(*bundle, *answer));
  if (!MayPass(answer.status())) return Finished(answer.status());
  // Not on gRPC's thread: it waits.
  retries_->Post([this, bundle, why = answer.status()] {
    if (absl::Status hopeless = Hopeless(); !hopeless.ok()) return Finished(hopeless);
    if (!bundle->told && Clock::System().Steady() - bundle->began > kTellAfter) {
      bundle->told = true;
      log::Warn("waiting for a pserver", {{"graph", bundle->graph}, {"because", why}});
    }
    registry_.WaitFor(bundle->graph, bundle->tried, kPeerRetry);
    Launch(bundle);
  });
}

// Puts what was asked for where it belongs.
absl::Status TrainerPeers::Take(Bundle& bundle, const Unpacked& answer) {
  if (bundle.into.empty()) return absl::OkStatus();  // a push, which asks for nothing
  if (answer.payload_size() != bundle.bytes) {
    return absl::InternalError(StrCat("parameters of ", bundle.graph, " came with ", answer.payload_size(),
                                      " bytes instead of ", bundle.bytes));
  }
  std::size_t at = 0;
  for (int i = 0; i < bundle.head.parts_size(); ++i) {
    const wire::Part& part = bundle.head.parts(i);
    const auto bytes = static_cast<std::size_t>(part.length());
    TY_RETURN_IF_ERROR(PutPart(answer, at, bytes, static_cast<std::size_t>(part.offset()),
                               bundle.into[static_cast<std::size_t>(i)]));
    at += bytes;
  }
  return absl::OkStatus();
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
  const auto bytes = static_cast<std::int64_t>(BytesOf(value));
  std::int64_t offset = 0;
  do {  // an empty one has one part too
    const std::int64_t length = std::min(kFrameBytes, bytes - offset);
    Add(pushes_, "Push", graph, PartHead(name, offset, length), value);
    offset += length;
  } while (offset < bytes);
  return absl::OkStatus();
}

absl::Status TrainerPeers::Contribute() {
  Flush(pushes_);
  if (absl::Status arrived = Drain(); !arrived.ok()) return arrived;
  if (!std::exchange(sent_, false)) return absl::OkStatus();
  wire::ContributeRequest request;
  request.set_step(step_);
  describe_(request);
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
  for (std::int64_t offset = 0; offset < bytes; offset += kFrameBytes)
    Add(pulls_, "Pull", graph, PartHead(name, offset, std::min(kFrameBytes, bytes - offset)), into);
  return absl::OkStatus();
}

absl::Status TrainerPeers::FetchBarrier(const graph::Strings&) {
  Flush(pulls_);
  return Drain();
}

absl::Status TrainerPeers::Prefetch(std::string_view graph, const std::string& table,
                                    const graph::Tensor& ids, graph::Tensor& rows) {
  wire::PrefetchRequest request;
  request.set_step(step_);
  request.set_table(table);
  const std::string peer(graph);
  for (;;) {
    TY_RETURN_IF_ERROR(Hopeless());
    const std::optional<GraphPod> pod = registry_.WaitFor(peer, 0, kPeerRetry);
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
      return PutPart(**answer, 0, rows.bytes(), 0, value);
    }
    if (!MayPass(answer->status())) return answer->status();
    registry_.WaitFor(peer, pod->incarnation, kPeerRetry);
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
    const std::optional<GraphPod> pod = registry_.WaitFor(LeadId(), 0, kPeerRetry);
    if (pod) {
      *request.mutable_caller() = CallerTo(LeadId());
      why = channels_.To(LeadId(), *pod)->Call(method, request, kCallTimeout, reply);
      // The lead says NotFound of a trainer that the job does not have; another graph says it of a lead that
      // has moved.
      const bool of_lead = absl::IsNotFound(why) && Message(why).find("this is ") != 0;
      if (of_lead && !joining) return absl::AbortedError(why.message());
      if (why.ok() || of_lead || !MayPass(why)) return why;
      registry_.WaitFor(LeadId(), pod->incarnation, kPeerRetry);
    }
    if (!told && Clock::System().Steady() - began > kTellAfter) {
      told = true;
      log::Warn("waiting for the lead", {{"call", method}, {"because", why}});
    }
  }
}

absl::StatusOr<TrainerPeers::Place> TrainerPeers::Join(std::int64_t records) {
  Drain().IgnoreError();  // what was under way belongs to the past
  pushes_.clear();
  pulls_.clear();
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
