#include "dashboard/observer.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "view/parse.h"
#include "view/reader.h"
#include "view/watches.h"

namespace trainyard::dashboard {
namespace {

constexpr absl::Duration kLeastPause = absl::Milliseconds(250);
constexpr int kShare = 30;  // of the time that a look took, so many times is waited before the next
constexpr int kRestShare = 300;
constexpr std::size_t kMostEvents = 500;
constexpr absl::Duration kFirstLook = absl::Seconds(5);

std::string KeyOf(const view::Job& job) { return StrCat(job.ns, "/", job.Id(), "/", job.uid); }

}  // namespace

std::shared_ptr<const SeenJob> Snapshot::Find(view::Kind kind, std::string_view ns,
                                              std::string_view name) const {
  const auto found = std::ranges::find_if(jobs, [&](const auto& seen) {
    return seen->job.kind == kind && seen->job.ns == ns && seen->job.name == name;
  });
  return found == jobs.end() ? nullptr : *found;
}

Observer::Observer(kube::Transport& transport, Clock& clock, ObserverOptions options, Listener listener)
    : clock_(clock),
      options_(std::move(options)),
      listener_(std::move(listener)),
      api_(transport, clock, IdSource::Random(), {.attempts = 2}),
      alarm_(clock.NewAlarm()),
      attended_until_(clock.Steady()),
      next_look_(clock.Steady()),
      next_rest_(clock.Steady() + options_.look_every),
      snapshot_(std::make_shared<Snapshot>()),
      thread_([this] { Run(); }) {}

Observer::~Observer() {
  {
    const MutexLock lock(mu_);
    stopping_ = true;
    looked_on_.SignalAll();
  }
  alarm_->Notify();
  thread_.join();
}

void Observer::Attend() {
  const SteadyTime now = clock_.Steady();
  bool rests = false;
  {
    const MutexLock lock(mu_);
    rests = attended_until_ <= now;
    attended_until_ = now + kPatience;
  }
  if (rests) alarm_->Notify();
}

void Observer::Await(const bool& done) {
  const SteadyTime deadline = Clock::System().Steady() + kFirstLook;
  while (!stopping_ && !done && looked_on_.WaitUntil(mu_, deadline)) {
  }
}

std::shared_ptr<const Snapshot> Observer::Look() {
  Attend();
  const MutexLock lock(mu_);
  Await(looked_);
  return snapshot_;
}

std::vector<ClusterEvent> Observer::Events() {
  Attend();
  const MutexLock lock(mu_);
  Await(events_listed_);
  return {events_.begin(), events_.end()};
}

void Observer::MarkChanged() {
  {
    const MutexLock lock(mu_);
    if (std::exchange(dirty_, true)) return;
  }
  alarm_->Notify();
}

Observer::Next Observer::FindNext(SteadyTime now) {
  const MutexLock lock(mu_);
  Next next{.stopping = stopping_, .attended = now < attended_until_};
  if (!next.attended) {
    looked_ = events_listed_ = false;
    next.due = options_.look_every > absl::ZeroDuration() ? next_rest_ : SteadyTime::Never();
  } else if (!looked_) {
    next.due = now;
  } else {
    next.due = dirty_ ? next_look_ : attended_until_;
  }
  return next;
}

void Observer::Run() {
  std::unique_ptr<view::Watches> watches;
  while (true) {
    const SteadyTime now = clock_.Steady();
    const Next next = FindNext(now);
    if (next.stopping) return;
    if (!next.attended) {
      watches.reset();
    } else if (watches == nullptr) {
      watches = BeginWatching();
    }
    if (now < next.due) {
      alarm_->WaitUntil(next.due);
    } else {
      TakeSample(next.attended);
    }
  }
}

std::unique_ptr<view::Watches> Observer::BeginWatching() {
  {
    const MutexLock lock(mu_);
    attended_since_ = clock_.Now();
  }
  return std::make_unique<view::Watches>(
      api_, clock_, view::Watches::Scope{.ns = options_.ns, .pods = true},
      view::Watches::Listener{.changed = [this] { MarkChanged(); },
                              .event = [this](const Document& event) { TakeEvent(event); },
                              .events_listed =
                                  [this] {
                                    const MutexLock lock(mu_);
                                    events_listed_ = true;
                                    looked_on_.SignalAll();
                                  }});
}

void Observer::TakeEvent(const Document& object) {
  ClusterEvent event{.ns = std::string(StringAt(object, {"metadata", "namespace"})),
                     .uid = std::string(StringAt(object, {"metadata", "uid"})),
                     .event = view::ParseEvent(object)};
  bool news = false;
  {
    const MutexLock lock(mu_);
    std::erase_if(events_, [&](const ClusterEvent& known) { return known.uid == event.uid; });
    const auto later = [&](const ClusterEvent& known) { return known.event.time > event.event.time; };
    events_.insert(std::ranges::find_if(events_, later), event);
    if (events_.size() > kMostEvents) events_.pop_front();
    // What was there before we came is no news.
    news = event.event.time + absl::Seconds(1) >= attended_since_;
  }
  if (news) listener_.event(event);
}

void Observer::TakeSample(bool attended) {
  std::shared_ptr<const Snapshot> before;
  {
    const MutexLock lock(mu_);
    dirty_ = false;
    before = snapshot_;
  }
  const SteadyTime begun = clock_.Steady();
  auto jobs = view::ListJobs(api_, {.ns = options_.ns});
  auto next = std::make_shared<Snapshot>();
  if (jobs.ok()) {
    const double now = absl::ToDoubleSeconds(clock_.Now() - absl::UnixEpoch());
    std::map<std::string, std::shared_ptr<const SeenJob>> known;
    for (const auto& seen : before->jobs) known[KeyOf(seen->job)] = seen;
    next->number = before->number + 1;
    for (view::Job& job : *jobs) {
      const auto found = known.find(KeyOf(job));
      auto seen =
          found == known.end() ? std::make_shared<SeenJob>() : std::make_shared<SeenJob>(*found->second);
      if (!job.over || found == known.end() || !found->second->job.over)
        seen->size.Add(now, job.ready, /*on_change=*/true);
      job.object = Document();
      job.reported.reset();
      seen->job = std::move(job);
      next->jobs.push_back(std::move(seen));
    }
  } else {
    log::Debug("the dashboard cannot list jobs", {{"error", jobs.status()}});
  }
  const SteadyTime ended = clock_.Steady();
  {
    const MutexLock lock(mu_);
    if (jobs.ok()) snapshot_ = std::move(next);
    if (!jobs.ok()) dirty_ = true;
    looked_ = attended;
    next_look_ = ended + std::max(kLeastPause, (ended - begun) * kShare);
    next_rest_ = ended + std::max(options_.look_every, (ended - begun) * kRestShare);
    looked_on_.SignalAll();
  }
  if (jobs.ok()) listener_.changed();
}

}  // namespace trainyard::dashboard
