#include "ps/outputs.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <thread>

#include "base/check.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/text.h"
#include "ps/output_lines.h"

namespace trainyard::ps {
namespace {

constexpr std::size_t kMaxPuts = 100;               // of one transaction
constexpr std::size_t kMaxBytes = kMaxOutputBytes;  // likewise
constexpr std::int64_t kOutputPage = 1000;          // keys of one answer
constexpr absl::Duration kFirstRetry = absl::Milliseconds(100);
constexpr absl::Duration kLastRetry = absl::Seconds(5);
constexpr absl::Duration kGrace = absl::Seconds(1);  // for what is left in the end

// What comes behind the number in a key of an output; 0 if it is no such key.
std::int64_t NextAfter(std::string_view key, std::string_view prefix) {
  constexpr std::int64_t kMost = INT64_MAX / 2;
  const auto number = ParseNumber<std::int64_t>(key.substr(prefix.size()));
  return number && *number >= 0 && *number < kMost ? *number + 1 : 0;
}

// The number behind those of all outputs of the graph.
absl::StatusOr<std::int64_t> FindNextNumber(kv::Store& store, const JobKeys& keys, std::string_view graph) {
  const std::string prefix = keys.Outputs(graph);
  kv::RangeRequest request{.range = kv::KeyRange::Prefix(prefix), .limit = kOutputPage, .keys_only = true};
  std::int64_t next = 0;
  while (true) {
    TY_ASSIGN_OR_RETURN(const kv::RangeResult page, store.Range(request));
    for (const kv::KeyValue& kv : page.kvs) next = std::max(next, NextAfter(kv.key, prefix));
    if (!page.more) return next;
    request.range.begin = page.kvs.back().key + '\0';
  }
}

}  // namespace

absl::Status AppendOutputs(kv::Store& store, const JobKeys& keys, std::string_view graph,
                           const std::vector<std::string>& outputs) {
  TY_ASSIGN_OR_RETURN(std::int64_t next, FindNextNumber(store, keys, graph));
  for (std::size_t i = 0; i < outputs.size();) {
    const std::string key = keys.Output(graph, next);
    TY_ASSIGN_OR_RETURN(const kv::TxnResult result,
                        store.Txn({.compares = {kv::Absent(key)}, .then = {kv::PutOp{key, outputs[i]}}}));
    if (result.succeeded) ++i;
    ++next;  // a number that another writer has taken is left out
  }
  return absl::OkStatus();
}

// One thread writes; what it writes is `batch_`, under the same numbers until it is known to be written.
class Outputs::Writer {
 public:
  Writer(kv::Store& store, Clock& clock, JobKeys keys, std::string graph, OutputOptions options)
      : store_(store),
        clock_(clock),
        keys_(std::move(keys)),
        graph_(std::move(graph)),
        options_(options),
        alarm_(clock.NewAlarm()),
        lines_(clock, graph_),
        next_write_(clock.Steady()) {
    TY_CHECK(options_.history > 0 && options_.most_waiting > 0, "outputs are kept");
    thread_ = std::thread([this] { Work(); });
  }

  ~Writer() {
    {
      const MutexLock lock(mu_);
      stop_at_ = clock_.Steady() + kGrace;
      wanted_ = appended_;
    }
    alarm_->Notify();
    thread_.join();
    const MutexLock lock(mu_);
    if (!queue_.empty() || !batch_.empty()) {
      log::Warn("outputs are lost: the store cannot be written to",
                {{"graph", graph_}, {"count", queue_.size() + batch_.size()}, {"error", failure_}});
    }
  }

  void Append(const Output& output) {
    lines_.Add(output);
    std::string text = EncodeOutput(output);
    const MutexLock lock(mu_);
    ++appended_;
    queue_.push_back(std::move(text));
    if (queue_.size() > options_.most_waiting) {
      queue_.pop_front();
      ++dropped_;
      TellWaiting();
    }
    if (queue_.size() == 1) alarm_->Notify();
  }

