#include "master/learner.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "graph/ir/codec.h"

namespace trainyard::master {

void Learner::Take(std::unique_ptr<Model> model) {
  thread_.Post([this, model = std::make_shared<std::unique_ptr<Model>>(std::move(model))] {
    model_ = std::move(*model);
    newest_version_ = -1;
    account_.Started();
  });
}

void Learner::Push(Call call, tasks::WorkerIndex worker, wire::Push push, ps::Unpacked message) {
  thread_.Post([this, call = std::move(call), worker, push = std::move(push), message = std::move(message)] {
    DoPush(call, worker, push, message);
  });
}

void Learner::Pull(Call call, const wire::Pull& pull) {
  thread_.Post([this, call = std::move(call), pull] { DoPull(call, pull); });
}

void Learner::Offer(Call call, wire::Offer offer, ps::Unpacked message) {
  thread_.Post([this, call = std::move(call), offer = std::move(offer), message = std::move(message)] {
    DoOffer(call, offer, message);
  });
}

void Learner::Forget(const std::shared_ptr<Session>& session) {
  thread_.Post([this, session] {
    incoming_.erase(session.get());
    held_.erase(session.get());
  });
}

void Learner::Flush() {
  thread_.Post([this] {
    if (sum_.reports() > 0 && account_.NothingToCome()) Apply();
  });
}

void Learner::Freeze() {
  frozen_ = Newest();
  frozen_version_ = newest_version_;
}

void Learner::Do(std::function<void(Model*)> work) {
  thread_.Post([this, work = std::move(work)] { work(model_.get()); });
}

void Learner::DoPush(const Call& call, tasks::WorkerIndex worker, const wire::Push& push,
                     const ps::Unpacked& message) {
  if (broken_ || model_ == nullptr)
    return call.Refuse(absl::FailedPreconditionError("the master has no model that could learn"));
  const std::shared_ptr<Session> session = call.session;
  if (push.offset() == 0) incoming_.erase(session.get());
  Incoming& incoming = incoming_[session.get()];
  incoming.calls.push_back(call);
  absl::Status wrong;
  if (push.offset() == 0) {
    incoming.push = push;
    wrong = incoming.assembly.Begin(push.variables(), push.total(), model_->sent());
  }
  if (wrong.ok()) wrong = incoming.assembly.Add(push.offset(), message);
  if (!wrong.ok()) {
    for (const Call& part : incoming.calls) part.Refuse(wrong);
    incoming_.erase(session.get());
    return;
  }
  if (!incoming.assembly.complete()) return;
  Gradients gradients;
  for (auto& [name, value] : incoming.assembly.Take()) gradients.emplace(name, std::move(value));
  const Incoming whole = std::move(incoming);
  incoming_.erase(session.get());
  Learn(whole, worker, std::move(gradients));
}

void Learner::Learn(const Incoming& incoming, tasks::WorkerIndex worker, Gradients gradients) {
  const wire::Push& push = incoming.push;
  wire::Answer answer;
  *answer.mutable_pushed() = Judge(push, worker, std::move(gradients));
  std::vector<ps::Payload> payload;
  if (push.pull() && !broken_ &&
      (push.version() != model_->version() || push.generation() != options_.generation)) {
    *answer.mutable_pushed()->mutable_pulled() = PulledOf(model_->version(), Newest());
    payload = PartOf(Newest(), 0);
    Hold(incoming.calls.back().session.get(), model_->version(), Newest());
  }
  // Only now, so that a worker whose stream breaks before this sends all of them again.
  for (std::size_t i = 0; i + 1 < incoming.calls.size(); ++i) {
    wire::Answer part;
    part.mutable_pushed()->set_verdict(wire::Pushed::kPart);
    incoming.calls[i].Reply(std::move(part));
  }
  incoming.calls.back().Reply(std::move(answer), std::move(payload));
}

wire::Pushed Learner::Judge(const wire::Push& push, tasks::WorkerIndex worker, Gradients gradients) {
  wire::Pushed answer;
  const auto say = [&](wire::Pushed::Verdict verdict) {
    answer.set_verdict(verdict);
    answer.set_version(model_->version());
    return answer;
  };
  const tasks::Range records{push.begin(), push.until()};
  switch (account_.Check(worker, push.task(), records)) {
    case Account::Claim::kLost:
      return say(wire::Pushed::kLost);
    case Account::Claim::kRepeat:
      return say(wire::Pushed::kAccepted);
    case Account::Claim::kNew:
      break;
  }
  const std::int64_t behind = model_->version() - push.version();
  const bool other_past = push.generation() != options_.generation || behind < 0;
  const bool too_old = !options_.async && behind > options_.staleness && !refused_.contains(worker);
  if (other_past || too_old) {
    if (!other_past) refused_.insert(worker);
    account_.Refused();
    return say(wire::Pushed::kStale);
  }
  refused_.erase(worker);
  if (account_.Accept(worker, push.task(), records) != Account::Claim::kNew) return say(wire::Pushed::kLost);
  if (options_.async && options_.modulate_rate)
    rate_ = 1.0 / static_cast<double>(std::max<std::int64_t>(1, behind));
  sum_.Add(std::move(gradients), records.size());
  loss_ += push.loss() * static_cast<double>(records.size());
  contributions_.push_back({push.task(), push.until()});
  if (sum_.reports() >= options_.grads_to_wait || account_.NothingToCome()) Apply();
  return say(wire::Pushed::kAccepted);
}

void Learner::Apply() {
  const double loss = loss_ / static_cast<double>(sum_.records());
  newest_.clear();  // so that what nobody else has need not be copied
  newest_version_ = -1;
  const absl::Status applied = model_->Apply(sum_.TakeMean(), rate_);
  loss_ = 0;
  rate_ = 1;
  if (!applied.ok()) {
    broken_ = true;
    return account_.Broken(applied);
  }
  account_.Applied(model_->version(), std::exchange(contributions_, {}), loss);
}

const NamedValues& Learner::Newest() {
  if (model_ != nullptr && newest_version_ != model_->version()) {
    newest_ = ValuesOf(*model_->TakeSnapshot());
    newest_version_ = model_->version();
  }
  return newest_;
}

NamedValues Learner::ValuesOf(const Snapshot& snapshot) {
  NamedValues values;
  for (const auto& [name, tensor] : snapshot.variables) values.emplace_back(name, tensor);
  return values;
}

wire::Pulled Learner::PulledOf(std::int64_t version, const NamedValues& values) const {
  wire::Pulled pulled;
  pulled.set_generation(options_.generation);
  pulled.set_version(version);
  for (const auto& [name, value] : values) *pulled.add_variables() = HeadOf(name, value);
  pulled.set_total(BytesOf(values));
  return pulled;
}

void Learner::DoPull(const Call& call, const wire::Pull& pull) {
  if (model_ == nullptr || broken_) return call.Refuse(absl::UnavailableError("the master has no model yet"));
  if (pull.offset() > 0 && pull.generation() != options_.generation)
    return call.Refuse(absl::AbortedError("the master has another model now: begin anew"));
  const std::int64_t version = pull.version() < 0 ? model_->version() : pull.version();
  const NamedValues* values = nullptr;
  const auto held = held_.find(call.session.get());
  if (version == frozen_version_) {
    values = &frozen_;
  } else if (held != held_.end() && held->second.version == version) {
    values = &held->second.values;
  } else if (version == model_->version()) {
    values = &Newest();
  }
  if (values == nullptr) {
    return call.Refuse(absl::AbortedError(
        StrCat("version ", version, " is gone, the model is at ", model_->version(), ": begin anew")));
  }
  if (pull.offset() < 0 || pull.offset() > BytesOf(*values))
    return call.Refuse(absl::InvalidArgumentError("a part of the model that there is not"));
  wire::Answer answer;
  if (pull.offset() == 0) {
    *answer.mutable_pulled() = PulledOf(version, *values);
  } else {
    answer.mutable_pulled()->set_generation(options_.generation);
    answer.mutable_pulled()->set_version(version);
  }
  call.Reply(std::move(answer), PartOf(*values, pull.offset()));
  if (pull.offset() == 0) {
    Hold(call.session.get(), version, *values);
  } else if (pull.offset() + ps::kFrameBytes >= BytesOf(*values)) {
    held_.erase(call.session.get());
  }
}

void Learner::Hold(Session* session, std::int64_t version, const NamedValues& values) {
  if (BytesOf(values) <= ps::kFrameBytes) return;
  held_[session] = {version, NamedValues(values)};
}

void Learner::DoOffer(const Call& call, const wire::Offer& offer, const ps::Unpacked& message) {
  wire::Answer answer;
  answer.mutable_offered();
  if (model_ != nullptr) return call.Reply(std::move(answer));  // somebody was faster
  const std::shared_ptr<Session> session = call.session;
  if (offer.offset() == 0) incoming_.erase(session.get());
  Incoming& incoming = incoming_[session.get()];
  incoming.calls.push_back(call);
  absl::Status wrong;
  if (offer.offset() == 0) {
    incoming.offer = offer;
    wrong = incoming.assembly.Begin(offer.variables(), offer.total(), options_.most_model_bytes);
  }
  if (wrong.ok()) wrong = incoming.assembly.Add(offer.offset(), message);
  if (wrong.ok() && !incoming.assembly.complete()) return;
  const Incoming whole = std::move(incoming);
  incoming_.erase(session.get());
  if (wrong.ok()) {
    Assembly assembly = whole.assembly;
    wrong = StartFrom(whole, assembly.Take());
  }
  for (const Call& part : whole.calls) {
    if (wrong.ok()) {
      part.Reply(answer);
    } else {
      part.Refuse(wrong);
    }
  }
}

absl::Status Learner::StartFrom(const Incoming& incoming, NamedValues values) {
  TY_ASSIGN_OR_RETURN(const graph::Program update, graph::Decode(incoming.offer.update()));
  TY_ASSIGN_OR_RETURN(const graph::Program startup, graph::Decode(incoming.offer.startup()));
  Model::Variables variables;
  std::vector<std::string> shared;
  for (auto& [name, value] : values) {
    shared.push_back(name);
    variables.emplace(name, std::get<graph::Tensor>(std::move(value)));
  }
  TY_ASSIGN_OR_RETURN(auto model, Model::Make(update, startup, std::move(shared), options_.threads));
  TY_RETURN_IF_ERROR(model->Start(variables));
  model_ = std::move(model);
  account_.Started();
  return absl::OkStatus();
}

}  // namespace trainyard::master
