#include "kv/etcd/etcd_server_codec.h"

#include <algorithm>
#include <utility>

#include "absl/strings/cord.h"
#include "base/check.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::kv {
namespace {

using Asked = etcdserverpb::RangeRequest;

constexpr absl::string_view kWirePayload = "trainyard.dev/kv/etcd";

absl::Status WireError(absl::StatusCode code, std::string_view text) {
  absl::Status status(code, absl::string_view(text.data(), text.size()));
  status.SetPayload(kWirePayload, absl::Cord());
  return status;
}

absl::Status InvalidWireError(std::string_view text) {
  return WireError(absl::StatusCode::kInvalidArgument, text);
}

bool HasFilters(const Asked& asked) {
  return asked.min_mod_revision() != 0 || asked.max_mod_revision() != 0 || asked.min_create_revision() != 0 ||
         asked.max_create_revision() != 0;
}

bool IsSorted(const Asked& asked) {
  return asked.sort_order() == Asked::DESCEND || asked.sort_target() != Asked::KEY;
}

// The limit is the Store's to keep only if the Store's order is the one asked for.
bool StoreLimits(const Asked& asked) {
  return asked.limit() > 0 && !asked.count_only() && !IsSorted(asked) && !HasFilters(asked);
}

bool Passes(const KeyValue& kv, const Asked& asked) {
  return (asked.min_mod_revision() == 0 || kv.mod_revision >= asked.min_mod_revision()) &&
         (asked.max_mod_revision() == 0 || kv.mod_revision <= asked.max_mod_revision()) &&
         (asked.min_create_revision() == 0 || kv.create_revision >= asked.min_create_revision()) &&
         (asked.max_create_revision() == 0 || kv.create_revision <= asked.max_create_revision());
}

template <typename Projection>
void SortBy(std::vector<KeyValue>& kvs, bool descending, Projection projection) {
  if (descending) {
    std::ranges::stable_sort(kvs, std::ranges::greater(), projection);
  } else {
    std::ranges::stable_sort(kvs, std::ranges::less(), projection);
  }
}

void Sort(std::vector<KeyValue>& kvs, const Asked& asked) {
  const bool descending = asked.sort_order() == Asked::DESCEND;
  switch (asked.sort_target()) {
    case Asked::VERSION:
      return SortBy(kvs, descending, &KeyValue::version);
    case Asked::CREATE:
      return SortBy(kvs, descending, &KeyValue::create_revision);
    case Asked::MOD:
      return SortBy(kvs, descending, &KeyValue::mod_revision);
    case Asked::VALUE:
      return SortBy(kvs, descending, &KeyValue::value);
    default:  // by key, as they come
      if (descending) std::ranges::reverse(kvs);
  }
}

// What a comparison compares with; of a kind that was not set it is 0 or nothing, as etcd has it.
absl::StatusOr<Compare> CompareFromProto(const etcdserverpb::Compare& wire) {
  if (wire.key().empty()) return EmptyKeyWireError();
  if (!wire.range_end().empty()) return NotServedWireError("a comparison of a whole range");
  Compare compare{.key = wire.key()};
  switch (wire.result()) {
    case etcdserverpb::Compare::EQUAL:
      compare.relation = Compare::Relation::kEqual;
      break;
    case etcdserverpb::Compare::NOT_EQUAL:
      compare.relation = Compare::Relation::kNotEqual;
      break;
    case etcdserverpb::Compare::LESS:
      compare.relation = Compare::Relation::kLess;
      break;
    case etcdserverpb::Compare::GREATER:
      compare.relation = Compare::Relation::kGreater;
      break;
    default:
      return InvalidWireError("etcdserver: a comparison has an unknown result");
  }
  switch (wire.target()) {
    case etcdserverpb::Compare::VERSION:
      compare.target = Compare::Target::kVersion;
      compare.operand = static_cast<std::int64_t>(wire.version());
      return compare;
    case etcdserverpb::Compare::CREATE:
      compare.target = Compare::Target::kCreateRevision;
      compare.operand = static_cast<std::int64_t>(wire.create_revision());
      return compare;
    case etcdserverpb::Compare::MOD:
      compare.target = Compare::Target::kModRevision;
      compare.operand = static_cast<std::int64_t>(wire.mod_revision());
      return compare;
    case etcdserverpb::Compare::VALUE:
      compare.target = Compare::Target::kValue;
      compare.operand = wire.value();
      return compare;
    case etcdserverpb::Compare::LEASE:
      return NotServedWireError("a comparison of leases");
    default:
      return InvalidWireError("etcdserver: a comparison has an unknown target");
  }
}

bool ChangesAnything(const OpResult& result) {
  const auto* del = std::get_if<DeleteResult>(&result);
  return std::holds_alternative<PutResult>(result) || (del != nullptr && del->deleted > 0);
}

// A key that is put twice, or both put and deleted.
bool HasDuplicates(const std::vector<Op>& ops) {
  std::vector<std::string_view> puts;
  for (const Op& op : ops) {
    if (const auto* put = std::get_if<PutOp>(&op)) puts.push_back(put->key);
  }
  std::ranges::sort(puts);
  if (std::ranges::adjacent_find(puts) != puts.end()) return true;
  return std::ranges::any_of(ops, [&](const Op& op) {
    const auto* del = std::get_if<DeleteOp>(&op);
    return del != nullptr &&
           std::ranges::any_of(puts, [&](std::string_view key) { return del->range.Contains(key); });
  });
}

}  // namespace

