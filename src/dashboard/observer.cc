#include "dashboard/observer.h"

#include <algorithm>
#include <utility>

#include "base/document.h"
#include "base/log.h"
#include "base/text.h"
#include "kube/error.h"
#include "view/parse.h"
#include "view/reader.h"

namespace trainyard::dashboard {
namespace {

constexpr absl::Duration kBetweenTries = absl::Seconds(5);
constexpr absl::Duration kLeastPause = absl::Milliseconds(250);
constexpr int kShare = 30;  // of the time that a look took, so many times is waited before the next
constexpr std::size_t kMostEvents = 500;
constexpr absl::Duration kNextTimeout = absl::Seconds(60);

std::string KeyOf(const view::Job& job) { return StrCat(job.ns, "/", job.Id(), "/", job.uid); }

double NumberOf(const Document& value) {
  if (value.is_double()) return value.get_double();
  return value.is_int64() ? static_cast<double>(value.get_int64()) : 0;
}

// What a job tells of its learning, as far as it is a number.
void TakePlots(const Document& told, double now, std::map<std::string, Series>& plots) {
  if (const Document* const loss = Find(told, {"loss"})) plots["loss"].Add(now, NumberOf(*loss));
  if (const Object* const metrics = ObjectAt(told, {"metrics"})) {
    for (const auto& metric : *metrics) plots[std::string(Key(metric))].Add(now, NumberOf(metric.value()));
  }
}

}  // namespace

void Series::Add(double seconds, double value, bool on_change) {
  if (!points_.empty()) {
    if (on_change && points_.back().second == value) return;
    if (seconds - points_.back().first < least_gap_) {
      points_.back().second = value;
      return;
    }
  }
  points_.emplace_back(seconds, value);
  if (points_.size() <= most_) return;
  std::vector<std::pair<double, double>> half;
  for (std::size_t i = 0; i < points_.size(); i += 2) half.push_back(points_[i]);
  if (half.back() != points_.back()) half.push_back(points_.back());
  points_ = std::move(half);
  least_gap_ = (points_.back().first - points_.front().first) / static_cast<double>(most_);
}

std::shared_ptr<const SeenJob> Snapshot::Find(view::Kind kind, std::string_view ns,
                                              std::string_view name) const {
  const auto found = std::ranges::find_if(jobs, [&](const auto& seen) {
    return seen->job.kind == kind && seen->job.ns == ns && seen->job.name == name;
  });
  return found == jobs.end() ? nullptr : *found;
}

Observer::Observer(kube::Transport& transport, Clock& clock, std::string ns, Listener listener)
    : clock_(clock),
      ns_(std::move(ns)),
      listener_(std::move(listener)),
      api_(transport, clock, IdSource::Random(), {.attempts = 2}),
      begun_(clock.Now()),
      snapshot_(std::make_shared<Snapshot>()) {
  threads_.emplace_back([this] { Sample(); });
  for (const view::Kind kind : {view::Kind::kTfJob, view::Kind::kAiTrainingJob})
    threads_.emplace_back([this, kind] { Watch(view::FactsOf(kind).resource, "", false); });
  for (const view::Kind kind : {view::Kind::kElastic, view::Kind::kTask})
    threads_.emplace_back([this, kind] {
      Watch(kube::Resource::ConfigMaps(), std::string(view::FactsOf(kind).job_label), false);
    });
  threads_.emplace_back([this] { Watch(kube::Resource::Pods(), "", false); });
  threads_.emplace_back([this] { Watch(kube::Resource::Events(), "", true); });
}

Observer::~Observer() {
  {
    const MutexLock lock(mu_);
    stopping_ = true;
    for (kube::WatchStream* const stream : streams_) stream->Cancel();
    changed_.SignalAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

bool Observer::stopping() const {
  const MutexLock lock(mu_);
  return stopping_;
}

std::shared_ptr<const Snapshot> Observer::Look() const {
  const MutexLock lock(mu_);
  return snapshot_;
}

std::vector<ClusterEvent> Observer::Events() const {
  const MutexLock lock(mu_);
  return {events_.begin(), events_.end()};
}

// Until the end: a kind that is not there yet may come.
void Observer::Watch(const kube::Resource& resource, const std::string& selector, bool events) {
  std::string version;  // of what was seen last; "": everything is told of first
  bool told = false;
  while (!stopping()) {
    auto stream = api_.Watch(resource, ns_, {.label_selector = selector, .resource_version = version});
    if (stream.ok()) {
      {
        const MutexLock lock(mu_);
        if (stopping_) return;
        streams_.push_back(stream->get());
      }
      while (true) {
        auto event = (*stream)->Next(kNextTimeout);
        if (absl::IsDeadlineExceeded(event.status())) continue;
        if (kube::IsGone(event.status())) version.clear();
        if (!event.ok()) break;
        const auto object = ParseJson(event->object);
        if (!object.ok()) continue;
        version = std::string(StringAt(*object, {"metadata", "resourceVersion"}));
        if (event->type == kube::WatchEventType::kBookmark) continue;
        if (events) {
          if (event->type != kube::WatchEventType::kDeleted) TakeEvent(*object);
          continue;
        }
        const MutexLock lock(mu_);
        dirty_ = true;
        changed_.SignalAll();
      }
      const MutexLock lock(mu_);
      std::erase(streams_, stream->get());
    } else {
      version.clear();
      // A kind that the cluster does not know is no trouble; what may not be seen is.
      if (!kube::IsNotFound(stream.status()) && !std::exchange(told, true))
        log::Warn("the dashboard cannot watch", {{"what", resource.plural}, {"error", stream.status()}});
    }
    const SteadyTime again = clock_.Steady() + (stream.ok() ? kLeastPause : kBetweenTries);
    const MutexLock lock(mu_);
    while (!stopping_ && clock_.Steady() < again) changed_.WaitUntil(mu_, again);
  }
}

void Observer::TakeEvent(const Document& object) {
  ClusterEvent event{.ns = std::string(StringAt(object, {"metadata", "namespace"})),
                     .uid = std::string(StringAt(object, {"metadata", "uid"})),
                     .event = view::ParseEvent(object)};
  {
    const MutexLock lock(mu_);
    std::erase_if(events_, [&](const ClusterEvent& known) { return known.uid == event.uid; });
    const auto later = [&](const ClusterEvent& known) { return known.event.time > event.event.time; };
    events_.insert(std::ranges::find_if(events_, later), event);
    if (events_.size() > kMostEvents) events_.pop_front();
  }
  // What was there before we came is no news.
  if (event.event.time + absl::Seconds(1) >= begun_) listener_.event(event);
}

void Observer::Sample() {
  SteadyTime next;
  while (true) {
    {
      const MutexLock lock(mu_);
      while (!stopping_ && (!dirty_ || clock_.Steady() < next)) {
        if (dirty_) {
          changed_.WaitUntil(mu_, next);
        } else {
          changed_.Wait(mu_);
        }
      }
      if (stopping_) return;
      dirty_ = false;
    }
    const SteadyTime begun = clock_.Steady();
    TakeSample();
    next = clock_.Steady() + std::max(kLeastPause, (clock_.Steady() - begun) * kShare);
  }
}

void Observer::TakeSample() {
  auto jobs = view::ListJobs(api_, {.ns = ns_});
  if (!jobs.ok()) {
    log::Debug("the dashboard cannot list jobs", {{"error", jobs.status()}});
    const MutexLock lock(mu_);
    dirty_ = true;
    return;
  }
  const double now = absl::ToDoubleSeconds(clock_.Now() - absl::UnixEpoch());
  const std::shared_ptr<const Snapshot> before = Look();
  std::map<std::string, std::shared_ptr<const SeenJob>> known;
  for (const auto& seen : before->jobs) known[KeyOf(seen->job)] = seen;
  auto next = std::make_shared<Snapshot>();
  next->number = before->number + 1;
  for (view::Job& job : *jobs) {
    const auto found = known.find(KeyOf(job));
    auto seen =
        found == known.end() ? std::make_shared<SeenJob>() : std::make_shared<SeenJob>(*found->second);
    job.object = Document();
    if (!job.over || found == known.end() || !found->second->job.over) {
      seen->size.Add(now, job.ready, /*on_change=*/true);
      TakePlots(job.told, now, seen->plots);
    }
    seen->job = std::move(job);
    next->jobs.push_back(std::move(seen));
  }
  {
    const MutexLock lock(mu_);
    snapshot_ = std::move(next);
  }
  listener_.changed();
}

}  // namespace trainyard::dashboard
