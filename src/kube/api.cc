#include "kube/api.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "base/text.h"
#include "kube/json_slice.h"
#include "kube/watch_stream.h"

namespace trainyard::kube {
namespace {

// Whether what failed is worth another attempt; what the server itself asks to wait.
struct Verdict {
  bool again = false;
  std::optional<absl::Duration> retry_after;
};

Verdict Judge(const absl::Status& status, bool repeatable) {
  if (const std::optional<ApiError> error = ToApiError(status)) {
    const bool refused = error->code == 429 || error->code == 503;
    const bool unclear = error->code == 502 || error->code == 504;
    return {.again = refused || (unclear && repeatable), .retry_after = error->retry_after};
  }
  // A deadline that has passed is not tried again: the caller has waited as long as it meant to.
  return {.again = absl::IsUnavailable(status) || (absl::IsUnknown(status) && repeatable)};
}

// How long to wait before attempt number `attempt` (the second is 1), with `random` in [0, 1): between half
// and the whole of what has doubled each time, so that those who failed together do not come back together.
absl::Duration BackOff(const RetryPolicy& policy, int attempt, double random) {
  absl::Duration wait = policy.first;
  for (int i = 1; i < attempt && wait < policy.most; ++i) wait *= 2;
  return std::min(wait, policy.most) * (0.5 + random / 2);
}

absl::StatusOr<std::string> BodyOf(absl::StatusOr<Response> response, const Request& request) {
  if (!response.ok()) {
    return Annotate(response.status(), StrCat(request.method, " ", request.target));
  }
  const absl::Status status = ToStatus(*response);
  if (status.ok()) return std::move(response->body);
  // A Status object says which object it is about; what a proxy says does not.
  if (response->content_type.starts_with("application/json")) return status;
  return Annotate(status, StrCat(request.method, " ", request.target));
}

std::string ListTarget(const Resource& resource, std::string_view ns, const ListOptions& options) {
  std::string target = ResourcePath(resource, ns);
  if (options.limit > 0) AddParameter(target, "limit", std::to_string(options.limit));
  AddParameter(target, "continue", options.continue_token);
  AddParameter(target, "labelSelector", options.label_selector);
  AddParameter(target, "fieldSelector", options.field_selector);
  AddParameter(target, "resourceVersion", options.resource_version);
  AddParameter(target, "resourceVersionMatch", options.resource_version_match);
  return target;
}

std::string WatchTarget(const Resource& resource, std::string_view ns, const WatchOptions& options) {
  std::string target = StrCat(ResourcePath(resource, ns), "?watch=true");
  AddParameter(target, "resourceVersion", options.resource_version);
  AddParameter(target, "labelSelector", options.label_selector);
  AddParameter(target, "fieldSelector", options.field_selector);
  if (options.bookmarks) AddParameter(target, "allowWatchBookmarks", "true");
  const std::int64_t seconds = absl::ToInt64Seconds(options.server_timeout);
  if (seconds > 0) AddParameter(target, "timeoutSeconds", std::to_string(seconds));
  return target;
}

}  // namespace

// Whether to wait and try again: never longer than the policy's longest wait, whatever the server asks for.
// The caller finds it in the error, and has better things to do meanwhile.
std::optional<absl::Duration> Api::NextWait(const absl::Status& failure, bool repeatable, int attempts_made) {
  const Verdict verdict = Judge(failure, repeatable);
  if (!verdict.again || attempts_made >= retry_.attempts) return std::nullopt;
  if (verdict.retry_after && *verdict.retry_after > retry_.most) return std::nullopt;
  constexpr std::uint64_t kSteps = 1 << 20;
  const double random = static_cast<double>(ids_.Below(kSteps)) / kSteps;
  return std::max(BackOff(retry_, attempts_made, random), verdict.retry_after.value_or(absl::ZeroDuration()));
}

void Api::Wait(absl::Duration time) {
  const std::unique_ptr<Alarm> alarm = clock_.NewAlarm();
  const SteadyTime until = clock_.Steady() + time;
  while (alarm->WaitUntil(until) != Alarm::Woken::kDeadline) {
  }
}

std::vector<absl::StatusOr<std::string>> Api::Do(std::vector<Operation> operations) {
  std::vector<absl::StatusOr<std::string>> results(operations.size());
  std::vector<std::size_t> pending(operations.size());
  for (std::size_t i = 0; i < pending.size(); ++i) pending[i] = i;
  for (int attempt = 1; !pending.empty(); ++attempt) {
    std::vector<Request> requests;
    requests.reserve(pending.size());
    for (const std::size_t i : pending) requests.push_back(operations[i].request);
    std::vector<absl::StatusOr<Response>> responses = transport_.DoAll(std::move(requests));
    TY_CHECK(responses.size() == pending.size(), "a transport answers every request");
    std::vector<std::size_t> again;
    absl::Duration wait = absl::ZeroDuration();
    for (std::size_t at = 0; at < pending.size(); ++at) {
      const std::size_t i = pending[at];
      results[i] = BodyOf(std::move(responses[at]), operations[i].request);
      if (results[i].ok() || operations[i].once) continue;
      const auto next = NextWait(results[i].status(), operations[i].repeatable, attempt);
      if (!next) continue;
      wait = std::max(wait, *next);
      again.push_back(i);
    }
    pending = std::move(again);
    if (!pending.empty()) Wait(wait);
  }
  return results;
}

absl::StatusOr<std::string> Api::Do(Operation operation) {
  std::vector<Operation> one;
  one.push_back(std::move(operation));
  return std::move(Do(std::move(one)).front());
}

absl::StatusOr<std::string> Api::Get(const Resource& resource, const ObjectKey& key) {
  return Do(GetOperation(resource, key));
}

absl::StatusOr<std::string> Api::Create(const Resource& resource, std::string_view ns, std::string object) {
  return Do(CreateOperation(resource, ns, std::move(object)));
}

absl::StatusOr<std::string> Api::Update(const Resource& resource, const ObjectKey& key, std::string object,
                                        std::string_view subresource) {
  return Do(UpdateOperation(resource, key, std::move(object), subresource));
}

absl::StatusOr<std::string> Api::Patch(const Resource& resource, const ObjectKey& key, std::string patch,
                                       const PatchOptions& options, std::string_view subresource) {
  return Do(PatchOperation(resource, key, std::move(patch), options, subresource));
}

absl::Status Api::Delete(const Resource& resource, const ObjectKey& key, const DeleteOptions& options) {
  return Do(DeleteOperation(resource, key, options)).status();
}

absl::StatusOr<ListPage> Api::List(const Resource& resource, std::string_view ns,
                                   const ListOptions& options) {
  Operation operation{.request = {.method = "GET", .target = ListTarget(resource, ns, options)},
                      .once = options.once};
  const std::string what = StrCat("listing ", resource.plural);
  TY_ASSIGN_OR_RETURN(std::string body, Do(std::move(operation)));
  absl::StatusOr<ListPage> page = SliceList(std::move(body));
  if (!page.ok()) return Annotate(page.status(), StrCat(what, " at ", transport_.Server()));
  return page;
}

absl::StatusOr<ListPage> Api::ListAll(const Resource& resource, std::string_view ns, ListOptions options) {
  const ListOptions first = options;
  TY_ASSIGN_OR_RETURN(ListPage all, List(resource, ns, options));
  bool unpaged = false;
  while (!all.continue_token.empty()) {
    // The token has the version in it; beside it, one is refused.
    options.resource_version.clear();
    options.resource_version_match.clear();
    options.continue_token = all.continue_token;
    absl::StatusOr<ListPage> page = List(resource, ns, options);
    if (!page.ok() && IsGone(page.status()) && !unpaged) {
      // What a server forgets faster than it can be read page by page is read in one piece.
      options = first;
      options.limit = 0;
      unpaged = true;
      page = List(resource, ns, options);
      if (page.ok()) all.items.clear();
    }
    if (!page.ok()) return page.status();
    std::ranges::move(page->items, std::back_inserter(all.items));
    all.resource_version = std::move(page->resource_version);
    all.continue_token = std::move(page->continue_token);
  }
  return all;
}

absl::StatusOr<std::unique_ptr<WatchStream>> Api::Watch(const Resource& resource, std::string_view ns,
                                                        const WatchOptions& options) {
  const Request request{.method = "GET", .target = WatchTarget(resource, ns, options)};
  for (int attempt = 1;; ++attempt) {
    absl::StatusOr<OpenedResponse> opened = transport_.Open(request);
    if (opened.ok() && opened->body != nullptr) {
      return NewWatchStream(std::move(opened->body), clock_,
                            StrCat(resource.plural, " at ", transport_.Server()));
    }
    const absl::Status failure = opened.ok() ? BodyOf(std::move(opened->head), request).status()
                                             : BodyOf(opened.status(), request).status();
    TY_CHECK(!failure.ok(), "an opened answer has a body");
    const auto wait = NextWait(failure, /*repeatable=*/true, attempt);
    if (!wait) return failure;
    Wait(*wait);
  }
}

}  // namespace trainyard::kube
