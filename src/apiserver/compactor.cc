#include "apiserver/compactor.h"

#include <algorithm>

#include "base/log.h"

namespace trainyard::apiserver {

std::optional<kv::Revision> RevisionAges::Note(kv::Revision newest, SteadyTime now) {
  if (seen_.empty() || seen_.back().revision != newest) seen_.push_back({.at = now, .revision = newest});
  std::optional<kv::Revision> old;
  // Of those that are old enough the last one goes on being what was the newest then.
  while (!seen_.empty() && now - seen_.front().at >= limits_.age) {
    old = seen_.front().revision;
    if (seen_.size() == 1) break;
    seen_.pop_front();
  }
  if (newest > limits_.revisions) old = std::max(old.value_or(0), newest - limits_.revisions);
  if (!old || *old <= forgotten_) return std::nullopt;
  forgotten_ = *old;
  return old;
}

Compactor::Compactor(kv::Store& store, Clock& clock, HistoryLimits limits)
    : store_(store),
      clock_(clock),
      every_(limits.age / 30),
      ages_(limits),
      alarm_(clock.NewAlarm()),
      thread_([this] { Run(); }) {}

Compactor::~Compactor() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
  }
  alarm_->Notify();
  thread_.join();
}

void Compactor::Run() {
  for (;;) {
    alarm_->WaitUntil(clock_.Steady() + every_);
    {
      MutexLock lock(mu_);
      if (stopping_) return;
    }
    const auto newest = store_.Get("registry/");
    if (!newest.ok()) continue;
    const auto old = ages_.Note(newest->revision, clock_.Steady());
    if (!old) continue;
    if (const absl::Status compacted = store_.Compact(*old); !compacted.ok() && !kv::IsCompacted(compacted)) {
      log::Warn("cannot compact the store", {{"revision", *old}, {"error", compacted}});
    }
  }
}

}  // namespace trainyard::apiserver
