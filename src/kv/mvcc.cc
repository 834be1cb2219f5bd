#include "kv/mvcc.h"

#include <map>
#include <utility>

#include "absl/container/btree_map.h"
#include "base/check.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::kv {
namespace {

template <typename T>
bool Related(const T& actual, Compare::Relation relation, const T& operand) {
  switch (relation) {
    case Compare::Relation::kEqual:
      return actual == operand;
    case Compare::Relation::kNotEqual:
      return actual != operand;
    case Compare::Relation::kLess:
      return actual < operand;
    case Compare::Relation::kGreater:
      return actual > operand;
  }
  TY_CHECK(false, "a relation has one of four values");
}

}  // namespace

// One transaction on its way: its own writes lie over the state, so that later operations see them.
class Mvcc::Evaluation {
 public:
  Evaluation(const Mvcc& state, Changes& changes)
      : state_(state), changes_(changes), first_(changes.records.size()), revision_(state.revision_ + 1) {}

  absl::StatusOr<OpResult> Do(const Op& op) {
    if (const auto* put = std::get_if<PutOp>(&op)) return Put(*put);
    if (const auto* del = std::get_if<DeleteOp>(&op)) return Delete(del->range);
    return Get(std::get<GetOp>(op).request);
  }

  bool changed() const { return changes_.records.size() > first_; }

 private:
  absl::StatusOr<OpResult> Put(const PutOp& put) {
    if (put.lease != kNoLease && state_.leases_.Find(put.lease) == nullptr)
      return LeaseNotFoundError(put.lease);
    const Version* before = state_.index_.Find(put.key, state_.revision_);
    Add({.kind = Record::Kind::kPut,
         .create_revision = before == nullptr ? revision_ : before->create_revision,
         .version = before == nullptr ? 1 : before->version + 1,
         .lease = put.lease,
         .key = put.key,
         .value = put.value});
    return PutResult{};
  }

  absl::StatusOr<OpResult> Delete(const KeyRange& range) {
    DeleteResult result;
    state_.index_.ForEach(range, state_.revision_, [&](std::string_view key, const Version&) {
      if (!own_.contains(key)) {  // or an earlier operation has deleted it already
        Add({.kind = Record::Kind::kDelete, .key = changes_.keys.emplace_back(key)});
        ++result.deleted;
      }
      return true;
    });
    return result;
  }

  absl::StatusOr<OpResult> Get(const RangeRequest& request) const {
    TY_RETURN_IF_ERROR(state_.CheckReadable(request.revision, state_.revision_));
    const bool newest = request.revision == 0;
    std::map<std::string, KeyValue> found;
    absl::Status status;
    // One more than the limit tells whether there are more.
    const std::size_t enough = request.limit == 0 ? SIZE_MAX : static_cast<std::size_t>(request.limit) + 1;
    const Revision at = newest ? state_.revision_ : request.revision;
    state_.index_.ForEach(request.range, at, [&](std::string_view key, const Version& version) {
      if (newest && own_.contains(key)) return true;
      absl::StatusOr<std::string> value = request.keys_only ? std::string() : state_.ReadValue(version);
      if (!value.ok()) {
        status = value.status();
        return false;
      }
      found[std::string(key)] = ToKeyValue(key, version, *std::move(value));
      return found.size() < enough;
    });
    TY_RETURN_IF_ERROR(status);
    if (newest) AddOwnWrites(request, found);

    RangeResult result;
    for (auto& [key, kv] : found) {
      if (request.limit > 0 && result.kvs.size() == static_cast<std::size_t>(request.limit)) {
        result.more = true;
        break;
      }
      result.kvs.push_back(std::move(kv));
    }
    return result;
  }

  void AddOwnWrites(const RangeRequest& request, std::map<std::string, KeyValue>& found) const {
    for (const auto& [key, position] : own_) {
      const Record& record = changes_.records[position];
      if (record.kind != Record::Kind::kPut || !request.range.Contains(key)) continue;
      KeyValue kv = ToKeyValue(record);
      if (request.keys_only) kv.value.clear();
      found[std::string(key)] = std::move(kv);
    }
  }

  void Add(Record record) {
    record.revision = revision_;
    record.sub = static_cast<std::uint32_t>(changes_.records.size() - first_);
    own_[record.key] = changes_.records.size();
    changes_.records.push_back(record);
  }

  const Mvcc& state_;
  Changes& changes_;
  std::size_t first_;
  Revision revision_;
  absl::btree_map<std::string_view, std::size_t> own_;  // key → its record
};

absl::StatusOr<std::string> Mvcc::ReadValue(const Version& version) const {
  return journal_.Find(version.location)->ReadValue(version.location);
}

absl::StatusOr<bool> Mvcc::Holds(const Compare& compare) const {
  const Version* version = index_.Find(compare.key, revision_);
  if (compare.target == Compare::Target::kValue) {
    if (version == nullptr) return false;
    TY_ASSIGN_OR_RETURN(const std::string value, ReadValue(*version));
    return Related(value, compare.relation, std::get<std::string>(compare.operand));
  }
  std::int64_t actual = 0;
  if (version != nullptr) {
    actual = compare.target == Compare::Target::kVersion          ? version->version
             : compare.target == Compare::Target::kCreateRevision ? version->create_revision
                                                                  : version->mod_revision;
  }
  return Related(actual, compare.relation, std::get<std::int64_t>(compare.operand));
}

