#include "kube/runner.h"

#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/status.h"

namespace trainyard::kube {

Runner::Runner(WorkQueue& queue, Clock& clock, Reconcile reconcile, Options options)
    : queue_(queue), clock_(clock), reconcile_(std::move(reconcile)), options_(std::move(options)) {}

Runner::~Runner() { Stop(); }

void Runner::Start() {
  TY_CHECK(workers_.empty(), "a runner starts once");
  for (int i = 0; i < options_.workers; ++i) workers_.emplace_back([this] { Work(); });
}

void Runner::Stop(WorkQueue::Rest rest) {
  queue_.ShutDown(rest);
  for (std::thread& worker : workers_) {
    if (worker.joinable()) worker.join();
  }
}

void Runner::Work() {
  while (const std::optional<ObjectKey> key = queue_.Get()) RunPass(*key);
}

bool Runner::RunOne(SteadyTime now) {
  const std::optional<ObjectKey> key = queue_.TryGet(now);
  if (!key) return false;
  RunPass(*key);
  return true;
}

void Runner::RunPass(const ObjectKey& key) {
  const absl::Duration late = queue_.LateBy(key);
  const SteadyTime start = clock_.Steady();
  Pass pass = reconcile_(key);
  PassReport report{.key = key,
                    .outcome = std::move(pass.outcome),
                    .actions = std::move(pass.actions),
                    .late = late,
                    .took = clock_.Steady() - start};
  report.wait = Settle(key, report.outcome);
  queue_.Done(key);
  Log(report);
  if (options_.on_pass != nullptr) options_.on_pass(report);
}

// Before Done(): the key keeps its place in time even if another thread adds it meanwhile.
absl::Duration Runner::Settle(const ObjectKey& key, const Outcome& outcome) {
  const auto* failed = std::get_if<Failed>(&outcome);
  if (failed != nullptr && !failed->terminal) return queue_.Retry(key);
  queue_.Forget(key);
  const auto* again = std::get_if<Again>(&outcome);
  if (again == nullptr) return absl::InfiniteDuration();
  queue_.Add(key, again->after);
  return again->after;
}

void Runner::Log(const PassReport& report) const {
  const std::string key = report.key.Str();
  if (const auto* failed = std::get_if<Failed>(&report.outcome)) {
    log::Warn("pass failed",
              {{"controller", options_.name},
               {"key", key},
               {"error", Message(failed->status)},
               {"retry", failed->terminal ? "when it changes" : absl::FormatDuration(report.wait)},
               {"actions", report.actions},
               {"took", report.took}});
    return;
  }
  const bool again = std::holds_alternative<Again>(report.outcome);
  log::Write(report.actions.empty() ? log::Level::kDebug : log::Level::kInfo, "pass",
             {{"controller", options_.name},
              {"key", key},
              {"outcome", again ? "again" : "done"},
              {"wait", again ? report.wait : absl::ZeroDuration()},
              {"actions", report.actions},
              {"took", report.took}});
}

}  // namespace trainyard::kube
