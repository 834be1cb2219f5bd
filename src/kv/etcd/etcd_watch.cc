#include "kv/etcd/etcd_watch.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "kv/etcd/etcd_codec.h"

namespace trainyard::kv {

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
  while (queue_.empty()) {
    if (!failure_.ok()) return failure_;
    if (behind_) {
      behind_ = false;
      next_revision_ = taken_revision_;
      watches_.Start(*this);
    }
    if (!changed_.WaitUntil(watches_.mu_, deadline) && !Ready()) {
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
  watches_.Stop(*this);
  queue_.clear();
  failure_ = absl::CancelledError("the watch was cancelled");
  changed_.SignalAll();
}

void EtcdWatcher::Confirm(Revision revision) {
  confirmed_ = true;
  renewed_ = false;
  if (next_revision_ == 0) next_revision_ = taken_revision_ = revision + 1;
  changed_.SignalAll();
}

bool EtcdWatcher::Take(etcdserverpb::WatchResponse& response) {
  const Revision revision = response.header().revision();
  if (response.events().empty()) {
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
  return Announce();
}

bool EtcdWatcher::Announce() {
  changed_.SignalAll();
  return !std::exchange(announced_, true) && request_.on_ready != nullptr;
}

// ---- all of them

EtcdWatches::~EtcdWatches() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
    if (connection_ != nullptr) connection_->context.TryCancel();
    changed_.SignalAll();
  }
  if (reader_.joinable()) reader_.join();
  if (sender_.joinable()) sender_.join();
}

absl::StatusOr<std::unique_ptr<Watcher>> EtcdWatches::Watch(WatchRequest request) {
  TY_RETURN_IF_ERROR(Validate(request));
  auto watcher = std::make_unique<EtcdWatcher>(*this, std::move(request));
  const SteadyTime deadline = Clock::System().Steady() + client_.options().timeout;
  absl::Status failure;
  {
    MutexLock lock(mu_);
    if (!reader_.joinable()) {
      reader_ = std::thread([this] { RunReader(); });
      sender_ = std::thread([this] { RunSender(); });
    }
    Start(*watcher);
    while (!watcher->confirmed_ && watcher->failure_.ok()) {
      const bool in_time = watcher->changed_.WaitUntil(mu_, deadline);
      if (!watcher->confirmed_ && watcher->failure_.ok()) watcher->failure_ = Hopeless(in_time);
    }
    failure = watcher->failure_;
  }
  // A start that is compacted is told by Next(), as everywhere.
  if (failure.ok() || IsCompacted(failure)) return watcher;
  return failure;
}

absl::Status EtcdWatches::Hopeless(bool in_time) const {
  const bool refused = absl::IsPermissionDenied(last_failure_) || absl::IsFailedPrecondition(last_failure_);
  if (refused) return last_failure_;
  // A cluster that has never answered is more likely misspelt than restarting: each member is asked once.
  if (in_time && (answered_ || failures_ < client_.options().endpoints.size())) return absl::OkStatus();
  const std::string why = last_failure_.ok() ? "no answer" : std::string(Message(last_failure_));
  return absl::UnavailableError(StrCat(client_.where(), " cannot be watched (", why,
                                       "): check that it runs and that the address is right"));
}

void EtcdWatches::Start(EtcdWatcher& watcher) {
  watcher.id_ = next_id_++;
  watcher.confirmed_ = false;
  watchers_[watcher.id_] = &watcher;
  Send(watcher.CreateRequest(watcher.id_));
}

void EtcdWatches::Stop(EtcdWatcher& watcher) {
  if (watchers_.erase(watcher.id_) == 0) return;
  etcdserverpb::WatchRequest message;
  message.mutable_cancel_request()->set_watch_id(watcher.id_);
  Send(std::move(message));
}

void EtcdWatches::Send(etcdserverpb::WatchRequest request) {
  // Without a connection there is nothing to say: a new one begins by asking for all watches.
  if (connection_ != nullptr) outgoing_.push_back(std::move(request));
  changed_.SignalAll();
}

void EtcdWatches::Remove(EtcdWatcher& watcher) {
  MutexLock lock(mu_);
  Stop(watcher);
  while (calling_ == &watcher) changed_.Wait(mu_);
}

void EtcdWatches::RunSender() {
  while (true) {
    std::shared_ptr<Connection> connection;
    etcdserverpb::WatchRequest message;
    {
      MutexLock lock(mu_);
      while (!stopping_ && outgoing_.empty()) changed_.Wait(mu_);
      if (stopping_) return;
      connection = connection_;
      message = std::move(outgoing_.front());
      outgoing_.pop_front();
    }
    if (connection == nullptr) continue;
    MutexLock lock(connection->write_mu);
    // A failure shows in the reader, which then connects anew.
    if (!connection->finished) connection->stream->Write(message);
  }
}

void EtcdWatches::RunReader() {
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
  auto connection = std::make_shared<Connection>();
  TY_ASSIGN_OR_RETURN(connection->token, client_.Prepare(connection->context));
  // A member that has lost its cluster ends the stream instead of going silent.
  connection->context.AddMetadata("hasleader", "true");
  connection->stream = member.watch->Watch(&connection->context);
  MutexLock lock(mu_);
  if (stopping_) {
    connection->context.TryCancel();
    return absl::CancelledError("the store is closing");
  }
  connection_ = std::move(connection);
  outgoing_.clear();
  for (auto& [id, watcher] : watchers_) {
    watcher->confirmed_ = false;
    outgoing_.push_back(watcher->CreateRequest(id));
  }
  changed_.SignalAll();
  return absl::OkStatus();
}

// Until the stream ends; says why it did.
absl::Status EtcdWatches::Read() {
  std::shared_ptr<Connection> connection;
  {
    MutexLock lock(mu_);
    connection = connection_;
  }
  etcdserverpb::WatchResponse response;
  while (connection->stream->Read(&response)) Deliver(response);
  {
    MutexLock lock(mu_);
    connection_ = nullptr;
    outgoing_.clear();
  }
  MutexLock lock(connection->write_mu);
  connection->finished = true;
  const grpc::Status status = connection->stream->Finish();
  if (status.error_code() == grpc::StatusCode::UNAUTHENTICATED) {
    // Of users there will be a new token; without any, the next stream would be refused like this one.
    if (client_.options().user.empty()) return ToStatus(status, EtcdOutcome::kRefused, client_.where());
    client_.ForgetToken(connection->token);
  }
  return {static_cast<absl::StatusCode>(status.error_code()), status.error_message()};
}

// A watch that is refused may be answered without its id; watches are answered in the order in which they
// were asked for.
EtcdWatcher* EtcdWatches::Find(const etcdserverpb::WatchResponse& response) {
  if (const auto it = watchers_.find(response.watch_id()); it != watchers_.end()) return it->second;
  if (response.watch_id() != -1 || !response.created()) return nullptr;  // cancelled meanwhile
  const auto oldest =
      std::ranges::find_if(watchers_, [](const auto& entry) { return !entry.second->confirmed_; });
  return oldest == watchers_.end() ? nullptr : oldest->second;
}

void EtcdWatches::Refuse(EtcdWatcher& watcher, const etcdserverpb::WatchResponse& response) {
  if (response.compact_revision() > 0) {
    watcher.failure_ = CompactedError(watcher.next_revision_, response.compact_revision());
  } else if (!client_.options().user.empty() && !std::exchange(watcher.renewed_, true)) {
    // It may be that the token of this stream has expired: a new stream has a new one.
    client_.ForgetToken(connection_->token);
    connection_->context.TryCancel();
    return;
  } else {
    watcher.failure_ = ToStatus({grpc::StatusCode::FAILED_PRECONDITION, response.cancel_reason()},
                                EtcdOutcome::kRefused, client_.where());
  }
  watchers_.erase(watcher.id_);
}

void EtcdWatches::Deliver(etcdserverpb::WatchResponse& response) {
  EtcdWatcher* ready = nullptr;
  {
    MutexLock lock(mu_);
    answered_ = true;
    failures_ = 0;
    last_failure_ = absl::OkStatus();
    EtcdWatcher* const watcher = Find(response);
    if (watcher == nullptr) return;
    bool call = false;
    if (response.canceled()) {
      Refuse(*watcher, response);
      call = !watcher->failure_.ok() && watcher->Announce();
    } else if (response.created()) {
      watcher->Confirm(response.header().revision());
    } else {
      call = watcher->Take(response);
      if (watcher->queued_events_ > EtcdWatcher::kMaxQueued) {
        watcher->behind_ = true;
        Stop(*watcher);
      }
    }
    if (call) ready = calling_ = watcher;
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