absl::StatusOr<TxnResult> Mvcc::Evaluate(const TxnRequest& request, Changes& changes) const {
  TxnResult result{.succeeded = true};
  for (const Compare& compare : request.compares) {
    TY_ASSIGN_OR_RETURN(const bool holds, Holds(compare));
    result.succeeded = result.succeeded && holds;
  }
  const std::size_t first = changes.records.size();
  Evaluation evaluation(*this, changes);
  for (const Op& op : result.succeeded ? request.then : request.otherwise) {
    absl::StatusOr<OpResult> done = evaluation.Do(op);
    if (!done.ok()) {
      changes.records.resize(first);
      return done.status();
    }
    result.results.push_back(*std::move(done));
  }
  result.revision = evaluation.changed() ? revision_ + 1 : revision_;
  if (evaluation.changed()) changes.records.back().ends_txn = true;
  for (OpResult& op : result.results) {
    if (auto* range = std::get_if<RangeResult>(&op)) range->revision = result.revision;
  }
  return result;
}

absl::Status Mvcc::EvaluateGrant(LeaseId id, absl::Duration ttl, Changes& changes) const {
  if (leases_.Find(id) != nullptr) return absl::AlreadyExistsError(StrCat("lease ", id, " exists already"));
  changes.records.push_back({.kind = Record::Kind::kLeaseGrant,
                             .ends_txn = true,
                             .revision = revision_,
                             .lease = id,
                             .ttl_ms = absl::ToInt64Milliseconds(ttl)});
  return absl::OkStatus();
}

absl::Status Mvcc::EvaluateRevoke(LeaseId id, Changes& changes) const {
  const LeaseTable::Entry* lease = leases_.Find(id);
  if (lease == nullptr) return LeaseNotFoundError(id);
  std::uint32_t sub = 0;
  for (const std::string& key : lease->keys) {
    changes.records.push_back({.kind = Record::Kind::kDelete,
                               .revision = revision_ + 1,
                               .sub = sub++,
                               .key = changes.keys.emplace_back(key)});
  }
  const Revision revision = lease->keys.empty() ? revision_ : revision_ + 1;
  changes.records.push_back(
      {.kind = Record::Kind::kLeaseRevoke, .ends_txn = true, .revision = revision, .lease = id});
  return absl::OkStatus();
}

absl::Status Mvcc::EvaluateCompact(Revision revision, Changes& changes) const {
  const Revision compacted = std::max(compacted_, compact_to_);
  if (revision <= compacted) return CompactedError(revision, compacted);
  if (revision > revision_) return FutureRevisionError(revision, revision_);
  changes.records.push_back({.kind = Record::Kind::kCompact, .ends_txn = true, .revision = revision});
  return absl::OkStatus();
}

void Mvcc::Apply(const Record& record, const Location& location, SteadyTime now) {
  switch (record.kind) {
    case Record::Kind::kPut:
    case Record::Kind::kDelete: {
      const bool deleted = record.kind == Record::Kind::kDelete;
      if (const Version* before = index_.Find(record.key, revision_))
        leases_.Detach(before->lease, record.key);
      index_.Add(record.key, {.mod_revision = record.revision,
                              .create_revision = record.create_revision,
                              .version = record.version,
                              .lease = record.lease,
                              .location = location,
                              .sub = record.sub,
                              .deleted = deleted});
      if (!deleted) leases_.Attach(record.lease, record.key);
      revision_ = std::max(revision_, record.revision);
      return;
    }
    case Record::Kind::kLeaseGrant: {
      const absl::Duration ttl = absl::Milliseconds(record.ttl_ms);
      leases_.Insert({.id = record.lease, .ttl = ttl, .deadline = now + ttl, .keys = {}});
      return;
    }
    case Record::Kind::kLeaseRevoke:
      if (std::optional<LeaseTable::Entry> ended = leases_.Remove(record.lease)) {
        ended_leases_.push_back(*std::move(ended));
      }
      return;
    case Record::Kind::kCompact:
      compact_to_ = std::max(compact_to_, record.revision);
      return;
    case Record::Kind::kBase:
      revision_ = std::max(revision_, record.revision);
      return;
  }
}

void Mvcc::Undo(const Record& record) {
  switch (record.kind) {
    case Record::Kind::kPut:
    case Record::Kind::kDelete:
      leases_.Detach(record.lease, record.key);
      index_.RemoveNewest(record.key);
      revision_ = record.revision - 1;
      if (const Version* before = index_.Find(record.key, revision_))
        leases_.Attach(before->lease, record.key);
      return;
    case Record::Kind::kLeaseGrant:
      leases_.Remove(record.lease);
      return;
    case Record::Kind::kLeaseRevoke:
      TY_CHECK(!ended_leases_.empty() && ended_leases_.back().id == record.lease, "undone newest first");
      leases_.Insert(std::move(ended_leases_.back()));
      ended_leases_.pop_back();
      return;
    case Record::Kind::kCompact:
      compact_to_ = compacted_;
      return;
    case Record::Kind::kBase:
      TY_CHECK(false, "a base is never staged");
  }
}

std::vector<Version> Mvcc::Settle() {
  ended_leases_.clear();
  if (compact_to_ <= compacted_) return {};
  compacted_ = compact_to_;
  return index_.Compact(compacted_);
}

absl::Status Mvcc::CheckReadable(Revision revision, Revision newest) const {
  if (revision == 0) return absl::OkStatus();
  if (revision < 0) return absl::InvalidArgumentError(StrCat("revision ", revision, " is negative"));
  if (revision < compacted_) return CompactedError(revision, compacted_);
  if (revision > newest) return FutureRevisionError(revision, newest);
  return absl::OkStatus();
}

}  // namespace trainyard::kv
