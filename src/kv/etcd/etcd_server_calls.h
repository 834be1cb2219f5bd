// What each call of etcd's does to a Store, whoever carries it: gRPC (etcd_server.h) or JSON (kv/gateway/).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "kv/etcd/etcd.pb.h"
#include "kv/etcd/etcd_server_codec.h"
#include "kv/etcd/etcd_server_workers.h"
#include "kv/store.h"

namespace trainyard::kv {

// The version of etcd that we answer like, for clients that ask.
inline constexpr char kServedEtcdVersion[] = "3.4.0";
// An answer that is larger is refused: it could not be sent as one message.
inline constexpr std::size_t kMaxAnswerBytes = std::size_t{1} << 30;

// All calls may be made from many threads at once.
class EtcdCalls {
 public:
  // Both must outlive this.
  EtcdCalls(Store& store, Workers& workers);
  // Where clients find us, for those who ask who is in the cluster.
  void SetClientUrl(std::string url);

  // Gets an answer, or an error as etcd words it.
  template <typename Response>
  using Answered = std::function<void(absl::StatusOr<Response>)>;

  // To be called on a worker: each may block. `answered` is called once, on a worker, now or later; the
  // request is not needed after the call.
  void Do(const etcdserverpb::RangeRequest& request, const Answered<etcdserverpb::RangeResponse>& answered);
  void Do(const etcdserverpb::PutRequest& request, const Answered<etcdserverpb::PutResponse>& answered);
  void Do(const etcdserverpb::DeleteRangeRequest& request,
          const Answered<etcdserverpb::DeleteRangeResponse>& answered);
  void Do(const etcdserverpb::TxnRequest& request, const Answered<etcdserverpb::TxnResponse>& answered);
  void Do(const etcdserverpb::CompactionRequest& request,
          const Answered<etcdserverpb::CompactionResponse>& answered);
  void Do(const etcdserverpb::LeaseGrantRequest& request,
          const Answered<etcdserverpb::LeaseGrantResponse>& answered);
  void Do(const etcdserverpb::LeaseRevokeRequest& request,
          const Answered<etcdserverpb::LeaseRevokeResponse>& answered);
  void Do(const etcdserverpb::StatusRequest& request, const Answered<etcdserverpb::StatusResponse>& answered);
  void Do(const etcdserverpb::AlarmRequest& request, const Answered<etcdserverpb::AlarmResponse>& answered);
  void Do(const etcdserverpb::MemberListRequest& request,
          const Answered<etcdserverpb::MemberListResponse>& answered);
  absl::StatusOr<etcdserverpb::LeaseKeepAliveResponse> KeepAlive(
      const etcdserverpb::LeaseKeepAliveRequest& request);

  Store& store() { return store_; }
  // Who answers, and as of which revision; 0: without one.
  etcdserverpb::ResponseHeader Header(Revision revision) const;
  absl::StatusOr<Revision> Newest();
  // The oldest revision that can still be read and watched from, found by asking for some.
  absl::StatusOr<Revision> OldestKept();

 private:
  absl::StatusOr<etcdserverpb::RangeResponse> Range(const etcdserverpb::RangeRequest& request);
  absl::StatusOr<etcdserverpb::LeaseGrantResponse> Grant(const etcdserverpb::LeaseGrantRequest& request);
  // Begins a transaction; `answered` gets the whole of its answer.
  template <typename Request>
  void Begin(const Request& request, const Answered<etcdserverpb::TxnResponse>& answered);
  void Answer(const ServedTxn& txn, absl::StatusOr<TxnResult> result,
              const Answered<etcdserverpb::TxnResponse>& answered) const;
  // An answer that says nothing but as of which revision it is.
  template <typename Response>
  absl::StatusOr<Response> Done(const absl::Status& status);

  Store& store_;
  Workers& workers_;
  const std::uint64_t cluster_id_;
  const std::uint64_t member_id_;
  std::atomic<int> waiting_ = 0;  // for a write to be made
  Mutex mu_;
  std::string client_url_ TY_GUARDED_BY(mu_);
};

// One client's side of a call with a stream each way. Used by one thread at a time.
template <typename Request, typename Response>
class ServedSession {
 public:
  virtual ~ServedSession() = default;
  virtual void Handle(const Request& request) = 0;
  // The next answer, if there is one now; an error ends the call.
  virtual std::optional<absl::StatusOr<Response>> Next() = 0;
  // So many answers wait that no further request is to be handled before they are taken.
  virtual bool Full() const { return false; }
  // The client does not take its answers: nothing is to be held for it that can be had again.
  virtual void Park() {}
  // Whether all is said when the client has sent its last request and got its last answer.
  virtual bool EndsWithRequests() const = 0;
};

// Keeps leases alive; every request has one answer.
class KeepAliveSession final
    : public ServedSession<etcdserverpb::LeaseKeepAliveRequest, etcdserverpb::LeaseKeepAliveResponse> {
 public:
  explicit KeepAliveSession(EtcdCalls& calls) : calls_(calls) {}
  void Handle(const etcdserverpb::LeaseKeepAliveRequest& request) override {
    answer_ = calls_.KeepAlive(request);
  }
  std::optional<absl::StatusOr<etcdserverpb::LeaseKeepAliveResponse>> Next() override {
    return std::exchange(answer_, std::nullopt);
  }
  bool Full() const override { return answer_.has_value(); }
  bool EndsWithRequests() const override { return true; }

 private:
  EtcdCalls& calls_;
  std::optional<absl::StatusOr<etcdserverpb::LeaseKeepAliveResponse>> answer_;
};

}  // namespace trainyard::kv
