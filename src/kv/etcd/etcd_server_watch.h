// The watches of one client of etcd's on a Store: what it asks for, and what it is answered.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "kv/etcd/etcd.pb.h"
#include "kv/etcd/etcd_server_calls.h"
#include "kv/store.h"

namespace trainyard::kv {

// One watch:
//
//   create ──▶ [watching] ── events, progress ──▶ …  ── cancel, or its history is compacted ──▶ gone
//                 │    ▲
//          Park() ▼    │ Next()          parked, it holds where it was, and little more
//               [parked]
class WatchSession final : public ServedSession<etcdserverpb::WatchRequest, etcdserverpb::WatchResponse> {
 public:
  static constexpr std::size_t kMaxWatches = 10'000;

  // Which progress the client is told.
  enum class Progress {
    kAsAsked,
    kAlways,  // also who has not asked: what is written shows that the client is still there
  };
  // `wake` is called, from any thread, when Next() may have something that it had not; it must not block or
  // call this. `calls` must outlive this.
  WatchSession(EtcdCalls& calls, Progress progress, std::function<void()> wake);
  ~WatchSession() override;

  void Handle(const etcdserverpb::WatchRequest& request) override;
  // Answers to requests first, then the watches in turn. A message has whole revisions, and about as many
  // bytes at most as a request may have, unless one revision alone has more.
  std::optional<absl::StatusOr<etcdserverpb::WatchResponse>> Next() override;
  bool Full() const override { return answers_.size() + progress_asked_.size() >= kMaxAnswers; }
  void Park() override;
  bool EndsWithRequests() const override { return false; }

 private:
  static constexpr std::size_t kMaxAnswers = 64;

  struct Watch {
    std::int64_t id = 0;
    WatchRequest request;
    bool tells_progress = false;
    bool no_puts = false;
    bool no_deletes = false;
    std::unique_ptr<Watcher> watcher;  // null: parked
    WatchBatch batch;                  // what was taken from the watcher last
    std::size_t shown = 0;             // events of it that have been answered
    Revision next_revision = 0;        // the first that the client has not been shown
    bool queued = false;               // it is in queue_
  };

  void Create(const etcdserverpb::WatchCreateRequest& create);
  void Cancel(std::int64_t id);
  void AskProgress();
  void Refuse(std::string_view reason);
  absl::Status Open(Watch& watch);
  void End(std::int64_t id, const absl::Status& why);
  static void Shorten(Watch& watch);
  void Enqueue(Watch& watch);
  void QueueReady();
  // Makes one step with the watch whose turn it is; what it has to say, if anything.
  std::optional<etcdserverpb::WatchResponse> Step();
  absl::StatusOr<bool> Refill(Watch& watch);
  etcdserverpb::WatchResponse TakePart(Watch& watch);
  void AnswerProgress();

  EtcdCalls& calls_;
  const Progress progress_;
  const std::function<void()> wake_;
  absl::btree_map<std::int64_t, std::unique_ptr<Watch>> watches_;
  std::int64_t next_id_ = 0;
  std::deque<etcdserverpb::WatchResponse> answers_;
  std::deque<Revision> progress_asked_;  // told when every watch has come so far
  std::deque<std::int64_t> queue_;       // watches that may have something
  Mutex mu_;
  std::vector<std::int64_t> ready_ TY_GUARDED_BY(mu_);  // whose on_ready was called
};

}  // namespace trainyard::kv