// ---- errors

absl::Status EmptyKeyWireError() { return InvalidWireError("etcdserver: key is not provided"); }

absl::Status TooLargeWireError() { return InvalidWireError("etcdserver: request is too large"); }

absl::Status NotServedWireError(std::string_view what) {
  return WireError(absl::StatusCode::kUnimplemented, StrCat("this store does not serve ", what));
}

absl::Status ToWireError(const absl::Status& status) {
  if (status.ok() || status.GetPayload(kWirePayload)) return status;
  if (IsCompacted(status)) {
    return WireError(absl::StatusCode::kOutOfRange, "etcdserver: mvcc: required revision has been compacted");
  }
  switch (status.code()) {
    case absl::StatusCode::kOutOfRange:
      return WireError(status.code(), "etcdserver: mvcc: required revision is a future revision");
    case absl::StatusCode::kNotFound:
      return WireError(status.code(), "etcdserver: requested lease not found");
    case absl::StatusCode::kResourceExhausted:
      return WireError(status.code(), "etcdserver: mvcc: database space exceeded");
    case absl::StatusCode::kUnavailable:  // to a client of etcd's: nothing was changed, try again
      return WireError(status.code(), "etcdserver: no leader");
    default:
      return WireError(status.code(), StrCat("etcdserver: ", Message(status)));
  }
}

// ---- reading

KeyRange ToKeyRange(const std::string& key, const std::string& range_end) {
  static const std::string open(1, '\0');
  if (range_end.empty()) return KeyRange::Key(key);
  return range_end == open ? KeyRange::From(key) : KeyRange::Between(key, range_end);
}

absl::Status CheckRange(const Asked& asked) {
  if (asked.key().empty()) return EmptyKeyWireError();
  if (!Asked::SortOrder_IsValid(asked.sort_order()) || !Asked::SortTarget_IsValid(asked.sort_target())) {
    return InvalidWireError("etcdserver: invalid sort option");
  }
  return absl::OkStatus();
}

RangeRequest ToStoreRange(const Asked& asked) {
  const bool by_value = asked.sort_target() == Asked::VALUE;
  return {.range = ToKeyRange(asked.key(), asked.range_end()),
          .limit = StoreLimits(asked) ? asked.limit() : 0,
          .revision = std::max<Revision>(asked.revision(), 0),  // to etcd a negative one is the newest
          .keys_only = asked.count_only() || (asked.keys_only() && !by_value)};
}

etcdserverpb::RangeResponse ToProto(RangeResult result, const Asked& asked,
                                    std::optional<std::int64_t> count) {
  etcdserverpb::RangeResponse response;
  response.mutable_header()->set_revision(result.revision);
  response.set_count(count.value_or(static_cast<std::int64_t>(result.kvs.size())));
  response.set_more(result.more);
  if (asked.count_only()) return response;
  if (HasFilters(asked)) std::erase_if(result.kvs, [&](const KeyValue& kv) { return !Passes(kv, asked); });
  if (IsSorted(asked)) Sort(result.kvs, asked);
  if (asked.limit() > 0 && result.kvs.size() > static_cast<std::size_t>(asked.limit())) {
    result.kvs.resize(static_cast<std::size_t>(asked.limit()));
    response.set_more(true);
  }
  response.mutable_kvs()->Reserve(static_cast<int>(result.kvs.size()));
  for (KeyValue& kv : result.kvs) {
    if (asked.keys_only()) kv.value.clear();
    Fill(std::move(kv), *response.add_kvs());
  }
  return response;
}

