#include "client/gateway_watch.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::client {
namespace {

constexpr absl::Duration kFirstRewatchPause = absl::Milliseconds(50);
constexpr absl::Duration kLongestRewatchPause = absl::Seconds(2);

absl::Status Cancelled() { return absl::CancelledError("the watch was cancelled"); }

// A connection that ended; the watch goes on over another one.
absl::Status Broken(const char* why) { return absl::UnavailableError(why); }

bool IsBrokenWatch(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsUnknown(status);
}

}  // namespace

GatewayWatch::GatewayWatch(GatewayClient& client, kv::WatchRequest request)
    : client_(client),
      request_(std::move(request)),
      next_revision_(request_.start_revision),
      confirm_by_(Clock::System().Steady() + client.timeout()) {}

// ---- the caller

absl::Status GatewayWatch::AwaitConfirmed() {
  MutexLock lock(mu_);
  while (!confirmed_ && failure_.ok()) changed_.Wait(mu_);
  // A start that is compacted is told by Next(), as everywhere.
  return confirmed_ || kv::IsCompacted(failure_) ? absl::OkStatus() : failure_;
}

absl::StatusOr<kv::WatchBatch> GatewayWatch::Next(absl::Duration timeout) {
  const SteadyTime deadline = Clock::System().Steady() + timeout;
  MutexLock lock(mu_);
  while (queue_.empty()) {
    if (!failure_.ok()) return failure_;
    if (!changed_.WaitUntil(mu_, deadline) && queue_.empty() && failure_.ok()) {
      announced_ = false;
      return absl::DeadlineExceededError("no event in time");
    }
  }
  kv::WatchBatch batch = std::move(queue_.front());
  queue_.pop_front();
  queued_events_ -= batch.events.size();
  changed_.SignalAll();
  return batch;
}

void GatewayWatch::Cancel() {
  std::shared_ptr<kube::BodyReader> body;
  {
    MutexLock lock(mu_);
    cancelled_ = true;
    queue_.clear();
    queued_events_ = 0;
    failure_ = Cancelled();
    body = body_;
    changed_.SignalAll();
  }
  if (body != nullptr) body->Cancel();
}

void GatewayWatch::AwaitQuiet() {
  MutexLock lock(mu_);
  while (calling_) changed_.Wait(mu_);
}

// ---- the thread

void GatewayWatch::Run() {
  for (int failures = 1;; ++failures) {
    kv::Revision before = 0;
    {
      MutexLock lock(mu_);
      before = next_revision_;
    }
    const absl::Status ended = Follow();
    {
      MutexLock lock(mu_);
      if (next_revision_ != before) failures = 1;
    }
    if (!GoesOn(ended, failures)) return;
  }
}

bool GatewayWatch::GoesOn(const absl::Status& ended, int failures) {
  bool call = false;
  {
    MutexLock lock(mu_);
    if (cancelled_) return false;
    const bool late = !confirmed_ && (!client_.answered() || Clock::System().Steady() >= confirm_by_);
    if (!IsBrokenWatch(ended) || late) {
      failure_ = IsBrokenWatch(ended) ? absl::UnavailableError(ended.message()) : ended;
      changed_.SignalAll();
      // Else nobody has the watcher.
      call = (confirmed_ || kv::IsCompacted(failure_)) && Announce();
    }
    if (failure_.ok() && confirmed_ && failures == 1) {
      log::Debug("a watch lost its connection and goes on over another one",
                 {{"store", client_.url()}, {"error", ended}});
    }
  }
  if (call) CallOnReady();
  return Pause(std::min(kFirstRewatchPause * (1 << std::min(failures - 1, 10)), kLongestRewatchPause));
}

// False: there is nothing to go on with.
bool GatewayWatch::Pause(absl::Duration pause) {
  const SteadyTime until = Clock::System().Steady() + pause;
  MutexLock lock(mu_);
  while (failure_.ok() && changed_.WaitUntil(mu_, until)) {
  }
  return failure_.ok();
}

