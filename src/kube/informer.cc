#include "kube/informer.h"

#include <algorithm>

#include "base/log.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::kube {

InformerBase::InformerBase(Clock& clock, std::string what)
    : clock_(clock), what_(std::move(what)), alarm_(clock.NewAlarm()) {}

InformerBase::~InformerBase() { TY_CHECK(!thread_.joinable(), "an informer is stopped before it goes"); }

void InformerBase::Start() {
  TY_CHECK(!thread_.joinable(), "an informer starts once");
  thread_ = std::thread([this] { Run(); });
}

void InformerBase::Stop() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
    WakeAll();
  }
  CancelWatch();
  alarm_->Notify();
  if (thread_.joinable()) thread_.join();
}

void InformerBase::Run() {
  while (!Stopping()) {
    const Progress progress = Step(absl::InfiniteDuration());
    if (progress.wait > absl::ZeroDuration() && !Stopping()) {
      alarm_->WaitUntil(clock_.Steady() + progress.wait);
    }
  }
}

bool InformerBase::StepNow() {
  const Progress progress = Step(absl::ZeroDuration());
  return !progress.idle && progress.wait == absl::ZeroDuration();
}

bool InformerBase::Stopping() const {
  MutexLock lock(mu_);
  return stopping_;
}

bool InformerBase::HasSynced() const {
  MutexLock lock(mu_);
  return synced_;
}

void InformerBase::Synced() {
  MutexLock lock(mu_);
  if (!synced_) log::Info("cache is filled", {{"resource", what_}});
  synced_ = true;
  last_error_ = absl::OkStatus();
  WakeAll();
}

void InformerBase::Broke(const absl::Status& status, absl::Duration wait) {
  MutexLock lock(mu_);
  if (stopping_) return;
  log::Warn("watch broke", {{"resource", what_}, {"error", Message(status)}, {"retry", wait}});
  last_error_ = status;
}

void InformerBase::WakeAll() {
  for (Alarm* alarm : waiting_) alarm->Notify();
  waiting_.clear();
}

absl::Status InformerBase::WaitForSync(absl::Duration timeout) {
  const SteadyTime deadline = clock_.Steady() + timeout;
  const std::unique_ptr<Alarm> alarm = clock_.NewAlarm();
  bool late = false;
  while (true) {
    {
      MutexLock lock(mu_);
      std::erase(waiting_, alarm.get());
      if (synced_) return absl::OkStatus();
      if (stopping_) return absl::CancelledError(StrCat("the cache of ", what_, " was stopped"));
      if (late) {
        const std::string when = timeout > absl::ZeroDuration()
                                     ? StrCat(" could not be listed within ", absl::FormatDuration(timeout))
                                     : " could not be listed yet";
        return absl::DeadlineExceededError(
            StrCat(what_, when, last_error_.ok() ? "" : ": ", Message(last_error_)));
      }
      waiting_.push_back(alarm.get());
    }
    late = alarm->WaitUntil(deadline) == Alarm::Woken::kDeadline;
  }
}

}  // namespace trainyard::kube
