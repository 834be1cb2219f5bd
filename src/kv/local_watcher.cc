#include "kv/local_watcher.h"

#include <chrono>
#include <utility>

#include "base/clock.h"
#include "base/status.h"

namespace trainyard::kv {
namespace {

// What one batch of the past reads into memory: many watchers may catch up at once.
constexpr std::size_t kMaxPastBytes = std::size_t{4} << 20;

}  // namespace

Revision LocalWatcher::next_revision() const {
  MutexLock lock(mu_);
  return next_revision_;
}

LocalWatcher::Ready LocalWatcher::ReadyState() const {
  if (!failure_.ok()) return Ready::kFailed;
  if (!past_.empty()) return Ready::kPast;
  if (behind_) return Ready::kBehind;
  if (!queue_.empty() || progress_ != 0) return Ready::kQueue;
  return Ready::kNo;
}

absl::StatusOr<WatchBatch> LocalWatcher::Next(absl::Duration timeout) {
  source_.TickWithoutKeeper();
  const SteadyTime deadline = Clock::System().Steady() + timeout;
  while (true) {
    std::vector<PastEvent> past;
    {
      MutexLock lock(mu_);
      while (ReadyState() == Ready::kNo) {
        // Who does not want to wait is not made to.
        const bool signalled = timeout > absl::ZeroDuration() && changed_.WaitUntil(mu_, deadline);
        if (!signalled && ReadyState() == Ready::kNo) {
          announced_ = false;
          return absl::DeadlineExceededError("no event in time");
        }
      }
      switch (ReadyState()) {
        case Ready::kFailed:
          return failure_;
        case Ready::kPast:
          past = TakePast();
          break;
        case Ready::kQueue:
          return TakeQueue();
        case Ready::kBehind:
        case Ready::kNo:
          break;
      }
    }
    if (past.empty()) {
      source_.CatchUp(*this);
      continue;
    }
    absl::StatusOr<WatchBatch> batch = Read(past);
    if (!batch.ok()) {  // for good: what comes next would hide the gap
      MutexLock lock(mu_);
      failure_ = batch.status();
    }
    return batch;
  }
}

void LocalWatcher::Cancel() {
  MutexLock lock(mu_);
  failure_ = absl::CancelledError("the watch was cancelled");
  changed_.SignalAll();
}

std::vector<PastEvent> LocalWatcher::TakePast() {
  std::vector<PastEvent> taken;
  std::size_t bytes = 0;
  const auto belongs = [&](const PastEvent& event) {
    return taken.empty() || (taken.size() < kMaxPastEvents && bytes < kMaxPastBytes) ||
           event.version.mod_revision == taken.back().version.mod_revision;
  };
  while (!past_.empty() && belongs(past_.front())) {
    const PastEvent& event = past_.front();
    bytes += event.version.location.length + (event.previous ? event.previous->location.length : 0);
    taken.push_back(std::move(past_.front()));
    past_.pop_front();
  }
  next_revision_ = taken.back().version.mod_revision + 1;
  return taken;
}

WatchBatch LocalWatcher::TakeQueue() {
  WatchBatch batch;
  for (const auto& event : queue_) {
    WatchEvent& copy = batch.events.emplace_back();
    copy.type = event->type;
    copy.kv = event->kv;
    if (request_.with_previous) copy.previous = event->previous;
  }
  batch.revision = queue_.empty() ? progress_ : queue_.back()->kv.mod_revision;
  next_revision_ = batch.revision + 1;
  queue_.clear();
  progress_ = 0;
  return batch;
}

absl::StatusOr<WatchBatch> LocalWatcher::Read(const std::vector<PastEvent>& past) const {
  WatchBatch batch;
  for (const PastEvent& old : past) {
    WatchEvent& event = batch.events.emplace_back();
    event.kv = ToKeyValue(old.key, old.version);
    if (old.version.deleted) {
      event.type = WatchEvent::Type::kDelete;
    } else {
      TY_ASSIGN_OR_RETURN(event.kv.value, old.source->ReadValue(old.version.location));
    }
    if (old.previous) {
      event.previous = ToKeyValue(old.key, *old.previous);
      TY_ASSIGN_OR_RETURN(event.previous->value, old.previous_source->ReadValue(old.previous->location));
    }
  }
  batch.revision = past.back().version.mod_revision;
  return batch;
}

void LocalWatcher::Restart(absl::StatusOr<std::vector<PastEvent>> past) {
  MutexLock lock(mu_);
  if (next_revision_ == 0) next_revision_ = request_.start_revision;
  behind_ = false;
  if (!past.ok()) {
    if (failure_.ok()) failure_ = past.status();
  } else {
    past_.assign(std::make_move_iterator(past->begin()), std::make_move_iterator(past->end()));
  }
  changed_.SignalAll();
}

bool LocalWatcher::Push(std::span<const std::shared_ptr<const WatchEvent>> events) {
  MutexLock lock(mu_);
  active_ = true;
  if (behind_) return false;
  bool added = false;
  for (const auto& event : events) {
    if (event->kv.mod_revision < next_revision_) continue;  // its start is still to come
    queue_.push_back(event);
    added = true;
  }
  if (!added) return false;
  progress_ = 0;
  if (queue_.size() > kMaxQueued) {
    queue_.clear();
    behind_ = true;
  }
  return Announce();
}

bool LocalWatcher::PushProgress(Revision revision) {
  MutexLock lock(mu_);
  const bool idle = !std::exchange(active_, false) && ReadyState() == Ready::kNo;
  if (!request_.progress || !idle || revision + 1 < next_revision_) return false;
  progress_ = revision;
  return Announce();
}

bool LocalWatcher::Announce() {
  changed_.SignalAll();
  return !std::exchange(announced_, true) && request_.on_ready != nullptr;
}

void LocalWatcher::CallOnReady() const { request_.on_ready(); }

}  // namespace trainyard::kv
