#include "view/watches.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "kube/error.h"

namespace trainyard::view {
namespace {

constexpr absl::Duration kBetweenTries = absl::Seconds(5);
constexpr absl::Duration kBeforeResuming = absl::Milliseconds(250);
constexpr absl::Duration kNextTimeout = absl::Seconds(60);

bool IsEvents(const kube::Resource& resource) { return resource.plural == kube::Resource::Events().plural; }

}  // namespace

Watches::Watches(kube::Api& api, Clock& clock, Scope scope, Listener listener)
    : api_(api), clock_(clock), scope_(std::move(scope)), listener_(std::move(listener)) {
  // Several kinds may be objects of one resource: one watch serves them all.
  std::vector<kube::Resource> watched;
  for (const Kind kind : kKinds) {
    if (!scope_.kinds.empty() && std::ranges::find(scope_.kinds, kind) == scope_.kinds.end()) continue;
    const KindFacts& facts = FactsOf(kind);
    if (std::ranges::find(watched, facts.resource) != watched.end()) continue;
    watched.push_back(facts.resource);
    Begin(facts.resource, scope_.kinds.size() == 1 ? std::string(facts.object_selector) : "");
  }
  if (scope_.pods) Begin(kube::Resource::Pods());
  if (listener_.event) Begin(kube::Resource::Events());
}

Watches::~Watches() {
  {
    const MutexLock lock(mu_);
    stopping_ = true;
    for (kube::WatchStream* const stream : streams_) stream->Cancel();
  }
  for (const auto& alarm : alarms_) alarm->Notify();
  for (std::thread& thread : threads_) thread.join();
}

void Watches::Begin(const kube::Resource& resource, const std::string& selector) {
  alarms_.push_back(clock_.NewAlarm());
  threads_.emplace_back(
      [this, resource, selector, alarm = alarms_.back().get()] { Run(resource, selector, *alarm); });
}

bool Watches::stopping() const {
  const MutexLock lock(mu_);
  return stopping_;
}

// Until the end: a kind that is not there yet may come.
void Watches::Run(const kube::Resource& resource, const std::string& selector, Alarm& alarm) {
  const bool events = IsEvents(resource);
  std::string version;  // of what was seen last; "": it is to be found
  bool told = false;
  bool listed = false;
  while (!stopping()) {
    auto stream = Open(resource, selector, version);
    if (events && !std::exchange(listed, true) && listener_.events_listed) listener_.events_listed();
    if (stream.ok()) {
      {
        const MutexLock lock(mu_);
        if (stopping_) return;
        streams_.push_back(stream->get());
      }
      if (!events) listener_.changed();  // what was before is not told of
      Follow(**stream, events, version);
      const MutexLock lock(mu_);
      std::erase(streams_, stream->get());
    } else {
      version.clear();
      // A kind that the cluster does not know is no trouble; what may not be seen is.
      if (!kube::IsNotFound(stream.status()) && !std::exchange(told, true))
        log::Warn("cannot watch", {{"what", resource.plural}, {"error", stream.status()}});
    }
    const SteadyTime again = clock_.Steady() + (stream.ok() ? kBeforeResuming : kBetweenTries);
    while (!stopping() && clock_.Steady() < again) alarm.WaitUntil(again);
  }
}

absl::StatusOr<std::unique_ptr<kube::WatchStream>> Watches::Open(const kube::Resource& resource,
                                                                 const std::string& selector,
                                                                 std::string& version) {
  if (version.empty() && IsEvents(resource)) {
    TY_ASSIGN_OR_RETURN(const kube::ListPage page, api_.ListAll(resource, scope_.ns, {}));
    for (const std::string& item : page.items) {
      if (const auto event = ParseJson(item); event.ok()) listener_.event(*event);
    }
    version = page.resource_version;
  } else if (version.empty()) {
    TY_ASSIGN_OR_RETURN(const kube::ListPage page,
                        api_.List(resource, scope_.ns, {.label_selector = selector, .limit = 1}));
    version = page.resource_version;
  }
  return api_.Watch(resource, scope_.ns, {.label_selector = selector, .resource_version = version});
}

void Watches::Follow(kube::WatchStream& stream, bool events, std::string& version) {
  while (true) {
    const auto event = stream.Next(kNextTimeout);
    if (absl::IsDeadlineExceeded(event.status())) continue;
    if (kube::IsGone(event.status())) version.clear();
    if (!event.ok()) return;
    const auto object = ParseJson(event->object);
    if (!object.ok()) continue;
    version = std::string(StringAt(*object, {"metadata", "resourceVersion"}));
    if (event->type == kube::WatchEventType::kBookmark) continue;
    if (!events) {
      listener_.changed();
    } else if (event->type != kube::WatchEventType::kDeleted) {
      listener_.event(*object);
    }
  }
}

JobChanges::JobChanges(kube::Api& api, Clock& clock, std::string ns, std::vector<Kind> kinds)
    : clock_(clock),
      watches_(api, clock, {.ns = std::move(ns), .kinds = std::move(kinds)}, {.changed = [this] {
                 const MutexLock lock(mu_);
                 dirty_ = true;
                 changed_.SignalAll();
               }}) {}

bool JobChanges::Await(absl::Duration time) {
  const SteadyTime deadline = clock_.Steady() + time;
  const MutexLock lock(mu_);
  while (!dirty_ && clock_.Steady() < deadline) changed_.WaitUntil(mu_, deadline);
  return std::exchange(dirty_, false);
}

}  // namespace trainyard::view
