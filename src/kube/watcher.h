// Keeps up with one collection of objects: lists it, then watches from there, and goes on from where it was
// after any break. What it lists anew is handed over whole, so that nobody sees half a list.
//
//            first page             last page: Restarted             opened
//   [Empty] ───────────▶ [Listing] ─────────────────────▶ [Listed] ─────────▶ [Watching] ──▶ Applied,
//   Deleted,
//     ▲ ▲                    │                              ▲   │                 │   │      Bookmark
//     │ └── a page expired ──┘                              └───┼── ended, broke, ┘   │
//     │                                                         │   silent            │
//     └───── the version is gone, or was refused too often ─────┴─────────────────────┘
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/mutex.h"
#include "kube/api.h"
#include "kube/backoff.h"
#include "kube/object_meta.h"
#include "kube/resource.h"

namespace trainyard::kube {

struct WatcherOptions {
  Resource resource;
  std::string ns;  // empty: all
  std::string label_selector;
  std::string field_selector;
  std::int64_t page = 500;  // objects of one request
  // After so long the server ends a watch. One from which nothing came for so long and the margin has no
  // other end any more.
  absl::Duration server_timeout = absl::Minutes(5);
  absl::Duration margin = absl::Seconds(30);
  // A watch that ends is resumed at once, but one that lived for less than this only after a back-off.
  absl::Duration short_life = absl::Seconds(1);
  BackoffPolicy backoff = {.first = absl::Milliseconds(500), .most = absl::Seconds(30), .jitter = 0.5};
};

// What follows the failure of a list or a watch.
struct WatchVerdict {
  bool list_again = false;
  absl::Duration wait;  // zero: none
};

// Judges failures by what came before them. Pure but for the random part of its waits.
class WatchJudge {
 public:
  WatchJudge(const WatcherOptions& options, IdSource random)
      : short_life_(options.short_life), backoff_(options.backoff), random_(std::move(random)) {}

  // Something came through a watch.
  void Heard();
  WatchVerdict ListFailed(const absl::Status& status);
  // A watch was not opened, or ended or broke after it had lived for a time.
  WatchVerdict WatchFailed(const absl::Status& status, absl::Duration lived);

 private:
  absl::Duration Wait(const absl::Status& status);

  const absl::Duration short_life_;
  const BackoffPolicy backoff_;
  IdSource random_;
  int failures_ = 0;  // in a row
  int refusals_ = 0;  // of watches by the server, in a row
};

// T has a member `meta` of type ObjectMeta. Used by one thread, except Cancel(). The API and the clock must
// outlive it. Blocks no longer than the API's calls and the patience given, so that one thread can drive many
// on a manual clock.
template <typename T>
class Watcher {
 public:
  using Ptr = std::shared_ptr<const T>;
  // Called for each object as it comes, so that no more texts than one page's are held. An object that it
  // cannot read is logged and left out.
  using Decode = std::function<absl::StatusOr<T>(std::string json)>;

  struct Nothing {
    bool waited = false;  // nothing came in time; false: a step was made
  };
  struct Restarted {  // replaces all that came before
    std::vector<Ptr> objects;
  };
  struct Applied {  // added or changed
    Ptr object;
  };
  struct Deleted {
    Ptr object;  // as it was last
  };
  struct Bookmark {};  // the version moved on
  struct Broken {
    absl::Status status;
    absl::Duration wait;  // before the next step
  };
  using Event = std::variant<Nothing, Restarted, Applied, Deleted, Bookmark, Broken>;

  Watcher(Api& api, Clock& clock, IdSource random, WatcherOptions options, Decode decode)
      : api_(api),
        clock_(clock),
        options_(std::move(options)),
        decode_(std::move(decode)),
        judge_(options_, std::move(random)) {}
  ~Watcher() { CloseStream(); }
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  // Makes one step: one request, or one event waited for.
  Event Step(absl::Duration patience);
  // Ends a step that waits for an event, and all that follow. From any thread.
  void Cancel();

  // Up to which everything has been handed over; empty before the first Restarted.
  const std::string& version() const { return version_; }

 private:
  struct Empty {};
  struct Listing {
    std::vector<Ptr> objects;  // of the pages so far
    std::string continue_token;
  };
  struct Listed {};
  struct Watching {
    std::unique_ptr<WatchStream> stream;
    SteadyTime opened;
    SteadyTime heard;
  };

  Event ListPage(std::vector<Ptr> objects, const std::string& continue_token);
  Event OpenStream();
  Event Await(Watching& watching, absl::Duration patience);
  Event Take(WatchEvent event);
  Event Follow(WatchVerdict verdict, absl::Status status);
  Ptr Decoded(std::string json, std::string* version);
  bool RegisterStream(WatchStream* stream);
  void CloseStream();

  Api& api_;
  Clock& clock_;
  const WatcherOptions options_;
  const Decode decode_;
  WatchJudge judge_;
  std::variant<Empty, Listing, Listed, Watching> state_;
  std::string version_;   // unless Empty or Listing: from which to watch
  bool unpaged_ = false;  // pages expire faster than they are read