// ---- writing

absl::Status ServedTxn::AddPrevious(KeyRange range, Branch& branch) {
  if (branch.spare == 0) {
    return NotServedWireError(StrCat("so many previous values in one transaction: each counts as one of its ",
                                     kMaxTxnOps, " operations"));
  }
  --branch.spare;
  branch.ops.emplace_back(GetOp{{.range = std::move(range)}});
  branch.steps.back().previous = true;
  return absl::OkStatus();
}

absl::Status ServedTxn::Add(const Asked& asked, Branch& branch) {
  TY_RETURN_IF_ERROR(CheckRange(asked));
  RangeRequest request = ToStoreRange(asked);
  Step& step = branch.steps.emplace_back(Step{.kind = Step::Kind::kRange, .asked = asked});
  step.asked.clear_key();
  step.asked.clear_range_end();
  if (request.limit > 0 && branch.spare == 0) request.limit = 0;  // it is counted and cut when it is answered
  step.counted = request.limit > 0;
  branch.ops.emplace_back(GetOp{request});
  if (step.counted) {
    --branch.spare;
    request.limit = 0;
    request.keys_only = true;
    branch.ops.emplace_back(GetOp{std::move(request)});
  }
  return absl::OkStatus();
}

absl::Status ServedTxn::Add(const etcdserverpb::PutRequest& put, Branch& branch) {
  if (put.key().empty()) return EmptyKeyWireError();
  if (put.ignore_value() || put.ignore_lease()) {
    return NotServedWireError("a put that leaves the value or the lease as it is");
  }
  branch.steps.push_back({.kind = Step::Kind::kPut});
  if (put.prev_kv()) TY_RETURN_IF_ERROR(AddPrevious(KeyRange::Key(put.key()), branch));
  branch.ops.emplace_back(PutOp{.key = put.key(), .value = put.value(), .lease = put.lease()});
  return absl::OkStatus();
}

absl::Status ServedTxn::Add(const etcdserverpb::DeleteRangeRequest& del, Branch& branch) {
  if (del.key().empty()) return EmptyKeyWireError();
  KeyRange range = ToKeyRange(del.key(), del.range_end());
  branch.steps.push_back({.kind = Step::Kind::kDelete});
  if (del.prev_kv()) TY_RETURN_IF_ERROR(AddPrevious(range, branch));
  branch.ops.emplace_back(DeleteOp{std::move(range)});
  return absl::OkStatus();
}

absl::Status ServedTxn::Add(const etcdserverpb::RequestOp& op, Branch& branch) {
  switch (op.request_case()) {
    case etcdserverpb::RequestOp::kRequestRange:
      return Add(op.request_range(), branch);
    case etcdserverpb::RequestOp::kRequestPut:
      return Add(op.request_put(), branch);
    case etcdserverpb::RequestOp::kRequestDeleteRange:
      return Add(op.request_delete_range(), branch);
    case etcdserverpb::RequestOp::kRequestTxn:
      return NotServedWireError("a transaction within a transaction");
    case etcdserverpb::RequestOp::REQUEST_NOT_SET:
      break;
  }
  return InvalidWireError("etcdserver: key not found");  // as etcd calls it
}

template <typename Ops>
absl::Status ServedTxn::AddAll(const Ops& wire, Branch branch) {
  branch.spare = kMaxTxnOps - static_cast<std::size_t>(wire.size());
  for (const etcdserverpb::RequestOp& op : wire) TY_RETURN_IF_ERROR(Add(op, branch));
  return absl::OkStatus();
}

absl::Status ServedTxn::Check() const {
  if (Validate(request_).ok()) return absl::OkStatus();
  if (HasDuplicates(request_.then) || HasDuplicates(request_.otherwise)) {
    return InvalidWireError("etcdserver: duplicate key given in txn request");
  }
  return TooLargeWireError();  // all else has been looked at
}

