#include "kv/etcd/etcd_watch.h"

#include <chrono>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "kv/etcd/etcd_codec.h"

namespace trainyard::kv {
namespace {

std::chrono::steady_clock::time_point ToChrono(SteadyTime time) {
  return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(time.nanos()));
}

}  // namespace

// ---- one watch

EtcdWatcher::EtcdWatcher(EtcdWatches& watches, WatchRequest request)
    : watches_(watches),
      request_(std::move(request)),
      next_revision_(request_.start_revision),
      taken_revision_(request_.start_revision) {}

etcdserverpb::WatchRequest EtcdWatcher::CreateRequest(std::int64_t id) const {
  etcdserverpb::WatchRequest message;
  etcdserverpb::WatchCreateRequest& create = *message.mutable_create_request();
  SetRange(request_.range, create);
  create.set_start_revision(next_revision_);
  create.set_progress_notify(request_.progress);
  create.set_prev_kv(request_.with_previous);
  create.set_watch_id(id);
  return message;
}

absl::StatusOr<WatchBatch> EtcdWatcher::Next(absl::Duration timeout) {
  const SteadyTime deadline = Clock::System().Steady() + timeout;
  MutexLock lock(watches_.mu_);
  while (true) {
    if (!queue_.empty()) break;
    if (!failure_.ok()) return failure_;
    if (behind_) {
      behind_ = false;
      next_revision_ = taken_revision_;
      watches_.Start(*this);
    }
    if (deadline == SteadyTime::Never()) {
      changed_.Wait(watches_.mu_);
    } else if (!changed_.WaitUntil(watches_.mu_, ToChrono(deadline)) && !Ready()) {
      announced_ = false;
      return absl::DeadlineExceededError("no event in time");
    }
  }
  WatchBatch batch = std::move(queue_.front());
  queue_.pop_front();
  queued_events_ -= batch.events.size();
  taken_revision_ = batch.revision + 1;
  return batch;
}

void EtcdWatcher::Cancel() {
  MutexLock lock(watches_.mu_);
  queue_.clear();
  failure_ = absl::CancelledError("the watch was cancelled");
  changed_.SignalAll();
}

bool EtcdWatcher::Take(etcdserverpb::WatchResponse& response) {
  const Revision revision = response.header().revision();
  if (response.canceled()) {
    failure_ = response.compact_revision() > 0
                   ? CompactedError(next_revision_, response.compact_revision())
                   : ToStatus({grpc::StatusCode::FAILED_PRECONDITION, response.cancel_reason()},
                              EtcdOutcome::kRefused, watches_.client_.where());
  } else if (response.created()) {
    created_ = true;
    if (next_revision_ == 0) next_revision_ = taken_revision_ = revision + 1;
    changed_.SignalAll();
    return false;
  } else if (behind_) {
    return false;
  } else if (response.events().empty()) {
    if (revision + 1 < next_revision_) return false;  // told for a start that is still to come
    next_revision_ = revision + 1;
    queue_.push_back({.events = {}, .revision = revision});
  } else {
    WatchBatch& batch = queue_.emplace_back();
    for (etcdserverpb::Event& event : *response.mutable_events()) batch.events.push_back(FromProto(event));
    batch.revision = batch.events.back().kv.mod_revision;
    next_revision_ = batch.revision + 1;
    queued_events_ += batch.events.size();
  }
  changed_.SignalAll();
  return !std::exchange(announced_, true) && request_.on_ready != nullptr;
}

// ---- all of them

EtcdWatches::~EtcdWatches() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
    if (context_ != nullptr) context_->TryCancel();
    changed_.SignalAll();
  }
  if (reader_.joinable()) reader_.join();
}

absl::StatusOr<std::unique_ptr<Watcher>> EtcdWatches::Watch(WatchRequest request) {
  if (request.start_revision < 0)
    return absl::InvalidArgumentError("a watch cannot start at a negative revision");
  auto watcher = std::make_unique<EtcdWatcher>(*this, std::move(request));
  const SteadyTime deadline = Clock::System().Steady() + client_.options().timeout;
  {
    MutexLock lock(mu_);
    if (!reader_.joinable()) reader_ = std::thread([this] { Run(); });
    Start(*watcher);
    changed_.SignalAll();
    while (!watcher->created_ && watcher->failure_.ok()) {
      const bool in_time = watcher->changed_.WaitUntil(mu_, ToChrono(deadline));
      if (watcher->created_ || !watcher->failure_.ok()) break;
      // A cluster that has never answered is more likely misspelt than restarting: each member is asked once.
      const bool hopeless = !answered_ && failures_ >= client_.options().endpoints.size();
      if (!in_time || hopeless) watcher->failure_ = Unreachable();
    }
    // A start that is compacted is told by Next(), as everywhere.
    if (watcher->created_ || IsCompacted(watcher->failure_)) return watcher;
  }
  const absl::Status failure = watcher->failure_;
  return failure;
}