  std::int64_t CountUnwritten() {
    const MutexLock lock(mu_);
    return static_cast<std::int64_t>(queue_.size() + batch_.size());
  }

  absl::Status Flush(absl::Duration timeout) {
    const SteadyTime deadline = clock_.Steady() + timeout;
    const std::unique_ptr<Alarm> written = clock_.NewAlarm();
    std::int64_t target = 0;
    {
      const MutexLock lock(mu_);
      target = appended_;
      waiting_.insert(written.get());
      wanted_ = target;
    }
    alarm_->Notify();
    absl::Status status = AwaitSettled(target, deadline, *written);
    const MutexLock lock(mu_);
    waiting_.erase(written.get());
    return status;
  }

 private:
  absl::Status AwaitSettled(std::int64_t target, SteadyTime deadline, Alarm& written) {
    while (true) {
      {
        const MutexLock lock(mu_);
        if (Oldest() >= target) return absl::OkStatus();
        if (clock_.Steady() >= deadline) {
          return absl::DeadlineExceededError(StrCat("outputs of ", graph_, " are not written yet",
                                                    failure_.ok() ? "" : ": ", Message(failure_)));
        }
      }
      written.WaitUntil(deadline);
    }
  }

  void Work() {
    while (true) {
      const SteadyTime now = clock_.Steady();
      SteadyTime due;
      {
        const MutexLock lock(mu_);
        const bool idle = queue_.empty() && batch_.empty();
        if (stop_at_ && (idle || now >= *stop_at_)) return;
        due = idle ? SteadyTime::Never() : Oldest() < wanted_ ? now : next_write_;
        if (stop_at_) due = std::min(due, *stop_at_);
      }
      if (now < due) {
        alarm_->WaitUntil(due);
      } else {
        WriteWhatIsThere();
      }
    }
  }

  // All that is there now, in as many transactions as it takes, or until one fails. What comes meanwhile
  // comes together for the next time.
  void WriteWhatIsThere() {
    std::int64_t goal = 0;
    {
      const MutexLock lock(mu_);
      goal = appended_;
      wanted_ = 0;
      next_write_ = clock_.Steady() + options_.every;
    }
    absl::Status status = FindNext();
    while (status.ok() && TakeBatch(goal)) status = WriteBatch();
    std::int64_t dropped = 0;
    {
      const MutexLock lock(mu_);
      failures_ = status.ok() ? 0 : failures_ + 1;
      failure_ = status;
      if (!status.ok()) next_write_ = clock_.Steady() + RetryAfter(failures_);
      dropped = std::exchange(dropped_, 0);
    }
    if (dropped > 0)
      log::Warn("outputs were dropped: too many wait", {{"graph", graph_}, {"count", dropped}});
  }

  static absl::Duration RetryAfter(int failures) {
    absl::Duration wait = kFirstRetry;
    for (int i = 1; i < failures && wait < kLastRetry; ++i) wait *= 2;
    return std::min(wait, kLastRetry);
  }

  // Where an earlier incarnation ended, or another one of this graph that still lives.
  absl::Status FindNext() {
    if (next_) return absl::OkStatus();
    TY_ASSIGN_OR_RETURN(next_, FindNextNumber(store_, keys_, graph_));
    return absl::OkStatus();
  }

  // Fills the batch with what comes before the goal, if it is empty: one that could not be written stays as
  // it is. False: there is nothing to write.
  bool TakeBatch(std::int64_t goal) {
    const MutexLock lock(mu_);
    if (!batch_.empty()) return true;
    batch_begin_ = Oldest();
    const std::int64_t most =
        std::min({static_cast<std::int64_t>(kMaxPuts), options_.history, goal - batch_begin_});
    std::size_t bytes = 0;
    while (static_cast<std::int64_t>(batch_.size()) < most) {
      bytes += queue_.front().size();
      if (!batch_.empty() && bytes > kMaxBytes) break;
      batch_.push_back(std::move(queue_.front()));
      queue_.pop_front();
    }
    return !batch_.empty();
  }

