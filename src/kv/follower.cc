#include "kv/follower.h"

#include <utility>

#include "base/status.h"

namespace trainyard::kv {

Follower::Follower(Store& store, KeyRange range, Options options)
    : store_(store), range_(std::move(range)), options_(options), next_revision_(options.start_revision) {}

absl::StatusOr<Follower::Update> Follower::Next(absl::Duration timeout) {
  while (true) {
    if (next_revision_ == 0) {
      absl::StatusOr<Snapshot> snapshot = List();
      if (IsCompacted(snapshot.status())) continue;  // between two pages: what was listed is history already
      TY_RETURN_IF_ERROR(snapshot);
      next_revision_ = snapshot->revision + 1;
      return Update(*std::move(snapshot));
    }
    if (watcher_ == nullptr) TY_RETURN_IF_ERROR(Watch());
    absl::StatusOr<WatchBatch> batch = watcher_->Next(timeout);
    if (batch.ok()) {
      next_revision_ = batch->revision + 1;
      return Update(*std::move(batch));
    }
    if (absl::IsDeadlineExceeded(batch.status())) return batch.status();
    watcher_ = nullptr;
    if (!IsCompacted(batch.status())) return batch.status();
    next_revision_ = 0;
  }
}

absl::StatusOr<Snapshot> Follower::List() {
  Snapshot snapshot;
  RangeRequest request{.range = range_, .limit = options_.page};
  while (true) {
    TY_ASSIGN_OR_RETURN(RangeResult page, store_.Range(request));
    if (request.revision == 0) snapshot.revision = request.revision = page.revision;
    for (KeyValue& kv : page.kvs) snapshot.kvs.push_back(std::move(kv));
    if (!page.more) return snapshot;
    request.range.begin = snapshot.kvs.back().key + '\0';
  }
}

absl::Status Follower::Watch() {
  TY_ASSIGN_OR_RETURN(watcher_, store_.Watch({.range = range_,
                                              .start_revision = next_revision_,
                                              .with_previous = options_.with_previous,
                                              .progress = true}));
  return absl::OkStatus();
}

}  // namespace trainyard::kv
