#include "master/learner.h"

#include <algorithm>
#include <cmath>
#include <future>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "graph/ir/codec.h"

namespace trainyard::master {

void Learner::Post(std::function<void()> work) {
  if (!closed_) thread_.Post(std::move(work));
}

void Learner::Close() {
  closed_ = true;
  std::promise<void> empty;
  thread_.Post([&] { empty.set_value(); });
  empty.get_future().wait();
}

void Learner::Take(std::unique_ptr<ModelPlace> place) {
  Post([this, place = std::make_shared<std::unique_ptr<ModelPlace>>(std::move(place))] {
    Begin(std::move(*place));
  });
}

void Learner::Push(Call call, tasks::WorkerIndex worker, wire::Push push, ps::Unpacked message) {
  Post([this, call = std::move(call), worker, push = std::move(push), message = std::move(message)] {
    DoPush(call, worker, push, message);
  });
}

void Learner::Pull(Call call, const wire::Pull& pull) {
  Post([this, call = std::move(call), pull] { DoPull(call, pull); });
}

void Learner::Offer(Call call, wire::Offer offer, ps::Unpacked message) {
  Post([this, call = std::move(call), offer = std::move(offer), message = std::move(message)] {
    DoOffer(call, offer, message);
  });
}

void Learner::Forget(const std::shared_ptr<Session>& session) {
  Post([this, session] {
    offers_.Forget(session.get());
    if (place_ != nullptr) place_->Forget(session.get());
  });
}

void Learner::Flush() {
  Post([this] {
    if (ready_ && !broken_ && place_->added() > 0 && account_.NothingToCome()) Apply();
  });
}

void Learner::Freeze() {
  if (!ready_ || broken_) return;
  if (const absl::Status frozen = place_->Freeze(); !frozen.ok()) Break(frozen);
}

void Learner::Do(std::function<void(ModelPlace*)> work) {
  Post([this, work = std::move(work)] { work(ready_ && !broken_ ? place_.get() : nullptr); });
}

void Learner::Begin(std::unique_ptr<ModelPlace> place) {
  place_ = std::move(place);
  place_->Start([this](const absl::Status& started) {
    Post([this, started] {
      if (!started.ok()) return Break(started);
      ready_ = true;
      account_.Started();
    });
  });
}

void Learner::Break(const absl::Status& why) {
  broken_ = true;
  lost_ = absl::IsUnavailable(why);
  account_.Broken(why);
}

void Learner::DoPush(const Call& call, tasks::WorkerIndex worker, const wire::Push& push,
                     const ps::Unpacked& message) {
  if (lost_) return;  // whoever comes after this master is asked again
  if (broken_) return call.Refuse(absl::FailedPreconditionError("the master has no model that could learn"));
  if (!ready_) {
    // It is of a master before this one. Whoever computes it again will find the model of this one.
    wire::Answer answer;
    answer.mutable_pushed()->set_verdict(wire::Pushed::kStale);
    return call.Reply(std::move(answer));
  }
  if (std::optional<ArrivedGradient> gradient = place_->Take(call, push, message)) Learn(*gradient, worker);
}

void Learner::Learn(ArrivedGradient& gradient, tasks::WorkerIndex worker) {
  wire::Answer answer;
  wire::Pushed& pushed = *answer.mutable_pushed();
  pushed.set_verdict(Judge(gradient, worker));
  if (lost_) return;
  pushed.set_version(place_->version());
  std::vector<ps::Payload> payload;
  const wire::Push& push = gradient.push;
  if (push.pull() && !broken_ &&
      (push.version() != place_->version() || push.generation() != options_.generation))
    *pushed.mutable_pulled() = place_->Newest(gradient.calls.back().session.get(), payload);
  AnswerPush(gradient.calls, std::move(answer), std::move(payload));
}

wire::Pushed::Verdict Learner::Judge(ArrivedGradient& gradient, tasks::WorkerIndex worker) {
  const wire::Push& push = gradient.push;
  const tasks::Range records{push.begin(), push.until()};
  switch (account_.Check(worker, push.task(), records)) {
    case Account::Claim::kLost:
      return wire::Pushed::kLost;
    case Account::Claim::kRepeat:
      return wire::Pushed::kAccepted;
    case Account::Claim::kNew:
      break;
  }
  const std::int64_t behind = place_->version() - push.version();
  const bool other_past = push.generation() != options_.generation || behind < 0;
  const bool too_old = !options_.async && behind > options_.staleness && !refused_.contains(worker);
  if (other_past || too_old) {
    if (!other_past) refused_.insert(worker);
    account_.Refused();
    return wire::Pushed::kStale;
  }
  refused_.erase(worker);
  if (account_.Accept(worker, push.task(), records) != Account::Claim::kNew) return wire::Pushed::kLost;
  const bool usable = IsUsable(push, worker);
  if (broken_) return wire::Pushed::kLost;
  if (options_.async && options_.modulate_rate)
    rate_ = 1.0 / static_cast<double>(std::max<std::int64_t>(1, behind));
  if (usable) {
    place_->Add(gradient, records.size());
    records_ += records.size();
    loss_ += push.loss() * static_cast<double>(records.size());
  }
  contributions_.push_back({push.task(), push.until()});
  if (place_->added() == 0 || place_->added() >= options_.grads_to_wait || account_.NothingToCome()) Apply();
  return wire::Pushed::kAccepted;
}

bool Learner::IsUsable(const wire::Push& push, tasks::WorkerIndex worker) {
  if (std::isfinite(push.loss())) return true;
  const std::string what = StrCat("step ", place_->version() + 1, ": the loss of worker ", worker, " is ",
                                  graph::PrintNonFinite(push.loss()));
  if (options_.on_nonfinite == graph::OnNonFinite::kFail) {
    Break(absl::FailedPreconditionError(StrCat(what, ": ", graph::kNonFiniteHint)));
    return false;
  }
  account_.FoundNonFinite(what);
  return options_.on_nonfinite == graph::OnNonFinite::kWarn;
}

void Learner::Apply() {
  if (place_->added() == 0)
    return account_.Applied(place_->version(), std::exchange(contributions_, {}), std::nullopt);
  const double loss = loss_ / static_cast<double>(records_);
  const absl::StatusOr<std::string> applied = place_->Apply(rate_);
  records_ = 0;
  loss_ = 0;
  rate_ = 1;
  if (!applied.ok()) return Break(applied.status());
  if (!applied->empty()) account_.FoundNonFinite(StrCat("step ", place_->version(), ": ", *applied));
  account_.Applied(place_->version(), std::exchange(contributions_, {}), loss);
}

void Learner::DoPull(const Call& call, const wire::Pull& pull) {
  if (!ready_ || broken_) return call.Refuse(absl::UnavailableError("the master has no model yet"));
  place_->Pull(call, pull);
}

void Learner::DoOffer(const Call& call, const wire::Offer& offer, const ps::Unpacked& message) {
  wire::Answer answer;
  answer.mutable_offered();
  if (place_ != nullptr) return call.Reply(std::move(answer));  // somebody was faster
  auto whole = offers_.Take(call, offer, message, [this](Assembly& assembly, const wire::Offer& first) {
    return assembly.Begin(first.variables(), first.total(), options_.most_model_bytes);
  });
  if (!whole) return;
  const absl::Status started = StartFrom(whole->head, std::move(whole->values));
  for (const Call& part : whole->calls) {
    if (started.ok()) {
      part.Reply(answer);
    } else {
      part.Refuse(started);
    }
  }
}

absl::Status Learner::StartFrom(const wire::Offer& offer, NamedValues values) {
  ModelOrigin origin;
  TY_ASSIGN_OR_RETURN(origin.learning.main, graph::Decode(offer.update()));
  TY_ASSIGN_OR_RETURN(origin.learning.startup, graph::Decode(offer.startup()));
  for (auto& [name, value] : values) {
    origin.shared.push_back(name);
    origin.values.emplace(name, std::get<graph::Tensor>(std::move(value)));
  }
  std::ranges::sort(origin.shared);
  TY_ASSIGN_OR_RETURN(auto place, options_.keep(std::move(origin)));
  Begin(std::move(place));
  return absl::OkStatus();
}

}  // namespace trainyard::master
