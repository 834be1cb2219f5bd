#include "kv/store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/cord.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::kv {
namespace {

constexpr absl::string_view kCompactedPayload = "trainyard.dev/kv/compacted";
constexpr std::size_t kOpOverhead = 64;  // at most what the wire adds to an operation's key and value

// The first key after all that begin with `prefix`; none if there is no such key.
std::optional<std::string> PrefixEnd(std::string_view prefix) {
  std::string end(prefix);
  while (!end.empty() && end.back() == '\xff') end.pop_back();
  if (end.empty()) return std::nullopt;
  end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
  return end;
}

Compare Make(std::string_view key, Compare::Target target, Compare::Relation relation, std::int64_t operand) {
  return {.key = std::string(key), .target = target, .relation = relation, .operand = operand};
}

std::string Shown(std::string_view key) { return StrCat("'", Escaped(key), "'"); }

std::size_t SizeOf(const KeyRange& range) { return range.begin.size() + (range.end ? range.end->size() : 0); }

absl::Status TooLarge(std::string_view what, std::size_t bytes) {
  return absl::InvalidArgumentError(
      StrCat(what, " has ", bytes, " bytes, above the limit of ", kMaxRequestBytes,
             " (etcd's 1.5 MiB request limit): store it in chunks, with PutLarge "
             "in code or `kv put --chunked`"));
}

// One branch: no key put twice, none both put and deleted; keys there; the bytes added to `bytes`.
absl::Status ValidateBranch(const std::vector<Op>& ops, std::size_t& bytes) {
  std::vector<std::string_view> puts;
  for (const Op& op : ops) {
    if (const auto* put = std::get_if<PutOp>(&op)) {
      TY_RETURN_IF_ERROR(ValidateKey(put->key));
      const std::size_t size = put->key.size() + put->value.size() + kOpOverhead;
      if (size > kMaxRequestBytes) return TooLarge(StrCat("the request to put ", Shown(put->key)), size);
      bytes += size;
      puts.push_back(put->key);
    } else if (const auto* del = std::get_if<DeleteOp>(&op)) {
      bytes += SizeOf(del->range) + kOpOverhead;
    } else {
      const RangeRequest& get = std::get<GetOp>(op).request;
      TY_RETURN_IF_ERROR(Validate(get));
      bytes += SizeOf(get.range) + kOpOverhead;
    }
  }
  std::ranges::sort(puts);
  if (const auto twice = std::ranges::adjacent_find(puts); twice != puts.end()) {
    return absl::InvalidArgumentError(StrCat("a transaction puts ", Shown(*twice), " twice"));
  }
  for (const Op& op : ops) {
    const auto* del = std::get_if<DeleteOp>(&op);
    if (del == nullptr) continue;
    const auto first = std::ranges::lower_bound(puts, std::string_view(del->range.begin));
    if (first != puts.end() && del->range.Contains(*first)) {
      return absl::InvalidArgumentError(StrCat("a transaction both puts and deletes ", Shown(*first)));
    }
  }
  return absl::OkStatus();
}

}  // namespace

KeyRange KeyRange::Key(std::string_view key) {
  std::string end(key);
  end.push_back('\0');
  return {std::string(key), std::move(end)};
}

KeyRange KeyRange::Prefix(std::string_view prefix) { return {std::string(prefix), PrefixEnd(prefix)}; }

KeyRange KeyRange::From(std::string_view begin) { return {std::string(begin), std::nullopt}; }

KeyRange KeyRange::Between(std::string_view begin, std::string_view end) {
  return {std::string(begin), std::string(end)};
}

bool KeyRange::Empty() const {
  static const std::string first(1, '\0');  // of all keys, since none is empty
  return end && *end <= std::max(begin, first);
}

std::optional<std::string_view> KeyRange::AsKey() const {
  const bool one = end && end->size() == begin.size() + 1 && end->back() == '\0' && end->starts_with(begin);
  return one ? std::optional<std::string_view>(begin) : std::nullopt;
}

std::optional<std::string_view> KeyRange::AsPrefix() const {
  return end == PrefixEnd(begin) ? std::optional<std::string_view>(begin) : std::nullopt;
}

