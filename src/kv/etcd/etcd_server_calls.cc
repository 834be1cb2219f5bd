#include "kv/etcd/etcd_server_calls.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/crc32c.h"
#include "base/status.h"
#include "base/text.h"
#include "kv/etcd/etcd_server_codec.h"

namespace trainyard::kv {
namespace {

constexpr std::int64_t kMaxTtlSeconds = 9'000'000'000;  // etcd's
constexpr int kCountAttempts = 3;
constexpr int kMostWaiting = 2;  // workers that wait for a write

// Some key, to ask a store for its revision.
const std::string& AnyKey() {
  static const std::string key(1, '\0');
  return key;
}

// The same for the same store, and never 0.
std::uint64_t IdOf(std::string_view what, std::string_view url) {
  const std::uint32_t high = Crc32c(url, Crc32c(what));
  return std::uint64_t{high} << 32 | Crc32c(what, high) | 1;
}

absl::Status CheckSize(const google::protobuf::MessageLite& answer) {
  if (answer.ByteSizeLong() <= kMaxAnswerBytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      StrCat("the answer has more than ", FormatBytes(kMaxAnswerBytes), ": ask for fewer keys at a time"));
}

}  // namespace

EtcdCalls::EtcdCalls(Store& store, Workers& workers)
    : store_(store),
      workers_(workers),
      cluster_id_(IdOf("cluster", store.Url())),
      member_id_(IdOf("member", store.Url())) {}

void EtcdCalls::SetClientUrl(std::string url) {
  MutexLock lock(mu_);
  client_url_ = std::move(url);
}

etcdserverpb::ResponseHeader EtcdCalls::Header(Revision revision) const {
  etcdserverpb::ResponseHeader header;
  header.set_cluster_id(cluster_id_);
  header.set_member_id(member_id_);
  header.set_revision(revision);
  header.set_raft_term(1);
  return header;
}

absl::StatusOr<Revision> EtcdCalls::Newest() {
  TY_ASSIGN_OR_RETURN(const GetResult got, store_.Get(AnyKey()));
  return got.revision;
}

absl::StatusOr<Revision> EtcdCalls::OldestKept() {
  TY_ASSIGN_OR_RETURN(Revision kept, Newest());
  Revision gone = 0;
  while (kept - gone > 1) {
    const Revision middle = gone + (kept - gone) / 2;
    const absl::Status status = store_.Get(AnyKey(), middle).status();
    if (!status.ok() && !IsCompacted(status)) return status;
    (status.ok() ? kept : gone) = middle;
  }
  return kept;
}

template <typename Response>
absl::StatusOr<Response> EtcdCalls::Done(const absl::Status& status) {
  TY_RETURN_IF_ERROR(ToWireError(status));
  const absl::StatusOr<Revision> newest = Newest();
  Response response;
  *response.mutable_header() = Header(newest.value_or(0));  // it was done, whatever happens now
  return response;
}

// ---- keys

absl::StatusOr<etcdserverpb::RangeResponse> EtcdCalls::Range(const etcdserverpb::RangeRequest& request) {
  TY_RETURN_IF_ERROR(CheckRange(request));
  const RangeRequest asked = ToStoreRange(request);
  for (int attempt = 1;; ++attempt) {
    TY_ASSIGN_OR_RETURN(RangeResult result, store_.Range(asked));
    if (!result.more) return ToProto(std::move(result), request, std::nullopt);
    // How many there are in all: as of the same revision, which may have been compacted meanwhile.
    const absl::StatusOr<RangeResult> all =
        store_.Range({.range = asked.range,
                      .revision = asked.revision > 0 ? asked.revision : result.revision,
                      .keys_only = true});
    if (all.ok()) {
      return ToProto(std::move(result), request, static_cast<std::int64_t>(all->kvs.size()));
    }
    const bool again = IsCompacted(all.status()) && asked.revision == 0 && attempt < kCountAttempts;
    if (!again) return all.status();
  }
}

void EtcdCalls::Do(const etcdserverpb::RangeRequest& request,
                   const Answered<etcdserverpb::RangeResponse>& answered) {
  absl::StatusOr<etcdserverpb::RangeResponse> response = Range(request);
  const absl::Status status = response.ok() ? CheckSize(*response) : ToWireError(response.status());
  if (!status.ok()) return answered(status);
  *response->mutable_header() = Header(response->header().revision());
  answered(std::move(response));
}

template <typename Request>
void EtcdCalls::Begin(const Request& request, const Answered<etcdserverpb::TxnResponse>& answered) {
  if (request.ByteSizeLong() > kMaxRequestBytes) return answered(TooLargeWireError());
  auto txn = ServedTxn::Parse(request);
  if (!txn.ok()) return answered(txn.status());
  TxnRequest command = txn->TakeRequest();
  // To wait is quickest, with one thread after the other for each write; to have many writes made durable
  // together takes more of them than there are workers.
  const bool waits = waiting_.fetch_add(1) < kMostWaiting;
  if (waits) Answer(*txn, store_.Txn(command), answered);
  waiting_.fetch_sub(1);
  if (waits) return;
  // The store's thread has other things to do than to put answers together.
  auto shape = std::make_shared<ServedTxn>(*std::move(txn));
  store_.TxnAsync(std::move(command), [this, shape, answered](absl::StatusOr<TxnResult> result) {
    auto shared = std::make_shared<absl::StatusOr<TxnResult>>(std::move(result));
    workers_.Post([this, shape, shared, answered] { Answer(*shape, std::move(*shared), answered); });
  });
}

void EtcdCalls::Answer(const ServedTxn& txn, absl::StatusOr<TxnResult> result,
                       const Answered<etcdserverpb::TxnResponse>& answered) const {
  if (!result.ok()) return answered(ToWireError(result.status()));
  etcdserverpb::TxnResponse response = txn.Answer(*std::move(result));
  *response.mutable_header() = Header(response.header().revision());
  if (const absl::Status status = CheckSize(response); !status.ok()) return answered(status);
  answered(std::move(response));
}

void EtcdCalls::Do(const etcdserverpb::TxnRequest& request,
                   const Answered<etcdserverpb::TxnResponse>& answered) {
  Begin(request, answered);
}

void EtcdCalls::Do(const etcdserverpb::PutRequest& request,
                   const Answered<etcdserverpb::PutResponse>& answered) {
  Begin(request, [answered](absl::StatusOr<etcdserverpb::TxnResponse> txn) {
    if (!txn.ok()) return answered(txn.status());
    etcdserverpb::PutResponse response = std::move(*txn->mutable_responses(0)->mutable_response_put());
    *response.mutable_header() = txn->header();
    answered(std::move(response));
  });
}

void EtcdCalls::Do(const etcdserverpb::DeleteRangeRequest& request,
                   const Answered<etcdserverpb::DeleteRangeResponse>& answered) {
  Begin(request, [answered](absl::StatusOr<etcdserverpb::TxnResponse> txn) {
    if (!txn.ok()) return answered(txn.status());
    auto response = std::move(*txn->mutable_responses(0)->mutable_response_delete_range());
    *response.mutable_header() = txn->header();
    answered(std::move(response));
  });
}

void EtcdCalls::Do(const etcdserverpb::CompactionRequest& request,
                   const Answered<etcdserverpb::CompactionResponse>& answered) {
  answered(Done<etcdserverpb::CompactionResponse>(store_.Compact(request.revision())));
}

// ---- leases

absl::StatusOr<etcdserverpb::LeaseGrantResponse> EtcdCalls::Grant(
    const etcdserverpb::LeaseGrantRequest& request) {
  if (request.id() != 0) return NotServedWireError("leases with an id of the client's choice");
  if (request.ttl() > kMaxTtlSeconds) return absl::OutOfRangeError("etcdserver: too large lease TTL");
  const std::int64_t seconds = std::max<std::int64_t>(request.ttl(), 1);
  TY_ASSIGN_OR_RETURN(const Lease lease, store_.GrantLease(absl::Seconds(seconds)));
  TY_ASSIGN_OR_RETURN(auto response, Done<etcdserverpb::LeaseGrantResponse>(absl::OkStatus()));
  response.set_id(lease.id);
  response.set_ttl(absl::ToInt64Seconds(lease.ttl));
  return response;
}

void EtcdCalls::Do(const etcdserverpb::LeaseGrantRequest& request,
                   const Answered<etcdserverpb::LeaseGrantResponse>& answered) {
  absl::StatusOr<etcdserverpb::LeaseGrantResponse> response = Grant(request);
  if (absl::IsOutOfRange(response.status())) return answered(response.status());  // the words are etcd's
  if (!response.ok()) return answered(ToWireError(response.status()));
  answered(std::move(response));
}

void EtcdCalls::Do(const etcdserverpb::LeaseRevokeRequest& request,
                   const Answered<etcdserverpb::LeaseRevokeResponse>& answered) {
  answered(Done<etcdserverpb::LeaseRevokeResponse>(store_.RevokeLease(request.id())));
}

absl::StatusOr<etcdserverpb::LeaseKeepAliveResponse> EtcdCalls::KeepAlive(
    const etcdserverpb::LeaseKeepAliveRequest& request) {
  const absl::StatusOr<absl::Duration> ttl = store_.KeepAlive(request.id());
  // A lease that has ended is no error here: its time to live is 0.
  if (!ttl.ok() && !absl::IsNotFound(ttl.status())) return ToWireError(ttl.status());
  TY_ASSIGN_OR_RETURN(auto response, Done<etcdserverpb::LeaseKeepAliveResponse>(absl::OkStatus()));
  response.set_id(request.id());
  response.set_ttl(ttl.ok() ? absl::ToInt64Seconds(*ttl) : 0);
  return response;
}

// ---- about us

void EtcdCalls::Do(const etcdserverpb::StatusRequest& /*request*/,
                   const Answered<etcdserverpb::StatusResponse>& answered) {
  const absl::StatusOr<Revision> newest = Newest();
  if (!newest.ok()) return answered(ToWireError(newest.status()));
  etcdserverpb::StatusResponse response;
  *response.mutable_header() = Header(*newest);
  response.set_version(kServedEtcdVersion);
  response.set_leader(member_id_);
  response.set_raftindex(static_cast<std::uint64_t>(*newest));
  response.set_raftterm(response.header().raft_term());
  answered(std::move(response));
}

void EtcdCalls::Do(const etcdserverpb::AlarmRequest& request,
                   const Answered<etcdserverpb::AlarmResponse>& answered) {
  if (request.action() == etcdserverpb::AlarmRequest::ACTIVATE) {
    return answered(NotServedWireError("alarms"));
  }
  answered(Done<etcdserverpb::AlarmResponse>(absl::OkStatus()));  // there are none
}

void EtcdCalls::Do(const etcdserverpb::MemberListRequest& /*request*/,
                   const Answered<etcdserverpb::MemberListResponse>& answered) {
  etcdserverpb::MemberListResponse response;
  *response.mutable_header() = Header(0);
  etcdserverpb::Member& member = *response.add_members();
  member.set_id(member_id_);
  member.set_name("trainyard");
  {
    MutexLock lock(mu_);
    if (!client_url_.empty()) member.add_clienturls(client_url_);
  }
  // A client that is told of no address would forget the one that it has.
  if (member.clienturls().empty()) return answered(ToWireError(absl::UnavailableError("not open yet")));
  answered(std::move(response));
}

}  // namespace trainyard::kv
