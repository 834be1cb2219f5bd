#include "master/pserver/shards.h"

#include <algorithm>
#include <future>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"

namespace trainyard::master {
namespace {

constexpr int kGenerationShift = 32;  // orders of one master are behind all of those before it
constexpr std::size_t kMostAddressBytes = 300;
constexpr absl::Duration kWorthTelling = absl::Seconds(3);

absl::Status StatusOf(int index, const wire::Obeyed& obeyed) {
  if (obeyed.code() == 0) return absl::OkStatus();
  return {static_cast<absl::StatusCode>(obeyed.code()), StrCat("pserver ", index, ": ", obeyed.message())};
}

}  // namespace

Shards::Shards(Options options)
    : options_(std::move(options)), seats_(static_cast<std::size_t>(options_.count)) {}

void Shards::Run(const Effects& effects) {
  for (const auto& effect : effects) effect();
}

absl::Status Shards::Come(const std::shared_ptr<Session>& session, const wire::Hello& hello) {
  if (hello.worker() < 0 || hello.worker() >= options_.count)
    return absl::InvalidArgumentError(
        StrCat("there is no pserver ", hello.worker(), ": the job has ", options_.count));
  Effects effects;
  {
    const MutexLock lock(mu_);
    Seat& seat = seats_[static_cast<std::size_t>(hello.worker())];
    const bool another = seat.incarnation != hello.incarnation();
    if (another && seat.begun && !over_)
      effects = Lose(StrCat("pserver ", hello.worker(), " (", seat.pod, ") was started again"));
    if (another) log::Info("a pserver has come", {{"pserver", hello.worker()}, {"pod", hello.pod()}});
    if (seat.session != nullptr && seat.session != session)
      seat.session->Close(another
                              ? absl::FailedPreconditionError("another process has this pserver's place now")
                              : absl::AbortedError("another stream of this pserver has come"));
    seat.incarnation = hello.incarnation();
    seat.pod = Shortened(hello.pod(), 253);
    seat.address = Shortened(hello.address(), kMostAddressBytes);
    seat.session = session;
    seat.waits.reset();
  }
  Run(effects);
  return absl::OkStatus();
}

void Shards::Serve(const Call& call, int index, std::int64_t after) {
  Effects effects;
  {
    const MutexLock lock(mu_);
    Seat& seat = seats_[static_cast<std::size_t>(index)];
    if (seat.session != call.session) return;
    seat.waits = call;
    seat.after = after;
    effects = Deliver(seat);
  }
  Run(effects);
}

Shards::Effects Shards::Deliver(Seat& seat) {
  if (!seat.waits) return {};
  const auto next =
      std::ranges::find_if(seat.orders, [&](const wire::Order& order) { return order.id() > seat.after; });
  if (next == seat.orders.end()) return {};
  wire::Answer answer;
  *answer.mutable_order() = *next;
  seat.given = next->id();
  seat.begun = true;
  seat.told = Clock::System().Steady();
  Effects effects = {[call = *seat.waits, answer] { call.Reply(answer); }};
  seat.waits.reset();
  return effects;
}

void Shards::Obey(int index, const wire::Obeyed& obeyed) {
  Effects effects;
  {
    const MutexLock lock(mu_);
    Seat& seat = seats_[static_cast<std::size_t>(index)];
    // What was told before, or to another master, is not waited for.
    if (std::erase_if(seat.orders, [&](const wire::Order& order) { return order.id() == obeyed.order(); }) ==
        0)
      return;
    seat.obeyed = seat.obeyed || obeyed.code() == 0;
    const auto telling = tellings_.find(obeyed.order());
    if (telling == tellings_.end()) return;
    telling->second.answers[static_cast<std::size_t>(index)] = obeyed;
    if (--telling->second.missing > 0) return;
    Answers answers = std::move(telling->second.answers);
    for (int i = options_.count - 1; i >= 0 && answers.ok(); --i) {
      if (const absl::Status refused = StatusOf(i, (*answers)[static_cast<std::size_t>(i)]); !refused.ok())
        answers = refused;
    }
    effects.push_back(
        [done = std::move(telling->second.done), answers = std::move(answers)] { done(answers); });
    tellings_.erase(telling);
  }
  Run(effects);
}

void Shards::Leave(const std::shared_ptr<Session>& session) {
  const MutexLock lock(mu_);
  for (Seat& seat : seats_) {
    if (seat.session != session) continue;
    seat.session = nullptr;
    seat.waits.reset();
    seat.left = Clock::System().Steady();
  }
}

void Shards::Gone(int index, const std::string& pod) {
  Effects effects;
  {
    const MutexLock lock(mu_);
    if (index < 0 || index >= options_.count) return;
    const Seat& seat = seats_[static_cast<std::size_t>(index)];
    if (seat.begun && seat.pod == pod) effects = Lose(StrCat("pserver ", index, " (", pod, ") has ended"));
  }
  Run(effects);
}

void Shards::Tend() {
  Effects effects;
  {
    const MutexLock lock(mu_);
    for (std::size_t i = 0; i < seats_.size(); ++i) {
      const Seat& seat = seats_[i];
      const bool stuck = seat.begun && !seat.orders.empty() && seat.orders.front().id() <= seat.given &&
                         options_.patience > absl::ZeroDuration() &&
                         Clock::System().Steady() - seat.told > options_.patience;
      if (stuck && effects.empty())
        effects = Lose(StrCat("pserver ", i, " (", seat.pod, ") has not obeyed for ",
                              absl::FormatDuration(options_.patience)));
      const bool away = seat.begun && seat.session == nullptr;
      if (away && Clock::System().Steady() - seat.left > options_.reconnecting && effects.empty())
        effects = Lose(StrCat("pserver ", i, " (", seat.pod, ") is away"));
    }
  }
  Run(effects);
}

Shards::Effects Shards::Lose(const std::string& why) {
  if (over_ || lost_) return {};
  Effects effects = DropOrders(why);
  effects.push_back([lost = options_.lost, why] { lost(why); });
  return effects;
}

Shards::Effects Shards::DropOrders(const std::string& why) {
  lost_ = why;
  Effects effects;
  for (auto& [id, telling] : tellings_)
    effects.push_back([done = std::move(telling.done), why] { done(absl::UnavailableError(why)); });
  tellings_.clear();
  return effects;
}

void Shards::Stop() {
  Effects effects;
  {
    const MutexLock lock(mu_);
    effects = DropOrders("the master is ending");
  }
  Run(effects);
}

void Shards::Tell(wire::Order order, std::function<void(Answers)> done) {
  Effects effects;
  {
    const MutexLock lock(mu_);
    if (lost_) {
      effects.push_back([done, why = *lost_] { done(absl::UnavailableError(why)); });
    } else {
      order.set_id((options_.generation << kGenerationShift) + ++told_);
      tellings_.emplace(order.id(), Telling{.answers = std::vector<wire::Obeyed>(seats_.size()),
                                            .missing = options_.count,
                                            .done = std::move(done)});
      for (Seat& seat : seats_) {
        seat.orders.push_back(order);
        for (auto& effect : Deliver(seat)) effects.push_back(std::move(effect));
      }
    }
  }
  Run(effects);
}

Shards::Answers Shards::Ask(wire::Order order) {
  std::promise<Answers> answers;
  Tell(std::move(order), [&](Answers given) { answers.set_value(std::move(given)); });
  return answers.get_future().get();
}

void Shards::End() {
  {
    const MutexLock lock(mu_);
    if (std::exchange(over_, true)) return;
  }
  wire::Order order;
  order.mutable_end();
  Tell(std::move(order), [](const Answers&) {});
}

std::vector<std::string> Shards::Addresses() {
  const MutexLock lock(mu_);
  std::vector<std::string> addresses;
  addresses.reserve(seats_.size());
  for (const Seat& seat : seats_) addresses.push_back(seat.address);
  return addresses;
}

std::vector<PserverView> Shards::Connected() {
  const MutexLock lock(mu_);
  std::vector<PserverView> connected;
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    const Seat& seat = seats_[i];
    if (seat.session == nullptr) continue;
    connected.push_back(
        {.index = static_cast<int>(i), .incarnation = seat.incarnation, .works = seat.obeyed});
  }
  return connected;
}

std::string Shards::WhoIsMissing() {
  const MutexLock lock(mu_);
  std::string missing;
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    if (seats_[i].session == nullptr) StrAppend(missing, missing.empty() ? "pserver " : ", ", i);
  }
  if (!missing.empty()) return StrCat(missing, " to come");
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    const Seat& seat = seats_[i];
    const absl::Duration since = Clock::System().Steady() - seat.told;
    if (seat.begun && !seat.orders.empty() && seat.orders.front().id() <= seat.given && since > kWorthTelling)
      return StrCat("pserver ", i, " to obey, for ",
                    absl::FormatDuration(absl::Trunc(since, absl::Seconds(1))));
  }
  return "";
}

}  // namespace trainyard::master