absl::StatusOr<ServedTxn> ServedTxn::Parse(const etcdserverpb::TxnRequest& request) {
  const int ops = std::max({request.compare_size(), request.success_size(), request.failure_size()});
  if (static_cast<std::size_t>(ops) > kMaxTxnOps) {
    return InvalidWireError("etcdserver: too many operations in txn request");
  }
  ServedTxn txn;
  for (const etcdserverpb::Compare& wire : request.compare()) {
    TY_ASSIGN_OR_RETURN(txn.request_.compares.emplace_back(), CompareFromProto(wire));
  }
  TY_RETURN_IF_ERROR(AddAll(request.success(), {txn.request_.then, txn.then_, 0}));
  TY_RETURN_IF_ERROR(AddAll(request.failure(), {txn.request_.otherwise, txn.otherwise_, 0}));
  TY_RETURN_IF_ERROR(txn.Check());
  return txn;
}

template <typename Request>
absl::StatusOr<ServedTxn> ServedTxn::ParseOne(const Request& request) {
  ServedTxn txn;
  Branch branch{txn.request_.then, txn.then_, 1};
  TY_RETURN_IF_ERROR(Add(request, branch));
  TY_RETURN_IF_ERROR(txn.Check());
  return txn;
}

absl::StatusOr<ServedTxn> ServedTxn::Parse(const etcdserverpb::PutRequest& request) {
  return ParseOne(request);
}

absl::StatusOr<ServedTxn> ServedTxn::Parse(const etcdserverpb::DeleteRangeRequest& request) {
  return ParseOne(request);
}

etcdserverpb::TxnResponse ServedTxn::Answer(TxnResult result) const {
  etcdserverpb::TxnResponse response;
  response.mutable_header()->set_revision(result.revision);
  response.set_succeeded(result.succeeded);
  // Operations before the first one that changes something are of the revision before.
  const Revision before = result.revision - (std::ranges::any_of(result.results, ChangesAnything) ? 1 : 0);
  Revision revision = before;
  auto next = result.results.begin();
  const auto take_range = [&] { return std::get<RangeResult>(std::move(*next++)); };
  for (const Step& step : result.succeeded ? then_ : otherwise_) {
    etcdserverpb::ResponseOp& out = *response.add_responses();
    RangeResult previous = step.previous ? take_range() : RangeResult{};
    if (ChangesAnything(*next)) revision = result.revision;
    switch (step.kind) {
      case Step::Kind::kRange: {
        RangeResult range = take_range();
        range.revision = revision;
        std::optional<std::int64_t> count;
        if (step.counted) count = static_cast<std::int64_t>(take_range().kvs.size());
        *out.mutable_response_range() = ToProto(std::move(range), step.asked, count);
        break;
      }
      case Step::Kind::kPut: {
        ++next;
        etcdserverpb::PutResponse& put = *out.mutable_response_put();
        put.mutable_header()->set_revision(revision);
        if (!previous.kvs.empty()) Fill(std::move(previous.kvs.front()), *put.mutable_prev_kv());
        break;
      }
      case Step::Kind::kDelete: {
        etcdserverpb::DeleteRangeResponse& del = *out.mutable_response_delete_range();
        del.mutable_header()->set_revision(revision);
        del.set_deleted(std::get<DeleteResult>(*next++).deleted);
        for (KeyValue& kv : previous.kvs) Fill(std::move(kv), *del.add_prev_kvs());
        break;
      }
    }
  }
  TY_CHECK(next == result.results.end(), "each operation has one result");
  return response;
}

// ---- watching

void Fill(KeyValue kv, etcdserverpb::KeyValue& out) {
  out.set_key(std::move(kv.key));
  out.set_value(std::move(kv.value));
  out.set_create_revision(kv.create_revision);
  out.set_mod_revision(kv.mod_revision);
  out.set_version(kv.version);
  out.set_lease(kv.lease);
}

void Fill(WatchEvent event, etcdserverpb::Event& out) {
  out.set_type(event.type == WatchEvent::Type::kPut ? etcdserverpb::Event::PUT : etcdserverpb::Event::DELETE);
  Fill(std::move(event.kv), *out.mutable_kv());
  if (event.previous) Fill(*std::move(event.previous), *out.mutable_prev_kv());
}

}  // namespace trainyard::kv