Compare Exists(std::string_view key) {
  return Make(key, Compare::Target::kCreateRevision, Compare::Relation::kGreater, 0);
}
Compare Absent(std::string_view key) {
  return Make(key, Compare::Target::kCreateRevision, Compare::Relation::kEqual, 0);
}
Compare ValueIs(std::string_view key, std::string_view value) {
  return {.key = std::string(key), .target = Compare::Target::kValue, .operand = std::string(value)};
}
Compare VersionIs(std::string_view key, std::int64_t version) {
  return Make(key, Compare::Target::kVersion, Compare::Relation::kEqual, version);
}
Compare CreatedAt(std::string_view key, Revision revision) {
  return Make(key, Compare::Target::kCreateRevision, Compare::Relation::kEqual, revision);
}
Compare ModifiedAt(std::string_view key, Revision revision) {
  return Make(key, Compare::Target::kModRevision, Compare::Relation::kEqual, revision);
}

absl::StatusOr<Revision> Store::Put(std::string_view key, std::string_view value, LeaseId lease) {
  TY_ASSIGN_OR_RETURN(const TxnResult result,
                      Txn({.then = {PutOp{std::string(key), std::string(value), lease}}}));
  return result.revision;
}

absl::StatusOr<DeleteResult> Store::Delete(KeyRange range) {
  TY_ASSIGN_OR_RETURN(const TxnResult result, Txn({.then = {DeleteOp{std::move(range)}}}));
  return std::get<DeleteResult>(result.results.at(0));
}

absl::Status CompactedError(Revision asked, Revision compacted) {
  absl::Status status = absl::OutOfRangeError(StrCat(
      "revision ", asked, " has been compacted",
      compacted > 0 ? StrCat("; the oldest kept is ", compacted) : "", ": list again and go on from there"));
  status.SetPayload(kCompactedPayload, absl::Cord());
  return status;
}

absl::Status FutureRevisionError(Revision asked, Revision newest) {
  return absl::OutOfRangeError(StrCat("revision ", asked, " has not happened yet",
                                      newest > 0 ? StrCat("; the newest is ", newest) : ""));
}

absl::Status LeaseNotFoundError(LeaseId lease) {
  return absl::NotFoundError(StrCat("lease ", lease, " does not exist: it was revoked or its time ran out"));
}

bool IsCompacted(const absl::Status& status) { return status.GetPayload(kCompactedPayload).has_value(); }

absl::Status ValidateKey(std::string_view key) {
  if (key.empty()) return absl::InvalidArgumentError("a key must not be empty");
  return absl::OkStatus();
}

absl::Status ValidateTtl(absl::Duration ttl) {
  // etcd counts whole seconds and takes at most 9,000,000,000 of them.
  if (ttl <= absl::ZeroDuration() || ttl > absl::Seconds(9'000'000'000)) {
    return absl::InvalidArgumentError(StrCat(
        "a lease's time to live must be above 0 and at most 9000000000s, not ", absl::FormatDuration(ttl)));
  }
  return absl::OkStatus();
}

absl::Status Validate(const RangeRequest& request) {
  if (request.limit < 0 || request.revision < 0) {
    return absl::InvalidArgumentError("a range's limit and revision must not be negative");
  }
  return absl::OkStatus();
}

absl::Status Validate(const WatchRequest& request) {
  if (request.start_revision < 0)
    return absl::InvalidArgumentError("a watch cannot start at a negative revision");
  if (request.range.Empty()) return absl::InvalidArgumentError("a watch needs a range that can hold a key");
  return absl::OkStatus();
}

absl::Status Validate(const TxnRequest& request) {
  const std::size_t ops = std::max({request.compares.size(), request.then.size(), request.otherwise.size()});
  if (ops > kMaxTxnOps) {
    return absl::InvalidArgumentError(
        StrCat("a transaction has ", ops, " operations, above the limit of ", kMaxTxnOps, ": split it"));
  }
  std::size_t bytes = 0;
  for (const Compare& compare : request.compares) {
    TY_RETURN_IF_ERROR(ValidateKey(compare.key));
    const auto* text = std::get_if<std::string>(&compare.operand);
    if ((compare.target == Compare::Target::kValue) != (text != nullptr)) {
      return absl::InvalidArgumentError(
          StrCat("a comparison on ", Shown(compare.key), " needs ",
                 text == nullptr ? "a text to compare its value with" : "a number to compare with"));
    }
    bytes += compare.key.size() + kOpOverhead + (text == nullptr ? 0 : text->size());
  }
  TY_RETURN_IF_ERROR(ValidateBranch(request.then, bytes));
  TY_RETURN_IF_ERROR(ValidateBranch(request.otherwise, bytes));
  if (bytes > kMaxRequestBytes) return TooLarge("a transaction", bytes);
  return absl::OkStatus();
}

}  // namespace trainyard::kv
