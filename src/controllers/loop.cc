#include "controllers/loop.h"

#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/status.h"
#include "kube/error.h"

namespace trainyard::controllers {
namespace {

// So many writes in flight keep a group commit full.
constexpr std::size_t kBatch = 128;
constexpr kube::BackoffPolicy kBackoff{.first = absl::Milliseconds(100), .most = absl::Seconds(30)};

}  // namespace

Loop::Loop(std::string name, Clock& clock, IdSource random, Pass pass)
    : name_(std::move(name)),
      clock_(clock),
      pass_(std::move(pass)),
      queue_(clock, std::move(random), kBackoff) {}

bool Loop::Run() {
  const SteadyTime start = clock_.Steady();
  std::vector<kube::ObjectKey> keys;
  while (keys.size() < kBatch) {
    std::optional<kube::ObjectKey> key = queue_.TryGet(start);
    if (!key) break;
    keys.push_back(*std::move(key));
  }
  if (keys.empty()) return false;
  const std::vector<kube::Outcome> outcomes = pass_(keys);
  TY_CHECK(outcomes.size() == keys.size(), "a pass has an outcome for every key");
  for (std::size_t i = 0; i < keys.size(); ++i) Settle(keys[i], outcomes[i]);
  log::Debug("pass", {{"controller", name_},
                      {"keys", keys.size()},
                      {"first", keys.front().Str()},
                      {"took", clock_.Steady() - start}});
  return true;
}

void Loop::Settle(const kube::ObjectKey& key, const kube::Outcome& outcome) {
  if (const auto* failed = std::get_if<kube::Failed>(&outcome)) {
    const absl::Duration wait = queue_.Retry(key);
    // Two writers that meet are no trouble; one that keeps failing is.
    const bool trouble = !kube::IsConflict(failed->status);
    log::Write(
        trouble ? log::Level::kWarn : log::Level::kDebug, "pass failed",
        {{"controller", name_}, {"key", key.Str()}, {"error", Message(failed->status)}, {"retry", wait}});
  } else {
    queue_.Forget(key);
    if (const auto* again = std::get_if<kube::Again>(&outcome)) queue_.Add(key, again->after);
  }
  queue_.Done(key);
}

Loop::Pass EachAlone(std::function<kube::Outcome(const kube::ObjectKey& key)> pass) {
  return [pass = std::move(pass)](const std::vector<kube::ObjectKey>& keys) {
    std::vector<kube::Outcome> outcomes;
    outcomes.reserve(keys.size());
    for (const kube::ObjectKey& key : keys) outcomes.push_back(pass(key));
    return outcomes;
  };
}

kube::Outcome OutcomeOf(const absl::Status& status) {
  if (status.ok()) return kube::Done{};
  return kube::Failed{status};
}

}  // namespace trainyard::controllers
