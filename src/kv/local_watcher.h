// A watch on a local store: first what has happened already, read from the journal, then what happens.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "kv/journal.h"
#include "kv/key_index.h"
#include "kv/store.h"

namespace trainyard::kv {

class LocalWatcher;

// What a watcher needs of its store.
class WatchSource {
 public:
  virtual ~WatchSource() = default;
  // Calls watcher.Restart() with what the watcher has missed, atomically with what it will be pushed.
  virtual void CatchUp(LocalWatcher& watcher) = 0;
  virtual void Forget(LocalWatcher& watcher) = 0;
  // Time may have passed that nobody has noticed yet.
  virtual void TickWithoutKeeper() = 0;
};

// An event of the past, whose values are still to be read.
struct PastEvent {
  std::string key;
  Version version;
  std::shared_ptr<const RecordSource> source;
  std::optional<Version> previous;
  std::shared_ptr<const RecordSource> previous_source;
};

class LocalWatcher final : public Watcher {
 public:
  LocalWatcher(WatchSource& source, WatchRequest request) : source_(source), request_(std::move(request)) {}
  ~LocalWatcher() override { source_.Forget(*this); }

  absl::StatusOr<WatchBatch> Next(absl::Duration timeout) override;
  void Cancel() override;

  const WatchRequest& request() const { return request_; }
  Revision next_revision() const;

  // For the store, which holds its own lock. Those that return bool return true when on_ready is to be
  // called.
  void Restart(absl::StatusOr<std::vector<PastEvent>> past);
  // All that one group of transactions has for this watcher.
  bool Push(std::span<const std::shared_ptr<const WatchEvent>> events);
  bool PushProgress(Revision revision);
  void CallOnReady() const;

 private:
  // Beyond this many the watcher is left behind: its queue is dropped and read from the journal when it
  // comes.
  static constexpr std::size_t kMaxQueued = 8192;
  // Values read from the journal for one batch, at most, unless one revision has more.
  static constexpr std::size_t kMaxPastEvents = 1024;

  enum class Ready { kNo, kPast, kQueue, kBehind, kFailed };
  Ready ReadyState() const TY_REQUIRES(mu_);
  bool Announce() TY_REQUIRES(mu_);
  std::vector<PastEvent> TakePast() TY_REQUIRES(mu_);
  WatchBatch TakeQueue() TY_REQUIRES(mu_);
  absl::StatusOr<WatchBatch> Read(const std::vector<PastEvent>& past) const;

  WatchSource& source_;
  const WatchRequest request_;
  mutable Mutex mu_;
  CondVar changed_;
  absl::Status failure_ TY_GUARDED_BY(mu_);
  std::deque<PastEvent> past_ TY_GUARDED_BY(mu_);
  std::deque<std::shared_ptr<const WatchEvent>> queue_ TY_GUARDED_BY(mu_);
  Revision progress_ TY_GUARDED_BY(mu_) = 0;       // 0: none to tell
  Revision next_revision_ TY_GUARDED_BY(mu_) = 0;  // the first that has not been returned
  bool behind_ TY_GUARDED_BY(mu_) = false;
  bool announced_ TY_GUARDED_BY(mu_) = false;  // on_ready was called since Next() last found nothing
  bool active_ TY_GUARDED_BY(mu_) = false;     // there was an event since the last progress
};

}  // namespace trainyard::kv
