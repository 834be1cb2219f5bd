// A store in this process: the state in memory, its records in a Journal. MemoryStore and EmbeddedStore are
// this over two journals.
//
// Writers that come while a flush is under way wait together and go into the next one as a group:
//
//   first writer of a group ── waits for its turn ── evaluates all of the group ── Flush() ── publishes ──
//   wakes all later writers of it     ── wait for the group's end
//   ────────────────────────────────────────────────┘
//
// Readers see only what is published, so nothing that a crash could take back.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/mutex.h"
#include "kv/journal.h"
#include "kv/local_watcher.h"
#include "kv/mvcc.h"
#include "kv/range_map.h"
#include "kv/store.h"

namespace trainyard::kv {

class LocalStore : public Store, private WatchSource {
 public:
  struct Options {
    Clock* clock = &Clock::System();
    std::string url;
    // With a keeper thread leases end and progress is told by themselves, and TxnAsync() returns at once.
    // Without, both happen when the store is next called, and nothing happens behind a simulation's back.
    bool keeper = true;
    absl::Duration progress_interval = absl::Seconds(10);
    std::optional<std::uint64_t> lease_seed;  // of the leases' ids; unset: the system's entropy
  };

  LocalStore(std::unique_ptr<Journal> journal, Options options);
  ~LocalStore() override;

  absl::StatusOr<GetResult> Get(std::string_view key, Revision revision) override;
  absl::StatusOr<RangeResult> Range(const RangeRequest& request) override;
  absl::StatusOr<TxnResult> Txn(const TxnRequest& request) override;
  void TxnAsync(TxnRequest request, TxnDone done) override;
  absl::StatusOr<std::unique_ptr<Watcher>> Watch(WatchRequest request) override;
  absl::StatusOr<Lease> GrantLease(absl::Duration ttl) override;
  absl::StatusOr<absl::Duration> KeepAlive(LeaseId lease) override;
  absl::Status RevokeLease(LeaseId lease) override;
  absl::Status Compact(Revision revision) override;
  std::string Url() const override { return options_.url; }

  // Ends leases whose time has come and tells progress. Without a keeper every other call does it first.
  void Tick();

 protected:
  Journal& journal() { return *journal_; }
  // Before the first call: puts back a record that the journal holds.
  void Replay(const Record& record, const Location& location);
  // After the last Replay().
  void StartKeeper();
  // Before the journal goes.
  void StopKeeper();
  // Runs `work` while nobody stages or flushes. Readers go on.
  void WithoutWriters(const std::function<void()>& work);
  // Runs `work` with the state locked.
  void WithState(const std::function<void(Mvcc&)>& work);
  // A compaction has released records; called by the thread that compacted, no lock held.
  virtual void AfterCompact() {}

 private:
  struct Grant {
    LeaseId id;
    absl::Duration ttl;
  };
  struct Revoke {
    LeaseId id;
  };
  struct Compaction {
    Revision revision;
  };
  using Command = std::variant<const TxnRequest*, Grant, Revoke, Compaction>;

  // One command on its way through a group.
  struct Pending {
    Command command;
    absl::StatusOr<TxnResult> result = absl::UnknownError("not done");
    Changes changes;
    std::vector<Location> locations;
    TxnRequest request;  // of an asynchronous one, whose caller does not wait
    TxnDone done;
  };
  struct Group {
    std::vector<Pending*> members;
    std::atomic<bool> over = false;  // waited on without a mutex: a whole group wakes at once
  };

  absl::StatusOr<TxnResult> Commit(Command command);
  std::shared_ptr<Group> Join(Pending& pending, bool& leads) TY_REQUIRES(mu_);
  void Lead(Group& group);
  void TakeTurn() TY_REQUIRES(mu_);
  void EndTurn() TY_REQUIRES(mu_);
  void Evaluate(Pending& pending) TY_REQUIRES(mu_);
  void Finish(Group& group, const absl::Status& flushed) TY_REQUIRES(mu_);
  // What each watcher is to be told of.
  using Deliveries = std::map<LocalWatcher*, std::vector<std::shared_ptr<const WatchEvent>>>;
  void FindWatchers(const Record& record, Deliveries& deliveries) const TY_REQUIRES(mu_);
  void Deliver(const Deliveries& deliveries) TY_REQUIRES(mu_);
  std::optional<WatchEvent> EventOf(const Record& record, bool with_previous) const TY_REQUIRES(mu_);
  void CallReadyWatchers() TY_EXCLUDES(mu_);
  void EndDueLeases();
  void TellProgress();
  void KeepHouse();
  void TickWithoutKeeper() override;

  void CatchUp(LocalWatcher& watcher) override;
  void Forget(LocalWatcher& watcher) override;
  absl::StatusOr<std::vector<PastEvent>> PastSince(const WatchRequest& request, Revision from)
      TY_REQUIRES(mu_);

  const Options options_;
  const std::unique_ptr<Journal> journal_;
  IdSource lease_ids_;

  Mutex mu_;
  Mvcc state_ TY_GUARDED_BY(mu_);
  Revision published_ TY_GUARDED_BY(mu_) = 1;
  std::shared_ptr<Group> forming_ TY_GUARDED_BY(mu_);  // takes members until its leader's turn comes
  bool turn_taken_ TY_GUARDED_BY(mu_) = false;
  CondVar turn_ended_;

  RangeMap<LocalWatcher> watchers_ TY_GUARDED_BY(mu_);
  std::vector<LocalWatcher*> ready_ TY_GUARDED_BY(mu_);  // whose on_ready is to be called
  int calling_ TY_GUARDED_BY(mu_) = 0;                   // threads that are calling one
  CondVar called_;

  SteadyTime next_progress_ TY_GUARDED_BY(mu_);
  SteadyTime lease_retry_ TY_GUARDED_BY(mu_);  // no lease is ended before: ending one has just failed
  std::unique_ptr<Alarm> alarm_;
  std::shared_ptr<Group> led_by_keeper_ TY_GUARDED_BY(mu_);
  std::vector<std::unique_ptr<Pending>> finished_ TY_GUARDED_BY(mu_);  // asynchronous, to be told
  bool stopping_ TY_GUARDED_BY(mu_) = false;
  std::thread keeper_;
};

}  // namespace trainyard::kv
