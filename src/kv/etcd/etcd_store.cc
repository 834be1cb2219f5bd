#include "kv/etcd/etcd_store.h"

#include <chrono>
#include <unordered_map>
#include <utility>

#include "base/executor.h"
#include "base/status.h"
#include "base/text.h"
#include "kv/etcd/etcd_client.h"
#include "kv/etcd/etcd_codec.h"
#include "kv/etcd/etcd_watch.h"

namespace trainyard::kv {
namespace {

using Kind = EtcdClient::Kind;

class EtcdStore final : public Store {
 public:
  explicit EtcdStore(std::unique_ptr<EtcdClient> client) : client_(std::move(client)), watches_(*client_) {}
  ~EtcdStore() override;

  absl::StatusOr<GetResult> Get(std::string_view key, Revision revision) override;
  absl::StatusOr<RangeResult> Range(const RangeRequest& request) override;
  absl::StatusOr<TxnResult> Txn(const TxnRequest& request) override;
  void TxnAsync(TxnRequest request, TxnDone done) override;
  absl::StatusOr<std::unique_ptr<Watcher>> Watch(WatchRequest request) override {
    return watches_.Watch(std::move(request));
  }
  absl::StatusOr<kv::Lease> GrantLease(absl::Duration ttl) override;
  absl::StatusOr<absl::Duration> KeepAlive(LeaseId lease) override;
  absl::Status RevokeLease(LeaseId lease) override;
  absl::Status Compact(Revision revision) override;
  std::string Url() const override;

 private:
  struct AsyncTxn;

  absl::StatusOr<TxnResult> PutOne(const PutOp& put);
  absl::StatusOr<TxnResult> DeleteOne(const DeleteOp& del);
  void FinishAsync(AsyncTxn* under_way, const grpc::Status& status);

