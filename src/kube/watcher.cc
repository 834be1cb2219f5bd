#include "kube/watcher.h"

#include <algorithm>

#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "kube/json_slice.h"

namespace trainyard::kube {
namespace {

// After so many refusals in a row the version itself is in doubt: a cluster that was restored from a backup
// has never heard of it.
constexpr int kMostRefusals = 3;

bool IsOverloaded(const ApiError& error) { return error.code == 429 || error.code == 503; }

}  // namespace

void WatchJudge::Heard() {
  failures_ = 0;
  refusals_ = 0;
}

WatchVerdict WatchJudge::ListFailed(const absl::Status& status) { return {.wait = Wait(status)}; }

WatchVerdict WatchJudge::WatchFailed(const absl::Status& status, absl::Duration lived) {
  const bool long_lived = lived >= short_life_;
  if (long_lived) Heard();
  const std::optional<ApiError> error = ToApiError(status);
  if (!error && long_lived) return {};
  bool list_again = IsGone(status);
  if (error && !IsOverloaded(*error) && ++refusals_ >= kMostRefusals) list_again = true;
  if (list_again) refusals_ = 0;
  return {.list_again = list_again, .wait = Wait(status)};
}

absl::Duration WatchJudge::Wait(const absl::Status& status) {
  const absl::Duration wait = BackoffAfter(backoff_, ++failures_, random_);
  const std::optional<ApiError> error = ToApiError(status);
  return std::max(wait, error ? error->retry_after.value_or(absl::ZeroDuration()) : absl::ZeroDuration());
}

void LogUndecodable(const WatcherOptions& options, const absl::Status& status) {
  log::Warn("an object cannot be read and is left out",
            {{"resource", options.resource.plural}, {"error", Message(status)}});
}

absl::Status SilentError(const WatcherOptions& options) {
  return absl::UnavailableError(StrCat("nothing came from the watch of ", options.resource.plural, " for ",
                                       absl::FormatDuration(options.server_timeout + options.margin),
                                       "; opening it anew"));
}

std::string VersionOf(const std::string& json) { return FindIdentity(json).resource_version; }

}  // namespace trainyard::kube
