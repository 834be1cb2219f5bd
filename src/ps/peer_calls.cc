#include "ps/peer_calls.h"

#include <optional>

#include "base/clock.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::ps {
namespace {

constexpr absl::Duration kRetry = absl::Milliseconds(20);

bool IsForGood(const absl::Status& status) {
  return absl::IsAborted(status) || absl::IsInvalidArgument(status) || absl::IsFailedPrecondition(status) ||
         absl::IsDataLoss(status);
}

}  // namespace

std::shared_ptr<Channel> Channels::To(std::string_view graph, const GraphPod& pod) {
  const MutexLock lock(mu_);
  auto& [incarnation, channel] = channels_[std::string(graph)];
  if (channel == nullptr || incarnation != pod.incarnation) {
    incarnation = pod.incarnation;
    channel = std::make_shared<Channel>(pod.Address(), token_);
  }
  return channel;
}

// Outlives the call: answers may come when nobody waits for them any more.
struct GroupCall::Answers {
  Mutex mu;
  CondVar changed;
  std::map<std::int64_t, absl::Status> by_attempt TY_GUARDED_BY(mu);
};

GroupCall::GroupCall(Registry& registry, Channels& channels, Options options)
    : registry_(registry),
      channels_(channels),
      options_(std::move(options)),
      answers_(std::make_shared<Answers>()) {}

GroupCall::~GroupCall() = default;

void GroupCall::Add(std::string graph, std::shared_ptr<const google::protobuf::MessageLite> request) {
  members_.push_back({.graph = std::move(graph), .request = std::move(request)});
  Launch(members_.size() - 1);
}

void GroupCall::Launch(std::size_t number) {
  Member& member = members_[number];
  const std::optional<GraphPod> pod = registry_.Find(member.graph);
  if (!pod) return;
  member.tried = pod->incarnation;
  member.attempt = ++attempts_;
  channels_.To(member.graph, *pod)
      ->Start(options_.method, *member.request, {}, options_.timeout,
              [answers = answers_, attempt = member.attempt](const absl::StatusOr<Unpacked>& answer) {
                const MutexLock lock(answers->mu);
                answers->by_attempt[attempt] = answer.status();
                answers->changed.SignalAll();
              });
}

// Takes an answer that has come, and asks again where one is needed.
absl::Status GroupCall::Look(std::size_t number) {
  Member& member = members_[number];
  std::optional<absl::Status> answer;
  if (member.attempt != 0) {
    const MutexLock lock(answers_->mu);
    const auto found = answers_->by_attempt.find(member.attempt);
    if (found != answers_->by_attempt.end()) answer = found->second;
  }
  const SteadyTime now = Clock::System().Steady();
  if (answer) {
    member.done = answer->ok();
    if (IsForGood(*answer)) return Annotate(*answer, member.graph);
    member.attempt = 0;
    member.again = now + kRetry;
  } else if (member.attempt != 0) {
    // It has gone and come again: nobody answers that call.
    const std::optional<GraphPod> pod = registry_.Find(member.graph);
    if (pod && pod->incarnation != member.tried) member.attempt = 0;
  }
  if (!member.done && member.attempt == 0 && now >= member.again) Launch(number);
  return absl::OkStatus();
}

absl::Status GroupCall::Wait() {
  for (;;) {
    bool all = true;
    for (std::size_t i = 0; i < members_.size(); ++i) {
      if (!members_[i].done) TY_RETURN_IF_ERROR(Look(i));
      all = all && members_[i].done;
    }
    if (all) return absl::OkStatus();
    TY_RETURN_IF_ERROR(options_.hopeless());
    const SteadyTime until = Clock::System().Steady() + kRetry;
    const MutexLock lock(answers_->mu);
    const auto has_news = [&]() TY_REQUIRES(answers_->mu) {
      for (const Member& member : members_) {
        if (!member.done && member.attempt != 0 && answers_->by_attempt.contains(member.attempt)) return true;
      }
      return false;
    };
    while (!has_news() && answers_->changed.WaitUntil(answers_->mu, until)) {
    }
  }
}

}  // namespace trainyard::ps