  std::unique_ptr<EtcdClient> client_;
  EtcdWatches watches_;
  Mutex mu_;
  CondVar ended_;
  std::unordered_map<AsyncTxn*, std::unique_ptr<AsyncTxn>> under_way_ TY_GUARDED_BY(mu_);
  int finishing_ TY_GUARDED_BY(mu_) = 0;
  Executor executor_;  // last: it ends first, and nothing is posted to it any more
};

// One that has been sent. It is handed to the callback through under_way_ and not through gRPC alone, or
// ThreadSanitizer would not see the hand-over.
struct EtcdStore::AsyncTxn {
  TxnRequest request;
  TxnDone done;
  EtcdMember* member = nullptr;
  grpc::ClientContext context;
  etcdserverpb::TxnRequest message;
  etcdserverpb::TxnResponse response;
};

EtcdStore::~EtcdStore() {
  MutexLock lock(mu_);
  while (!under_way_.empty() || finishing_ > 0) ended_.Wait(mu_);
}

absl::StatusOr<GetResult> EtcdStore::Get(std::string_view key, Revision revision) {
  TY_RETURN_IF_ERROR(ValidateKey(key));
  TY_ASSIGN_OR_RETURN(RangeResult range, Range({.range = KeyRange::Key(key), .revision = revision}));
  GetResult result{.revision = range.revision};
  if (!range.kvs.empty()) result.kv = std::move(range.kvs.front());
  return result;
}

absl::StatusOr<RangeResult> EtcdStore::Range(const RangeRequest& request) {
  TY_RETURN_IF_ERROR(Validate(request));
  const etcdserverpb::RangeRequest message = ToProto(request);
  etcdserverpb::RangeResponse response;
  TY_RETURN_IF_ERROR(
      client_->Call(Kind::kRead, request.revision, [&](EtcdMember& member, grpc::ClientContext& context) {
        return member.kv->Range(&context, message, &response);
      }));
  return FromProto(response);
}

absl::StatusOr<TxnResult> EtcdStore::Txn(const TxnRequest& request) {
  TY_RETURN_IF_ERROR(Validate(request));
  // Alone, an operation is cheaper for etcd as what it is.
  if (request.compares.empty() && request.then.size() == 1) {
    if (const auto* put = std::get_if<PutOp>(&request.then[0])) return PutOne(*put);
    if (const auto* del = std::get_if<DeleteOp>(&request.then[0])) return DeleteOne(*del);
  }
  const etcdserverpb::TxnRequest message = ToProto(request);
  etcdserverpb::TxnResponse response;
  TY_RETURN_IF_ERROR(client_->Call(Kind::kWrite, 0, [&](EtcdMember& member, grpc::ClientContext& context) {
    return member.kv->Txn(&context, message, &response);
  }));
  return FromProto(response);
}

absl::StatusOr<TxnResult> EtcdStore::PutOne(const PutOp& put) {
  const etcdserverpb::PutRequest message = ToProto(put);
  etcdserverpb::PutResponse response;
  TY_RETURN_IF_ERROR(client_->Call(Kind::kWrite, 0, [&](EtcdMember& member, grpc::ClientContext& context) {
    return member.kv->Put(&context, message, &response);
  }));
  return TxnResult{.succeeded = true, .revision = response.header().revision(), .results = {PutResult{}}};
}

absl::StatusOr<TxnResult> EtcdStore::DeleteOne(const DeleteOp& del) {
  const etcdserverpb::DeleteRangeRequest message = ToProto(del);
  etcdserverpb::DeleteRangeResponse response;
  TY_RETURN_IF_ERROR(client_->Call(Kind::kWrite, 0, [&](EtcdMember& member, grpc::ClientContext& context) {
    return member.kv->DeleteRange(&context, message, &response);
  }));
  return TxnResult{.succeeded = true,
                   .revision = response.header().revision(),
                   .results = {DeleteResult{.deleted = response.deleted()}}};
}

void EtcdStore::TxnAsync(TxnRequest request, TxnDone done) {
  if (const absl::Status valid = Validate(request); !valid.ok()) {
    done(valid);
    return;
  }
  auto txn = std::make_unique<AsyncTxn>();
  if (const auto prepared = client_->Prepare(txn->context); !prepared.ok()) {
    done(prepared.status());
    return;
  }
  txn->message = ToProto(request);
  txn->request = std::move(request);
  txn->done = std::move(done);
  txn->context.set_deadline(std::chrono::system_clock::now() +
                            absl::ToChronoNanoseconds(client_->options().timeout));
  EtcdMember& member = client_->member();
  txn->member = &member;
  AsyncTxn* raw = txn.get();
  {
    MutexLock lock(mu_);
    under_way_.emplace(raw, std::move(txn));
  }
  member.kv->async()->Txn(&raw->context, &raw->message, &raw->response,
                          [this, raw](const grpc::Status& status) {
                            executor_.Post([this, raw, status] { FinishAsync(raw, status); });
                          });
}

void EtcdStore::FinishAsync(AsyncTxn* under_way, const grpc::Status& status) {
  std::unique_ptr<AsyncTxn> txn;
  {
    MutexLock lock(mu_);
    txn = std::move(under_way_.extract(under_way).mapped());
    ++finishing_;
  }
  if (status.ok()) {
    txn->done(FromProto(txn->response));
  } else if (const EtcdOutcome outcome = Classify(status);
             outcome == EtcdOutcome::kNotMade || outcome == EtcdOutcome::kNewToken) {
    txn->done(Txn(txn->request));  // which finds another member, or gets a new token
  } else {
    if (outcome == EtcdOutcome::kUnknown) client_->Leave(*txn->member);
    txn->done(ToStatus(status, outcome, client_->where()));
  }
  txn.reset();
  MutexLock lock(mu_);
  --finishing_;
  ended_.SignalAll();
}

absl::StatusOr<kv::Lease> EtcdStore::GrantLease(absl::Duration ttl) {
  TY_RETURN_IF_ERROR(ValidateTtl(ttl));
  etcdserverpb::LeaseGrantRequest message;
  message.set_ttl(absl::ToInt64Seconds(absl::Ceil(ttl, absl::Seconds(1))));
  etcdserverpb::LeaseGrantResponse response;
  TY_RETURN_IF_ERROR(client_->Call(Kind::kWrite, 0, [&](EtcdMember& member, grpc::ClientContext& context) {
    return member.lease->LeaseGrant(&context, message, &response);
  }));
  return kv::Lease{.id = response.id(), .ttl = absl::Seconds(response.ttl())};
}

absl::StatusOr<absl::Duration> EtcdStore::KeepAlive(LeaseId lease) {
  etcdserverpb::LeaseKeepAliveRequest message;
  message.set_id(lease);
  etcdserverpb::LeaseKeepAliveResponse response;
  // It may be sent twice: it only makes the lease last longer.
  TY_RETURN_IF_ERROR(client_->Call(Kind::kRead, 0, [&](EtcdMember& member, grpc::ClientContext& context) {
    const auto stream = member.lease->LeaseKeepAlive(&context);
    const bool answered = stream->Write(message) && stream->Read(&response);
    if (!answered) return stream->Finish();
    context.TryCancel();
    stream->Finish();
    return grpc::Status::OK;
  }));
  if (response.ttl() <= 0) return LeaseNotFoundError(lease);
  return absl::Seconds(response.ttl());
}

absl::Status EtcdStore::RevokeLease(LeaseId lease) {
  etcdserverpb::LeaseRevokeRequest message;
  message.set_id(lease);
  etcdserverpb::LeaseRevokeResponse response;
  return client_->Call(Kind::kWrite, 0, [&](EtcdMember& member, grpc::ClientContext& context) {
    return member.lease->LeaseRevoke(&context, message, &response);
  });
}

absl::Status EtcdStore::Compact(Revision revision) {
  etcdserverpb::CompactionRequest message;
  message.set_revision(revision);
  etcdserverpb::CompactionResponse response;
  return client_->Call(Kind::kWrite, revision, [&](EtcdMember& member, grpc::ClientContext& context) {
    return member.kv->Compact(&context, message, &response);
  });
}

std::string EtcdStore::Url() const {
  std::string url = client_->options().tls ? "etcds://" : "etcd://";
  for (const std::string& address : client_->options().endpoints)
    StrAppend(url, url.ends_with('/') ? "" : ",", address);
  return url;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Store>> OpenEtcdStore(EtcdOptions options) {
  TY_ASSIGN_OR_RETURN(auto client, EtcdClient::Create(std::move(options)));
  return std::make_unique<EtcdStore>(std::move(client));
}

}  // namespace trainyard::kv