void EtcdWatches::Start(EtcdWatcher& watcher) {
  watcher.id_ = next_id_++;
  watchers_[watcher.id_] = &watcher;
  Send(watcher.CreateRequest(watcher.id_));
}

void EtcdWatches::Stop(EtcdWatcher& watcher) {
  if (watchers_.erase(watcher.id_) == 0) return;
  etcdserverpb::WatchRequest message;
  message.mutable_cancel_request()->set_watch_id(watcher.id_);
  Send(message);
}

void EtcdWatches::Send(const etcdserverpb::WatchRequest& request) {
  // A failure shows in the reader, which then connects anew and asks for all watches again.
  if (stream_ != nullptr) stream_->Write(request);
}

void EtcdWatches::Remove(EtcdWatcher& watcher) {
  MutexLock lock(mu_);
  while (calling_ == &watcher) changed_.Wait(mu_);
  Stop(watcher);
}

absl::Status EtcdWatches::Unreachable() const {
  const std::string why = Message(last_failure_).empty() ? "no answer" : std::string(Message(last_failure_));
  return absl::UnavailableError(StrCat(client_.where(), " cannot be watched (", why,
                                       "): check that it runs and that the address is right"));
}

void EtcdWatches::Run() {
  while (true) {
    {
      MutexLock lock(mu_);
      while (!stopping_ && watchers_.empty()) changed_.Wait(mu_);
      if (stopping_) return;
    }
    EtcdMember& member = client_.member();
    absl::Status ended = Connect(member);
    if (ended.ok()) ended = Read();
    client_.Leave(member);
    {
      MutexLock lock(mu_);
      if (stopping_) return;
      if (failures_++ == 0 && answered_) {
        log::Warn("watches lost their etcd member; they go on at the next",
                  {{"member", member.address}, {"error", ended}});
      }
      last_failure_ = ended;
      for (auto& [id, watcher] : watchers_) watcher->changed_.SignalAll();
    }
    PauseBefore(client_.member());
  }
}

absl::Status EtcdWatches::Connect(EtcdMember& member) {
  auto context = std::make_unique<grpc::ClientContext>();
  TY_RETURN_IF_ERROR(client_.Prepare(*context));
  // A member that has lost its cluster ends the stream instead of going silent.
  context->AddMetadata("hasleader", "true");
  MutexLock lock(mu_);
  if (stopping_) return absl::CancelledError("the store is closing");
  context_ = std::move(context);
  stream_ = member.watch->Watch(context_.get());
  for (auto& [id, watcher] : watchers_) Send(watcher->CreateRequest(id));
  return absl::OkStatus();
}

// Until the stream ends; says why it did.
absl::Status EtcdWatches::Read() {
  Stream* stream = nullptr;
  {
    MutexLock lock(mu_);
    stream = stream_.get();
  }
  etcdserverpb::WatchResponse response;
  while (stream->Read(&response)) Deliver(response);
  MutexLock lock(mu_);
  const grpc::Status status = stream_->Finish();
  stream_ = nullptr;
  if (status.error_code() == grpc::StatusCode::UNAUTHENTICATED) client_.ForgetToken();
  return {static_cast<absl::StatusCode>(status.error_code()), status.error_message()};
}

void EtcdWatches::Deliver(etcdserverpb::WatchResponse& response) {
  EtcdWatcher* ready = nullptr;
  {
    MutexLock lock(mu_);
    answered_ = true;
    failures_ = 0;
    const auto it = watchers_.find(response.watch_id());
    if (it == watchers_.end()) return;  // cancelled meanwhile
    EtcdWatcher& watcher = *it->second;
    if (watcher.Take(response)) ready = calling_ = &watcher;
    if (response.canceled()) {
      watchers_.erase(it);
    } else if (watcher.queued_events_ > EtcdWatcher::kMaxQueued) {
      watcher.behind_ = true;
      Stop(watcher);
    }
  }
  if (ready != nullptr) CallOnReady(ready);
}

void EtcdWatches::CallOnReady(EtcdWatcher* watcher) {
  watcher->request_.on_ready();
  MutexLock lock(mu_);
  calling_ = nullptr;
  changed_.SignalAll();
}

}  // namespace trainyard::kv