  // All of the batch and the deletion of what it pushes out, or nothing.
  absl::Status WriteBatch() {
    const std::int64_t first = *next_;
    const std::int64_t end = first + static_cast<std::int64_t>(batch_.size());
    kv::TxnRequest request;
    request.compares = {kv::Absent(keys_.Output(graph_, first))};
    for (std::size_t i = 0; i < batch_.size(); ++i) {
      request.then.emplace_back(
          kv::PutOp{keys_.Output(graph_, first + static_cast<std::int64_t>(i)), batch_[i]});
    }
    if (end > options_.history) {
      request.then.emplace_back(kv::DeleteOp{
          kv::KeyRange::Between(keys_.Outputs(graph_), keys_.Output(graph_, end - options_.history))});
    }
    request.otherwise = {
        kv::GetOp{{.range = kv::KeyRange::Between(keys_.Output(graph_, first), keys_.Output(graph_, end))}}};
    TY_ASSIGN_OR_RETURN(const kv::TxnResult result, store_.Txn(request));
    if (!result.succeeded && !IsOurs(result)) {
      // Another incarnation has written under that number.
      next_.reset();
      return FindNext();
    }
    next_ = end;
    Settle();
    return absl::OkStatus();
  }

  // Whether all of the batch is there: an answer was lost, and the transaction was not. The lead, which takes
  // this trainer for lost, may have written a part of it.
  bool IsOurs(const kv::TxnResult& result) const {
    const auto& found = std::get<kv::RangeResult>(result.results.at(0)).kvs;
    return std::ranges::equal(found, batch_, {}, &kv::KeyValue::value);
  }

  void Settle() {
    const MutexLock lock(mu_);
    batch_.clear();
    TellWaiting();
  }

  void TellWaiting() TY_REQUIRES(mu_) {
    for (Alarm* alarm : waiting_) alarm->Notify();
  }

  // How many were appended before the oldest one that is neither written nor dropped.
  std::int64_t Oldest() const TY_REQUIRES(mu_) {
    return batch_.empty() ? appended_ - static_cast<std::int64_t>(queue_.size()) : batch_begin_;
  }

  kv::Store& store_;
  Clock& clock_;
  const JobKeys keys_;
  const std::string graph_;
  const OutputOptions options_;
  const std::unique_ptr<Alarm> alarm_;

  OutputLines lines_;  // of the thread that appends

  std::optional<std::int64_t> next_;  // sequence number; the thread's own
  std::vector<std::string> batch_;    // what is being written; changed by the thread alone, under mu_

  Mutex mu_;
  std::deque<std::string> queue_ TY_GUARDED_BY(mu_);
  std::int64_t appended_ TY_GUARDED_BY(mu_) = 0;
  std::int64_t batch_begin_ TY_GUARDED_BY(mu_) = 0;  // how many were appended before the batch
  std::int64_t dropped_ TY_GUARDED_BY(mu_) = 0;      // since it was last logged
  std::set<Alarm*> waiting_ TY_GUARDED_BY(mu_);      // for Oldest() to rise
  SteadyTime next_write_ TY_GUARDED_BY(mu_);
  std::int64_t wanted_ TY_GUARDED_BY(mu_) = 0;  // so many at once, asked for since the last try began
  int failures_ TY_GUARDED_BY(mu_) = 0;         // in a row
  absl::Status failure_ TY_GUARDED_BY(mu_);
  std::optional<SteadyTime> stop_at_ TY_GUARDED_BY(mu_);  // set: what is left is written until then
  std::thread thread_;
};

Outputs::Outputs(kv::Store& store, Clock& clock, JobKeys keys, std::string graph, OutputOptions options)
    : writer_(std::make_unique<Writer>(store, clock, std::move(keys), std::move(graph), options)) {}

Outputs::~Outputs() = default;

void Outputs::Append(const Output& output) { writer_->Append(output); }

std::int64_t Outputs::CountUnwritten() const { return writer_->CountUnwritten(); }

absl::Status Outputs::Flush(absl::Duration timeout) { return writer_->Flush(timeout); }

}  // namespace trainyard::ps
