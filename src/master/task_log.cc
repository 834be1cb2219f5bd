#include "master/task_log.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "tasks/codec.h"

namespace trainyard::master {
namespace {

// Above this a batch waits for the next write; below what the store takes.
constexpr std::size_t kMostBatchBytes = kv::kMaxRequestBytes / 2;
constexpr int kNumberDigits = 12;
constexpr std::int64_t kPage = 500;

// "12 STATE": the last batch that is in the state.
std::string PrintSnapshot(std::int64_t number, std::string_view state) { return StrCat(number, " ", state); }

absl::Status DamagedLog(std::string_view key, const absl::Status& why) {
  return absl::DataLossError(StrCat("the task log's ", key, " is damaged: ", Message(why)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<TaskLog>> TaskLog::Open(kv::Store& store, Options options) {
  std::unique_ptr<TaskLog> log(new TaskLog(store, std::move(options)));
  TY_RETURN_IF_ERROR(log->TakeOver());
  TY_RETURN_IF_ERROR(log->Rebuild());
  return log;
}

TaskLog::~TaskLog() {
  const MutexLock lock(mu_);
  while (writing_) changed_.Wait(mu_);
}

absl::Status TaskLog::TakeOver() {
  return store_.Put(StrCat(options_.prefix, "/owner"), options_.owner).status();
}

absl::Status TaskLog::Rebuild() {
  queue_ = tasks::Queue(options_.queue);
  const std::string snapshot_key = StrCat(options_.prefix, "/snapshot");
  TY_ASSIGN_OR_RETURN(const kv::GetResult snapshot, store_.Get(snapshot_key));
  std::int64_t number = 0;
  std::int64_t batches = 0;
  if (snapshot.kv) {
    was_empty_ = false;
    const std::string_view value = snapshot.kv->value;
    const std::size_t space = value.find(' ');
    const auto parsed = ParseNumber<std::int64_t>(value.substr(0, std::min(space, value.size())));
    if (!parsed || space == std::string_view::npos)
      return DamagedLog("snapshot", absl::DataLossError("it has no number"));
    auto state = tasks::DecodeState(value.substr(space + 1));
    if (!state.ok()) return DamagedLog("snapshot", state.status());
    queue_ = tasks::Queue(*state);
    number = *parsed;
  }
  for (;;) {
    TY_ASSIGN_OR_RETURN(
        const kv::RangeResult page,
        store_.Range({.range = kv::KeyRange::Between(LogKey(number + 1), StrCat(options_.prefix, "/log0")),
                      .limit = kPage}));
    for (const kv::KeyValue& batch : page.kvs) {
      was_empty_ = false;
      if (batch.key != LogKey(number + 1))
        return DamagedLog(batch.key,
                          absl::DataLossError(StrCat("the batch before it, ", number + 1, ", is missing")));
      std::string_view rest = batch.value;
      while (!rest.empty()) {
        const auto command = tasks::TakeCommand(rest);
        if (!command.ok()) return DamagedLog(batch.key, command.status());
        queue_.Apply(*command);
        ++commands_;
      }
      ++number;
      ++batches;
    }
    if (!page.more) break;
  }
  const MutexLock lock(mu_);
  number_ = number;
  since_snapshot_ = batches;
  return absl::OkStatus();
}

std::string TaskLog::LogKey(std::int64_t number) const {
  std::string digits = std::to_string(number);
  digits.insert(0, kNumberDigits - std::min<std::size_t>(kNumberDigits, digits.size()), '0');
  return StrCat(options_.prefix, "/log/", digits);
}

TaskLog::Batch& TaskLog::Open() {
  const std::size_t taken = front_is_written_ ? 1 : 0;
  // A state stands for all commands before it, so those after it are another batch's.
  const bool full = batches_.size() > taken &&
                    (batches_.back().commands.size() > kMostBatchBytes || !batches_.back().snapshot.empty());
  if (batches_.size() == taken || full) batches_.emplace_back();
  return batches_.back();
}

tasks::Answer TaskLog::Apply(const tasks::Command& command, Durable durable) {
  const tasks::Answer answer = queue_.Apply(command);
  ++commands_;
  {
    const MutexLock lock(mu_);
    Batch& batch = Open();
    tasks::Append(command, batch.commands);
    if (durable) batch.waiting.push_back(std::move(durable));
    if (since_snapshot_ >= options_.batches_per_snapshot) {
      std::string snapshot = tasks::Encode(queue_.Save());
      since_snapshot_ = 0;
      // One that is too large for the store is left out: the log is as good, and longer.
      if (snapshot.size() <= kMostBatchBytes) {
        batch.snapshot = std::move(snapshot);
        batch.commands.clear();
      }
    }
  }
  Pump();
  return answer;
}

void TaskLog::WhenDurable(Durable durable) {
  {
    const MutexLock lock(mu_);
    if (broken_) return;
    if (!batches_.empty()) {
      batches_.back().waiting.push_back(std::move(durable));
      return;
    }
  }
  durable();
}

void TaskLog::Replace(const tasks::Queue::State& state, Durable durable) {
  queue_ = tasks::Queue(state);
  {
    const MutexLock lock(mu_);
    since_snapshot_ = 0;
    batches_.emplace_back();
    batches_.back().snapshot = tasks::Encode(state);
    if (durable) batches_.back().waiting.push_back(std::move(durable));
  }
  Pump();
}

kv::TxnRequest TaskLog::Request(const Batch& batch) const {
  kv::TxnRequest request;
  request.compares.push_back(kv::ValueIs(StrCat(options_.prefix, "/owner"), options_.owner));
  const std::string key = LogKey(number_ + 1);
  if (batch.snapshot.empty()) {
    request.then.push_back(kv::PutOp{key, batch.commands});
    return request;
  }
  request.then.push_back(kv::DeleteOp{kv::KeyRange::Between(LogKey(0), key)});
  request.then.push_back(
      kv::PutOp{StrCat(options_.prefix, "/snapshot"), PrintSnapshot(number_ + 1, batch.snapshot)});
  return request;
}

void TaskLog::Gather() {
  const MutexLock lock(mu_);
  gathering_ = true;
}

void TaskLog::Settle() {
  {
    const MutexLock lock(mu_);
    if (!gathering_) return;
    gathering_ = false;
  }
  Pump();
}

void TaskLog::Pump() {
  kv::TxnRequest request;
  {
    const MutexLock lock(mu_);
    if (writing_ || stalled_ || broken_ || gathering_ || batches_.empty()) return;
    writing_ = front_is_written_ = true;
    request = Request(batches_.front());
  }
  Write(std::move(request));
}

// A store without a thread answers while this still runs, so no lock is held.
void TaskLog::Write(kv::TxnRequest request) {
  store_.TxnAsync(std::move(request),
                  [this](const absl::StatusOr<kv::TxnResult>& result) { OnWritten(result); });
}

void TaskLog::OnWritten(const absl::StatusOr<kv::TxnResult>& result) {
  absl::Status broken = result.status();
  if (result.ok() && !result->succeeded) {
    broken = absl::FailedPreconditionError(
        StrCat("another process has taken the task log ", options_.prefix, " over"));
  }
  const bool away =
      absl::IsUnavailable(broken) || absl::IsUnknown(broken) || absl::IsDeadlineExceeded(broken);
  std::vector<Durable> waiting;
  {
    const MutexLock lock(mu_);
    if (broken.ok()) {
      ++number_;
      ++since_snapshot_;
      if (!batches_.front().snapshot.empty()) snapshot_revision_ = result->revision;
      waiting = std::move(batches_.front().waiting);
      batches_.pop_front();
    }
    front_is_written_ = false;
    stalled_ = away;  // the same batch may be written twice: it has its number
    broken_ = !broken.ok() && !away;
  }
  for (const Durable& durable : waiting) durable();
  if (!broken.ok() && !away && options_.on_broken) options_.on_broken(broken);
  kv::TxnRequest next;
  {
    const MutexLock lock(mu_);
    if (!broken.ok() || gathering_ || batches_.empty()) {
      // The last look at the log: whoever waits to destroy it may.
      writing_ = false;
      changed_.SignalAll();
      return;
    }
    front_is_written_ = true;
    next = Request(batches_.front());
  }
  Write(std::move(next));
}

void TaskLog::Tend() {
  kv::Revision revision = 0;
  {
    const MutexLock lock(mu_);
    revision = std::exchange(snapshot_revision_, 0);
    stalled_ = false;
  }
  // What is not forgotten now is with the next one.
  if (revision > 0) store_.Compact(revision).IgnoreError();
  Pump();
}

}  // namespace trainyard::master
