#include "kv/etcd/etcd_server_watch.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "kv/etcd/etcd_server_codec.h"

namespace trainyard::kv {
namespace {

constexpr std::size_t kMaxParkedBytes = 8 * kMaxRequestBytes;

std::size_t SizeOf(const KeyValue& kv) { return kv.key.size() + kv.value.size() + 64; }

std::size_t SizeOf(const WatchEvent& event) {
  return SizeOf(event.kv) + (event.previous ? SizeOf(*event.previous) : 0);
}

}  // namespace

WatchSession::WatchSession(EtcdCalls& calls, Progress progress, std::function<void()> wake)
    : calls_(calls), progress_(progress), wake_(std::move(wake)) {}

WatchSession::~WatchSession() {
  watches_.clear();  // before what their on_ready uses
}

// ---- requests

void WatchSession::Handle(const etcdserverpb::WatchRequest& request) {
  switch (request.request_union_case()) {
    case etcdserverpb::WatchRequest::kCreateRequest:
      return Create(request.create_request());
    case etcdserverpb::WatchRequest::kCancelRequest:
      return Cancel(request.cancel_request().watch_id());
    case etcdserverpb::WatchRequest::kProgressRequest:
      return AskProgress();
    case etcdserverpb::WatchRequest::REQUEST_UNION_NOT_SET:
      return;  // etcd passes over it too
  }
}

void WatchSession::Refuse(std::string_view reason) {
  etcdserverpb::WatchResponse& answer = answers_.emplace_back();
  *answer.mutable_header() = calls_.Header(calls_.Newest().value_or(0));
  answer.set_watch_id(-1);
  answer.set_created(true);
  answer.set_canceled(true);
  answer.set_cancel_reason(std::string(reason));
}

void WatchSession::Create(const etcdserverpb::WatchCreateRequest& create) {
  auto watch = std::make_unique<Watch>();
  watch->request.range =
      ToKeyRange(create.key().empty() ? std::string(1, '\0') : create.key(), create.range_end());
  watch->request.with_previous = create.prev_kv();
  watch->request.progress = true;
  watch->tells_progress = progress_ == Progress::kAlways || create.progress_notify();
  for (const int filter : create.filters()) {
    watch->no_puts = watch->no_puts || filter == etcdserverpb::WatchCreateRequest::NOPUT;
    watch->no_deletes = watch->no_deletes || filter == etcdserverpb::WatchCreateRequest::NODELETE;
  }
  if (watch->request.range.Empty()) return Refuse("mvcc: watcher range is empty");
  if (watches_.size() >= kMaxWatches) return Refuse("etcdserver: too many requests");
  watch->id = create.watch_id();
  if (watch->id == 0) {
    while (watches_.contains(next_id_)) ++next_id_;
    watch->id = next_id_++;
  } else if (watches_.contains(watch->id)) {
    return Refuse("mvcc: duplicate watch ID provided on the WatchStream");
  }
  // The client goes on from the revision that it is told here, so the watch must begin exactly behind it.
  const absl::StatusOr<Revision> newest = calls_.Newest();
  if (!newest.ok()) return Refuse(Message(ToWireError(newest.status())));
  watch->next_revision =
      create.start_revision() == 0 ? *newest + 1 : std::max<Revision>(create.start_revision(), 1);
  if (const absl::Status opened = Open(*watch); !opened.ok()) return Refuse(Message(ToWireError(opened)));

  etcdserverpb::WatchResponse& answer = answers_.emplace_back();
  *answer.mutable_header() = calls_.Header(*newest);
  answer.set_watch_id(watch->id);
  answer.set_created(true);
  Enqueue(*watch);
  watches_.emplace(watch->id, std::move(watch));
}

absl::Status WatchSession::Open(Watch& watch) {
  WatchRequest request = watch.request;
  request.start_revision = watch.next_revision;
  request.on_ready = [this, id = watch.id] {
    {
      MutexLock lock(mu_);
      ready_.push_back(id);
    }
    wake_();
  };
  TY_ASSIGN_OR_RETURN(watch.watcher, calls_.store().Watch(std::move(request)));
  return absl::OkStatus();
}

void WatchSession::Cancel(std::int64_t id) {
  if (watches_.erase(id) == 0) return;  // etcd does not answer that either
  etcdserverpb::WatchResponse& answer = answers_.emplace_back();
  *answer.mutable_header() = calls_.Header(calls_.Newest().value_or(0));
  answer.set_watch_id(id);
  answer.set_canceled(true);
}

void WatchSession::End(std::int64_t id, const absl::Status& why) {
  etcdserverpb::WatchResponse& answer = answers_.emplace_back();
  *answer.mutable_header() = calls_.Header(0);
  answer.set_watch_id(id);
  answer.set_canceled(true);
  const absl::StatusOr<Revision> kept =
      IsCompacted(why) ? calls_.OldestKept() : absl::StatusOr<Revision>(why);
  if (kept.ok()) {
    answer.set_compact_revision(*kept);
  } else {
    answer.set_cancel_reason(std::string(Message(ToWireError(kept.status()))));
  }
  watches_.erase(id);
}

// A store promises what a watch has seen only by what it shows; so progress is told when each watch has been
// shown, by events or by progress of its own, that it has come so far.
void WatchSession::AskProgress() {
  const absl::StatusOr<Revision> newest = calls_.Newest();
  if (newest.ok()) progress_asked_.push_back(*newest);
}

void WatchSession::AnswerProgress() {
  while (!progress_asked_.empty()) {
    const Revision asked = progress_asked_.front();
    const bool all =
        std::ranges::all_of(watches_, [&](const auto& entry) { return entry.second->next_revision > asked; });
    if (!all) return;
    progress_asked_.pop_front();
    etcdserverpb::WatchResponse& answer = answers_.emplace_back();
    *answer.mutable_header() = calls_.Header(asked);
    answer.set_watch_id(-1);
  }
}

// ---- answers

std::optional<absl::StatusOr<etcdserverpb::WatchResponse>> WatchSession::Next() {
  QueueReady();
  while (true) {
    AnswerProgress();
    if (!answers_.empty()) {
      etcdserverpb::WatchResponse answer = std::move(answers_.front());
      answers_.pop_front();
      return answer;
    }
    if (queue_.empty()) return std::nullopt;
    if (auto said = Step()) return *std::move(said);
  }
}

void WatchSession::Enqueue(Watch& watch) {
  if (std::exchange(watch.queued, true)) return;
  queue_.push_back(watch.id);
}

void WatchSession::QueueReady() {
  std::vector<std::int64_t> ready;
  {
    MutexLock lock(mu_);
    ready.swap(ready_);
  }
  for (const std::int64_t id : ready) {
    if (const auto it = watches_.find(id); it != watches_.end()) Enqueue(*it->second);
  }
}

std::optional<etcdserverpb::WatchResponse> WatchSession::Step() {
  const std::int64_t id = queue_.front();
  queue_.pop_front();
  const auto it = watches_.find(id);
  if (it == watches_.end()) return std::nullopt;
  Watch& watch = *it->second;
  watch.queued = false;
  if (watch.shown == watch.batch.events.size()) {
    const absl::StatusOr<bool> more = Refill(watch);
    if (!more.ok()) {
      End(id, more.status());
      return std::nullopt;
    }
    if (!*more) return std::nullopt;  // its on_ready is called when there is more
  }
  Enqueue(watch);  // behind the others
  etcdserverpb::WatchResponse part = TakePart(watch);
  if (part.ByteSizeLong() > kMaxAnswerBytes) {
    End(id, absl::ResourceExhaustedError("one transaction has changed more than one message can tell"));
    return std::nullopt;
  }
  const bool is_progress = watch.batch.events.empty();
  if (part.events().empty() && !(is_progress && watch.tells_progress)) return std::nullopt;
  return part;
}

// False: there is nothing now.
absl::StatusOr<bool> WatchSession::Refill(Watch& watch) {
  if (watch.watcher == nullptr) TY_RETURN_IF_ERROR(Open(watch));
  absl::StatusOr<WatchBatch> batch = watch.watcher->Next(absl::ZeroDuration());
  watch.shown = 0;
  watch.batch = {};
  if (absl::IsDeadlineExceeded(batch.status())) return false;
  TY_RETURN_IF_ERROR(batch);
  watch.batch = *std::move(batch);
  return true;
}

etcdserverpb::WatchResponse WatchSession::TakePart(Watch& watch) {
  etcdserverpb::WatchResponse part;
  part.set_watch_id(watch.id);
  std::vector<WatchEvent>& events = watch.batch.events;
  std::size_t bytes = 0;
  Revision revision = watch.batch.revision;
  for (; watch.shown < events.size(); ++watch.shown) {
    WatchEvent& event = events[watch.shown];
    const bool whole = bytes > 0 && event.kv.mod_revision != revision;
    if (whole && bytes + SizeOf(event) > kMaxRequestBytes) break;
    revision = event.kv.mod_revision;
    const bool put = event.type == WatchEvent::Type::kPut;
    if (put ? watch.no_puts : watch.no_deletes) continue;
    bytes += SizeOf(event);
    Fill(std::move(event), *part.add_events());
  }
  if (watch.shown == events.size()) revision = watch.batch.revision;
  *part.mutable_header() = calls_.Header(revision);
  watch.next_revision = revision + 1;
  return part;
}

void WatchSession::Park() {
  for (auto& [id, watch] : watches_) {
    watch->watcher = nullptr;
    Shorten(*watch);
    Enqueue(*watch);
  }
}

// Keeps some of the batch: a client that is slow but takes what it gets would else have all of it read from
// the store again for each message.
void WatchSession::Shorten(Watch& watch) {
  std::vector<WatchEvent>& events = watch.batch.events;
  std::size_t bytes = 0;
  for (std::size_t i = watch.shown; i < events.size(); ++i) {
    const bool whole = i > watch.shown && events[i].kv.mod_revision != events[i - 1].kv.mod_revision;
    bytes += SizeOf(events[i]);
    if (!whole || bytes <= kMaxParkedBytes) continue;
    watch.batch.revision = events[i - 1].kv.mod_revision;
    events.resize(i);
    events.shrink_to_fit();
  }
}

}  // namespace trainyard::kv
