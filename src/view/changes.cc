#include "view/changes.h"

#include <algorithm>
#include <utility>

#include "base/document.h"
#include "base/ids.h"

namespace trainyard::view {
namespace {

constexpr absl::Duration kBetweenTries = absl::Seconds(1);
constexpr absl::Duration kNextTimeout = absl::Seconds(60);

}  // namespace

JobChanges::JobChanges(kube::Transport& transport, Clock& clock, std::string ns,
                       const std::vector<Kind>& kinds)
    : clock_(clock), ns_(std::move(ns)), api_(transport, clock, IdSource::Random(), {.attempts = 1}) {
  for (const Kind kind : kKinds) {
    if (!kinds.empty() && std::ranges::find(kinds, kind) == kinds.end()) continue;
    const KindFacts& facts = FactsOf(kind);
    threads_.emplace_back([this, &facts] { Watch(facts.resource, std::string(facts.object_selector)); });
    // What an elastic job tells of itself is beside its object.
    if (kind == Kind::kElastic)
      threads_.emplace_back(
          [this, &facts] { Watch(kube::Resource::ConfigMaps(), std::string(facts.job_label)); });
  }
}

JobChanges::~JobChanges() {
  {
    const MutexLock lock(mu_);
    stopping_ = true;
    for (kube::WatchStream* const stream : streams_) stream->Cancel();
    changed_.SignalAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

bool JobChanges::Await(absl::Duration time) {
  const SteadyTime deadline = clock_.Steady() + time;
  const MutexLock lock(mu_);
  while (!dirty_ && clock_.Steady() < deadline) changed_.WaitUntil(mu_, deadline);
  return std::exchange(dirty_, false);
}

bool JobChanges::stopping() const {
  const MutexLock lock(mu_);
  return stopping_;
}

void JobChanges::Pause() {
  const SteadyTime again = clock_.Steady() + kBetweenTries;
  const MutexLock lock(mu_);
  while (!stopping_ && clock_.Steady() < again) changed_.WaitUntil(mu_, again);
}

// Until the end: a kind that the cluster does not know yet may come.
void JobChanges::Watch(const kube::Resource& resource, const std::string& selector) {
  while (!stopping()) {
    auto stream = api_.Watch(resource, ns_, {.label_selector = selector});
    if (stream.ok()) {
      {
        const MutexLock lock(mu_);
        if (stopping_) return;
        streams_.push_back(stream->get());
      }
      while (true) {
        const auto event = (*stream)->Next(kNextTimeout);
        if (absl::IsDeadlineExceeded(event.status())) continue;
        if (!event.ok()) break;
        if (event->type == kube::WatchEventType::kBookmark) continue;
        const MutexLock lock(mu_);
        dirty_ = true;
        changed_.SignalAll();
      }
      const MutexLock lock(mu_);
      std::erase(streams_, stream->get());
      dirty_ = true;
      changed_.SignalAll();
    }
    Pause();
  }
}

}  // namespace trainyard::view