absl::Status GatewayWatch::Follow() {
  kv::Revision start = 0;
  {
    MutexLock lock(mu_);
    if (cancelled_) return Cancelled();
    start = next_revision_;
  }
  const std::string question = PrintWatch(request_, start);
  TY_ASSIGN_OR_RETURN(std::shared_ptr<kube::BodyReader> body,
                      client_.Open({.path = "/v3/watch", .body = question, .asked = start}));
  {
    MutexLock lock(mu_);
    if (cancelled_) return Cancelled();
    body_ = body;
  }
  absl::Status ended = ReadLines(*body);
  MutexLock lock(mu_);
  body_ = nullptr;
  return ended;
}

// How long to wait for the next bytes.
absl::Duration GatewayWatch::Patience() {
  MutexLock lock(mu_);
  if (confirmed_) return absl::InfiniteDuration();
  return std::max(confirm_by_ - Clock::System().Steady(), absl::ZeroDuration());
}

absl::Status GatewayWatch::ReadLines(kube::BodyReader& body) {
  std::string pending;
  while (true) {
    const absl::StatusOr<std::string> more = body.Read(Patience());
    if (absl::IsDeadlineExceeded(more.status())) return Broken("the store does not confirm the watch");
    TY_RETURN_IF_ERROR(more);
    if (more->empty()) return Broken("the store ended the watch");
    const std::size_t looked_at = pending.size();
    pending += *more;
    std::size_t begin = 0;
    for (std::size_t end = pending.find('\n', looked_at); end != std::string::npos;
         end = pending.find('\n', begin)) {
      TY_RETURN_IF_ERROR(TakeLine(std::string_view(pending).substr(begin, end - begin)));
      begin = end + 1;
    }
    pending.erase(0, begin);
  }
}

absl::Status GatewayWatch::TakeLine(std::string_view line) {
  if (line.empty() || line == "\r") return absl::OkStatus();
  const auto document = ParseJson(line);
  if (!document.ok()) return Broken("the store's answer is no JSON");
  if (const Document* error = Find(*document, {"error"})) {
    const std::int64_t code = NumberAt(*error, {"grpc_code"});
    return JudgeGrpc(code == 0 ? 2 : code, StringAt(*error, {"message"}), client_.where()).status;
  }
  const Document* result = Find(*document, {"result"});
  if (result == nullptr) return Broken("the store's answer has no result");
  TY_ASSIGN_OR_RETURN(WatchAnswer answer, ReadWatchAnswer(*result));
  return Take(std::move(answer));
}

absl::Status GatewayWatch::Take(WatchAnswer answer) {
  bool call = false;
  {
    MutexLock lock(mu_);
    if (cancelled_) return Cancelled();
    if (answer.canceled) return Refusal(answer);
    if (answer.created) Confirm(answer.revision);
    if (answer.events.empty()) {
      // Told for a start that is still to come, or by the answer that made the watch.
      if (answer.created || answer.revision + 1 < next_revision_) return absl::OkStatus();
      next_revision_ = answer.revision + 1;
      if (!request_.progress) return absl::OkStatus();
      queue_.push_back({.events = {}, .revision = answer.revision});
    } else {
      const kv::Revision last = answer.events.back().kv.mod_revision;
      next_revision_ = last + 1;
      queued_events_ += answer.events.size();
      queue_.push_back({.events = std::move(answer.events), .revision = last});
    }
    call = Announce();
  }
  if (call) CallOnReady();
  MutexLock lock(mu_);
  while (queued_events_ > kMostQueued && !cancelled_) changed_.Wait(mu_);
  return absl::OkStatus();
}

absl::Status GatewayWatch::Refusal(const WatchAnswer& answer) {
  if (answer.compacted > 0) return kv::CompactedError(next_revision_, answer.compacted);
  if (answer.reason.empty()) return Broken("the store ended the watch");
  constexpr auto kFailedPrecondition = static_cast<std::int64_t>(absl::StatusCode::kFailedPrecondition);
  return JudgeGrpc(kFailedPrecondition, answer.reason, client_.where(), next_revision_).status;
}

void GatewayWatch::Confirm(kv::Revision revision) {
  confirmed_ = true;
  if (next_revision_ == 0) next_revision_ = revision + 1;
  changed_.SignalAll();
}

bool GatewayWatch::Announce() {
  changed_.SignalAll();
  calling_ = !std::exchange(announced_, true) && request_.on_ready != nullptr;
  return calling_;
}

void GatewayWatch::CallOnReady() {
  request_.on_ready();
  MutexLock lock(mu_);
  calling_ = false;
  changed_.SignalAll();
}

}  // namespace trainyard::client
