// Pure: etcd's requests as a Store's, and a Store's results and errors as etcd's. What a Store does not do by
// itself (sorting, counting, previous values) is put together here from what it does.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kv/etcd/etcd.pb.h"
#include "kv/store.h"

namespace trainyard::kv {

// ---- errors

// A Store's error as a client of etcd's knows it: etcd's own code and text for whatever clients look at. An
// error that this file made stays as it is.
absl::Status ToWireError(const absl::Status& status);
absl::Status EmptyKeyWireError();
absl::Status TooLargeWireError();
absl::Status NotServedWireError(std::string_view what);

// ---- reading

// The keys that a request means by its key and range_end.
KeyRange ToKeyRange(const std::string& key, const std::string& range_end);

// OK if there is a key and nothing that nobody knows.
absl::Status CheckRange(const etcdserverpb::RangeRequest& asked);
// What a Store is asked for; ToProto() does the rest.
RangeRequest ToStoreRange(const etcdserverpb::RangeRequest& asked);
// `count`: how many keys the range has, of a result that the limit has cut short.
etcdserverpb::RangeResponse ToProto(RangeResult result, const etcdserverpb::RangeRequest& asked,
                                    std::optional<std::int64_t> count);

// ---- writing

// One transaction: what to ask a Store for, and how its results become etcd's answer. InvalidArgument and
// Unimplemented in etcd's words.
class ServedTxn {
 public:
  static absl::StatusOr<ServedTxn> Parse(const etcdserverpb::TxnRequest& request);
  static absl::StatusOr<ServedTxn> Parse(const etcdserverpb::PutRequest& request);
  static absl::StatusOr<ServedTxn> Parse(const etcdserverpb::DeleteRangeRequest& request);

  TxnRequest TakeRequest() { return std::move(request_); }
  // The answer to the request that was taken; headers have revisions only.
  etcdserverpb::TxnResponse Answer(TxnResult result) const;

 private:
  // One operation of etcd's, which may be several of a Store's.
  struct Step {
    enum class Kind { kRange, kPut, kDelete };
    Kind kind = Kind::kRange;
    bool previous = false;             // an operation before it reads what it replaces
    bool counted = false;              // an operation behind it counts
    etcdserverpb::RangeRequest asked;  // of a range, without its keys
  };
  struct Branch {
    std::vector<Op>& ops;
    std::vector<Step>& steps;
    std::size_t spare;  // how many operations it may have beside one for each step
  };

  static absl::Status Add(const etcdserverpb::RequestOp& op, Branch& branch);
  static absl::Status Add(const etcdserverpb::RangeRequest& asked, Branch& branch);
  static absl::Status Add(const etcdserverpb::PutRequest& put, Branch& branch);
  static absl::Status Add(const etcdserverpb::DeleteRangeRequest& del, Branch& branch);
  static absl::Status AddPrevious(KeyRange range, Branch& branch);
  template <typename Ops>
  static absl::Status AddAll(const Ops& wire, Branch branch);
  template <typename Request>
  static absl::StatusOr<ServedTxn> ParseOne(const Request& request);
  absl::Status Check() const;

  TxnRequest request_;
  std::vector<Step> then_;
  std::vector<Step> otherwise_;
};

// ---- watching

void Fill(KeyValue kv, etcdserverpb::KeyValue& out);
void Fill(WatchEvent event, etcdserverpb::Event& out);

}  // namespace trainyard::kv
