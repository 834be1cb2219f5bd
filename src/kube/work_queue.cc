#include "kube/work_queue.h"

#include <algorithm>

#include "base/check.h"

namespace trainyard::kube {

WorkQueue::~WorkQueue() {
  MutexLock lock(mu_);
  TY_CHECK(waiting_.empty(), "a thread waits in a queue that goes");
}

void WorkQueue::Add(const ObjectKey& key, absl::Duration after) {
  MutexLock lock(mu_);
  AddAt(key, clock_.Steady() + std::max(after, absl::ZeroDuration()));
}

absl::Duration WorkQueue::Retry(const ObjectKey& key) {
  MutexLock lock(mu_);
  int& failures = entries_[key].failures;
  const absl::Duration wait = BackoffAfter(backoff_, ++failures, random_);
  AddAt(key, clock_.Steady() + wait);
  return wait;
}

void WorkQueue::Forget(const ObjectKey& key) {
  MutexLock lock(mu_);
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  found->second.failures = 0;
  EraseIfIdle(found);
}

void WorkQueue::AddAt(const ObjectKey& key, SteadyTime time) {
  if (shut_down_) return;
  const auto at = entries_.try_emplace(key).first;
  Entry& entry = at->second;
  if (entry.due && entry.due->first <= time) return;
  if (entry.due && !entry.running) queue_.erase({entry.due->first, entry.due->second, &at->first});
  entry.due.emplace(time, ++added_);
  if (!entry.running) Enqueue(at->first, entry);
}

void WorkQueue::Enqueue(const ObjectKey& key, const Entry& entry) {
  const auto at = queue_.emplace(entry.due->first, entry.due->second, &key).first;
  if (at == queue_.begin() || entry.due->first <= clock_.Steady()) WakeOne();
}

std::optional<ObjectKey> WorkQueue::Take(SteadyTime now) {
  if (queue_.empty() || std::get<SteadyTime>(*queue_.begin()) > now) return std::nullopt;
  const ObjectKey& key = *std::get<const ObjectKey*>(*queue_.begin());
  queue_.erase(queue_.begin());
  Entry& entry = entries_.at(key);
  entry.late = now - entry.due->first;
  entry.due.reset();
  entry.running = true;
  return key;
}

absl::Duration WorkQueue::LateBy(const ObjectKey& key) const {
  MutexLock lock(mu_);
  const auto at = entries_.find(key);
  return at == entries_.end() ? absl::ZeroDuration() : at->second.late;
}

std::optional<ObjectKey> WorkQueue::Get() {
  std::unique_ptr<Alarm> alarm;
  while (true) {
    SteadyTime wake;
    {
      MutexLock lock(mu_);
      if (alarm != nullptr) {
        std::erase(waiting_, alarm.get());
        if (keeper_ == alarm.get()) keeper_ = nullptr;
        spare_alarms_.push_back(std::move(alarm));
      }
      if (std::optional<ObjectKey> key = Take(clock_.Steady())) {
        if (!queue_.empty()) WakeOne();
        return key;
      }
      if (shut_down_) return std::nullopt;
      if (spare_alarms_.empty()) spare_alarms_.push_back(clock_.NewAlarm());
      alarm = std::move(spare_alarms_.back());
      spare_alarms_.pop_back();
      waiting_.push_back(alarm.get());
      wake = SteadyTime::Never();
      const SteadyTime first = queue_.empty() ? SteadyTime::Never() : std::get<SteadyTime>(*queue_.begin());
      if (keeper_ == nullptr || first < kept_) {
        keeper_ = alarm.get();
        wake = kept_ = first;
      }
    }
    alarm->WaitUntil(wake);
  }
}

std::optional<ObjectKey> WorkQueue::TryGet(SteadyTime now) {
  MutexLock lock(mu_);
  return Take(now);
}

void WorkQueue::Done(const ObjectKey& key) {
  MutexLock lock(mu_);
  const auto at = entries_.find(key);
  TY_CHECK(at != entries_.end() && at->second.running, "done with a key that does not run");
  at->second.running = false;
  if (at->second.due) Enqueue(at->first, at->second);
  EraseIfIdle(at);
}

SteadyTime WorkQueue::NextTime() const {
  MutexLock lock(mu_);
  return queue_.empty() ? SteadyTime::Never() : std::get<SteadyTime>(*queue_.begin());
}

void WorkQueue::ShutDown(Rest rest) {
  MutexLock lock(mu_);
  shut_down_ = true;
  const SteadyTime now = clock_.Steady();
  for (auto at = entries_.begin(); at != entries_.end();) {
    const auto entry = at++;
    std::optional<std::pair<SteadyTime, std::uint64_t>>& due = entry->second.due;
    if (!due || (rest == Rest::kDrain && due->first <= now)) continue;
    if (!entry->second.running) queue_.erase({due->first, due->second, &entry->first});
    due.reset();
    EraseIfIdle(entry);
  }
  while (!waiting_.empty()) WakeOne();
}

WorkQueue::Counts WorkQueue::Count() const {
  MutexLock lock(mu_);
  Counts counts;
  const SteadyTime now = clock_.Steady();
  for (const auto& [key, entry] : entries_) {
    if (entry.running) ++counts.running;
    if (entry.due) ++(entry.due->first <= now ? counts.ready : counts.later);
  }
  return counts;
}

void WorkQueue::EraseIfIdle(Entries::iterator at) {
  const Entry& entry = at->second;
  if (!entry.due && !entry.running && entry.failures == 0) entries_.erase(at);
}

void WorkQueue::WakeOne() {
  if (waiting_.empty()) return;
  waiting_.back()->Notify();
  waiting_.pop_back();
}

}  // namespace trainyard::kube
