// All watches on an etcd cluster over one stream, which is made anew at another member when it breaks.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <thread>

#include <grpcpp/grpcpp.h>

#include "absl/container/btree_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "kv/etcd/etcd.grpc.pb.h"
#include "kv/etcd/etcd_client.h"
#include "kv/store.h"

namespace trainyard::kv {

class EtcdWatcher;

class EtcdWatches {
 public:
  // The client must outlive this.
  explicit EtcdWatches(EtcdClient& client) : client_(client) {}
  ~EtcdWatches();

  // Returns when etcd has confirmed the watch: what is written from then on will be seen.
  absl::StatusOr<std::unique_ptr<Watcher>> Watch(WatchRequest request);

 private:
  friend class EtcdWatcher;

  // One stream. A thread of its own writes to it: a write waits until etcd reads, and etcd may not read until
  // we do.
  struct Connection {
    grpc::ClientContext context;
    std::string token;
    std::unique_ptr<grpc::ClientReaderWriter<etcdserverpb::WatchRequest, etcdserverpb::WatchResponse>> stream;
    Mutex write_mu;
    bool finished TY_GUARDED_BY(write_mu) = false;
  };

  void Remove(EtcdWatcher& watcher);
  // Asks for the watcher's events from where it is, under a new id.
  void Start(EtcdWatcher& watcher) TY_REQUIRES(mu_);
  void Stop(EtcdWatcher& watcher) TY_REQUIRES(mu_);
  void Send(etcdserverpb::WatchRequest request) TY_REQUIRES(mu_);
  void RunReader();
  void RunSender();
  absl::Status Connect(EtcdMember& member);
  absl::Status Read();
  void Deliver(etcdserverpb::WatchResponse& response);
  EtcdWatcher* Find(const etcdserverpb::WatchResponse& response) TY_REQUIRES(mu_);
  void Refuse(EtcdWatcher& watcher, const etcdserverpb::WatchResponse& response) TY_REQUIRES(mu_);
  // Why no watch can be had now; OK while there is hope.
  absl::Status Hopeless(bool in_time) const TY_REQUIRES(mu_);
  void CallOnReady(EtcdWatcher* watcher);

  EtcdClient& client_;
  Mutex mu_;
  CondVar changed_;
  absl::btree_map<std::int64_t, EtcdWatcher*> watchers_ TY_GUARDED_BY(mu_);  // by the id that etcd knows
  std::int64_t next_id_ TY_GUARDED_BY(mu_) = 1;
  std::shared_ptr<Connection> connection_ TY_GUARDED_BY(mu_);  // null while there is none
  std::deque<etcdserverpb::WatchRequest> outgoing_ TY_GUARDED_BY(mu_);
  EtcdWatcher* calling_ TY_GUARDED_BY(mu_) = nullptr;  // whose on_ready runs
  bool answered_ TY_GUARDED_BY(mu_) = false;           // some member has, ever
  std::size_t failures_ TY_GUARDED_BY(mu_) = 0;        // of streams, since one answered
  absl::Status last_failure_ TY_GUARDED_BY(mu_);
  bool stopping_ TY_GUARDED_BY(mu_) = false;
  std::thread reader_;
  std::thread sender_;
};

// Its state is guarded by watches_.mu_.
class EtcdWatcher final : public Watcher {
 public:
  EtcdWatcher(EtcdWatches& watches, WatchRequest request);
  ~EtcdWatcher() override { watches_.Remove(*this); }

  absl::StatusOr<WatchBatch> Next(absl::Duration timeout) override;
  void Cancel() override;

 private:
  friend class EtcdWatches;
  static constexpr std::size_t kMaxQueued = 8192;

  etcdserverpb::WatchRequest CreateRequest(std::int64_t id) const;
  bool Ready() const { return !failure_.ok() || !queue_.empty() || behind_; }
  // Events or progress; true if on_ready is to be called.
  bool Take(etcdserverpb::WatchResponse& response);
  void Confirm(Revision revision);
  bool Announce();

  EtcdWatches& watches_;
  const WatchRequest request_;
  CondVar changed_;
  std::int64_t id_ = 0;
  bool confirmed_ = false;  // on the present stream
  bool renewed_ = false;    // it was refused, and our token is being renewed for that
  absl::Status failure_;
  std::deque<WatchBatch> queue_;
  std::size_t queued_events_ = 0;
  Revision next_revision_;   // the first that etcd has not sent; 0: whatever is next when the watch is made
  Revision taken_revision_;  // the first that Next() has not returned
  bool behind_ = false;      // stopped, because the queue was full
  bool announced_ = false;
};

}  // namespace trainyard::kv
