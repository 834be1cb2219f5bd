// Keeps up with a range of keys: lists it, then watches from there, and when the watch has lost its history
// lists again. A snapshot replaces all that came before it.
//
//            ┌──────────────── compacted ───────────────┐
//            ▼                                          │
//        [listing] ── Snapshot ──▶ [watching] ── WatchBatch ──▶ …
#pragma once

#include <memory>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kv/store.h"

namespace trainyard::kv {

struct Snapshot {
  std::vector<KeyValue> kvs;  // by key
  Revision revision = 0;      // as of which it is
};

// Used by one thread.
class Follower {
 public:
  struct Options {
    Revision start_revision = 0;  // not 0: begin by watching from here instead of listing
    bool with_previous = false;
    std::int64_t page = 500;  // keys listed with one request
  };
  Follower(Store& store, KeyRange range) : Follower(store, std::move(range), Options{}) {}
  Follower(Store& store, KeyRange range, Options options);

  using Update = std::variant<Snapshot, WatchBatch>;
  // DeadlineExceeded: nothing came in time. Other errors of the store are passed on, and the next call tries
  // again.
  absl::StatusOr<Update> Next(absl::Duration timeout = absl::InfiniteDuration());

 private:
  absl::StatusOr<Snapshot> List();
  absl::Status Watch();

  Store& store_;
  const KeyRange range_;
  const Options options_;
  std::unique_ptr<Watcher> watcher_;
  Revision next_revision_;  // 0: list first
};

}  // namespace trainyard::kv