  Mutex mu_;
  WatchStream* open_ TY_GUARDED_BY(mu_) = nullptr;
  bool cancelled_ TY_GUARDED_BY(mu_) = false;
};

// What the steps need and does not depend on the type.
void LogUndecodable(const WatcherOptions& options, const absl::Status& status);
absl::Status SilentError(const WatcherOptions& options);
std::string VersionOf(const std::string& json);

// ---- the steps

template <typename T>
typename Watcher<T>::Event Watcher<T>::Step(absl::Duration patience) {
  {
    MutexLock lock(mu_);
    if (cancelled_) return Broken{absl::CancelledError("the watcher was cancelled"), absl::ZeroDuration()};
  }
  if (auto* listing = std::get_if<Listing>(&state_)) {
    return ListPage(std::move(listing->objects), std::string(listing->continue_token));
  }
  if (std::holds_alternative<Listed>(state_)) return OpenStream();
  if (auto* watching = std::get_if<Watching>(&state_)) return Await(*watching, patience);
  return ListPage({}, "");
}

template <typename T>
typename Watcher<T>::Event Watcher<T>::ListPage(std::vector<Ptr> objects, const std::string& continue_token) {
  auto page = api_.List(options_.resource, options_.ns,
                        {.label_selector = options_.label_selector,
                         .field_selector = options_.field_selector,
                         .limit = unpaged_ ? 0 : options_.page,
                         .continue_token = continue_token,
                         .once = true});
  if (!page.ok()) {
    const bool expired = IsGone(page.status()) && !continue_token.empty();
    unpaged_ = unpaged_ || expired;
    if (expired) {
      state_ = Empty{};
    } else if (!continue_token.empty()) {
      state_ = Listing{std::move(objects), continue_token};
    }
    const WatchVerdict verdict = judge_.ListFailed(page.status());
    return Broken{page.status(), verdict.wait};
  }
  objects.reserve(objects.size() + page->items.size());
  for (std::string& item : page->items) {
    if (Ptr object = Decoded(std::move(item), nullptr)) objects.push_back(std::move(object));
  }
  if (!page->continue_token.empty()) {
    state_ = Listing{std::move(objects), std::move(page->continue_token)};
    return Nothing{};
  }
  unpaged_ = false;
  version_ = std::move(page->resource_version);
  state_ = Listed{};
  return Restarted{std::move(objects)};
}

template <typename T>
typename Watcher<T>::Event Watcher<T>::OpenStream() {
  auto stream = api_.Watch(options_.resource, options_.ns,
                           {.label_selector = options_.label_selector,
                            .field_selector = options_.field_selector,
                            .resource_version = version_,
                            .server_timeout = options_.server_timeout});
  if (!stream.ok()) return Follow(judge_.WatchFailed(stream.status(), absl::ZeroDuration()), stream.status());
  if (!RegisterStream(stream->get())) (*stream)->Cancel();
  const SteadyTime now = clock_.Steady();
  state_ = Watching{*std::move(stream), now, now};
  return Nothing{};
}

template <typename T>
typename Watcher<T>::Event Watcher<T>::Await(Watching& watching, absl::Duration patience) {
  const SteadyTime silent_from = watching.heard + (options_.server_timeout + options_.margin);
  const absl::Duration left = std::max(silent_from - clock_.Steady(), absl::ZeroDuration());
  absl::StatusOr<WatchEvent> event = watching.stream->Next(std::min(patience, left));
  const SteadyTime now = clock_.Steady();
  if (event.ok()) {
    watching.heard = now;
    judge_.Heard();
    return Take(*std::move(event));
  }
  absl::Status status = event.status();
  // An error that the server sent may have the same code.
  const bool silent = absl::IsDeadlineExceeded(status) && !ToApiError(status);
  if (silent && now < silent_from) return Nothing{.waited = true};
  const absl::Duration lived = now - watching.opened;
  CloseStream();
  state_ = Listed{};
  if (silent) return Broken{SilentError(options_), absl::ZeroDuration()};
  const WatchVerdict verdict = judge_.WatchFailed(status, lived);
  return Follow(verdict, std::move(status));
}

template <typename T>
typename Watcher<T>::Event Watcher<T>::Follow(WatchVerdict verdict, absl::Status status) {
  if (verdict.list_again) state_ = Empty{};
  if (verdict.wait == absl::ZeroDuration()) return Nothing{};
  return Broken{std::move(status), verdict.wait};
}

template <typename T>
typename Watcher<T>::Event Watcher<T>::Take(WatchEvent event) {
  if (event.type == WatchEventType::kBookmark) {
    if (std::string version = VersionOf(event.object); !version.empty()) version_ = std::move(version);
    return Bookmark{};
  }
  std::string version;
  Ptr object = Decoded(std::move(event.object), &version);
  if (!version.empty()) version_ = std::move(version);
  if (object == nullptr) return Nothing{};
  if (event.type == WatchEventType::kDeleted) return Deleted{std::move(object)};
  return Applied{std::move(object)};
}

template <typename T>
typename Watcher<T>::Ptr Watcher<T>::Decoded(std::string json, std::string* version) {
  if (version != nullptr) *version = VersionOf(json);
  absl::StatusOr<T> object = decode_(std::move(json));
  if (object.ok()) return std::make_shared<const T>(*std::move(object));
  LogUndecodable(options_, object.status());
  return nullptr;
}

// False: the watcher has been cancelled meanwhile.
template <typename T>
bool Watcher<T>::RegisterStream(WatchStream* stream) {
  MutexLock lock(mu_);
  open_ = stream;
  return !cancelled_;
}

template <typename T>
void Watcher<T>::CloseStream() {
  MutexLock lock(mu_);
  open_ = nullptr;
}

template <typename T>
void Watcher<T>::Cancel() {
  MutexLock lock(mu_);
  cancelled_ = true;
  if (open_ != nullptr) open_->Cancel();
}

}  // namespace trainyard::kube
