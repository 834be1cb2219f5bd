// The store under everything: revisioned keys, transactions, watches and leases, with etcd's semantics.
//
// Three implementations promise the same (tests/contract/ holds each to it): MemoryStore for tests and
// simulation, EmbeddedStore durable on this machine's disk, EtcdStore over a real etcd. OpenStore() in
// kv/open.h picks one by URL.
//
// Every transaction that changes something has one revision, higher by one than the last; all reads see the
// store as it was at one revision; what a read or a watch shows has been made durable first.
//
// Errors that every call may return, beside those named at it:
//   Unavailable         the store cannot be reached and nothing was changed: try again
//   Unknown             the connection broke while a write was under way: it may or may not have been made
//   ResourceExhausted   the disk is full or a quota is used up; nothing was changed
//   DataLoss            what is stored is damaged; the message names the file and the place
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace trainyard::kv {

using Revision = std::int64_t;  // 0: none, or "the newest" in a request
using LeaseId = std::int64_t;
inline constexpr LeaseId kNoLease = 0;

// Limits of every store, which are etcd's defaults: what runs on a laptop then runs on a cluster.
inline constexpr std::size_t kMaxRequestBytes = std::size_t{1536} * 1024;
inline constexpr std::size_t kMaxTxnOps = 128;

struct KeyValue {
  std::string key;
  std::string value;
  Revision create_revision = 0;
  Revision mod_revision = 0;
  std::int64_t version = 0;  // 1 when created, one more with each put
  LeaseId lease = kNoLease;
  bool operator==(const KeyValue&) const = default;
};

// The keys in [begin, end), in byte order; without `end`, all from `begin` on.
struct KeyRange {
  std::string begin;
  std::optional<std::string> end;

  static KeyRange Key(std::string_view key);
  static KeyRange Prefix(std::string_view prefix);
  static KeyRange From(std::string_view begin);
  static KeyRange Between(std::string_view begin, std::string_view end);

  bool Contains(std::string_view key) const { return key >= begin && (!end || key < *end); }
  // No key can be in it.
  bool Empty() const;
  // The one key that this range is of, if it is of one.
  std::optional<std::string_view> AsKey() const;
  // The prefix that this range is of, if it is of one.
  std::optional<std::string_view> AsPrefix() const;
  bool operator==(const KeyRange&) const = default;
};

struct RangeRequest {
  KeyRange range;
  std::int64_t limit = 0;  // 0: none
  Revision revision = 0;   // 0: the newest
  bool keys_only = false;
};

struct RangeResult {
  std::vector<KeyValue> kvs;  // by key
  bool more = false;          // the limit cut it short
  Revision revision = 0;      // the store's newest when it answered
  bool operator==(const RangeResult&) const = default;
};

struct GetResult {
  std::optional<KeyValue> kv;
  Revision revision = 0;
};

// A condition on one key. A key that does not exist has version and revisions 0, and no value: a comparison
// of its value never holds, not even kNotEqual.
struct Compare {
  enum class Target { kValue, kVersion, kCreateRevision, kModRevision };
  enum class Relation { kEqual, kNotEqual, kLess, kGreater };
  std::string key;
  Target target = Target::kModRevision;
  Relation relation = Relation::kEqual;
  std::variant<std::int64_t, std::string> operand;
};

Compare Exists(std::string_view key);
Compare Absent(std::string_view key);
Compare ValueIs(std::string_view key, std::string_view value);
Compare VersionIs(std::string_view key, std::int64_t version);
Compare CreatedAt(std::string_view key, Revision revision);
Compare ModifiedAt(std::string_view key, Revision revision);

struct PutOp {
  std::string key;
  std::string value;
  LeaseId lease = kNoLease;  // the key dies with it
};
struct DeleteOp {
  KeyRange range;
};
struct GetOp {
  RangeRequest request;
};
using Op = std::variant<PutOp, DeleteOp, GetOp>;

// If every comparison holds `then` is done, else `otherwise`; in order, each operation seeing those before
// it, all or none. One branch must not put a key twice, nor put a key that it deletes.
struct TxnRequest {
  std::vector<Compare> compares;
  std::vector<Op> then;
  std::vector<Op> otherwise;
};

struct PutResult {
  bool operator==(const PutResult&) const = default;
};
struct DeleteResult {
  std::int64_t deleted = 0;
  bool operator==(const DeleteResult&) const = default;
};
using OpResult = std::variant<PutResult, DeleteResult, RangeResult>;

struct TxnResult {
  bool succeeded = false;  // which branch was taken
  Revision revision = 0;   // this transaction's, or the newest if it changed nothing
  std::vector<OpResult> results;
};
using TxnDone = std::function<void(absl::StatusOr<TxnResult>)>;

struct WatchEvent {
  enum class Type { kPut, kDelete };
  Type type = Type::kPut;
  KeyValue kv;  // of a delete: the key and the revision that deleted it
  std::optional<KeyValue> previous;
  bool operator==(const WatchEvent&) const = default;
};

// What happened up to `revision`: every event of the range, in order, and all events of one revision
// together. Without events it is a progress notification: there were none up to `revision`.
struct WatchBatch {
  std::vector<WatchEvent> events;
  Revision revision = 0;
};

struct WatchRequest {
  KeyRange range;
  Revision start_revision = 0;  // the first to be shown; 0: the next one
  bool with_previous = false;   // fill WatchEvent::previous where it has not been compacted away
  bool progress = false;        // notify of progress while there are no events
  // Called when a batch becomes ready that was not, with no lock held. Must not block, call the store or
  // destroy the watcher.
  std::function<void()> on_ready;
};

// One watch, owned by its caller, used by one thread at a time except where said. Must go before its store.
class Watcher {
 public:
  virtual ~Watcher() = default;
  // The next batch. DeadlineExceeded: nothing came in time. OutOfRange with IsCompacted(): the history that
  // this watch needs is gone; list again and watch from there (kv/follower.h does). Cancelled: after
  // Cancel().
  virtual absl::StatusOr<WatchBatch> Next(absl::Duration timeout = absl::InfiniteDuration()) = 0;
  // Ends a Next() that waits in another thread, and all that follow. From any thread.
  virtual void Cancel() = 0;
};

struct Lease {
  LeaseId id = kNoLease;
  absl::Duration ttl;  // as granted, which may be longer than asked for
};

// All calls may be made from many threads at once.
class Store {
 public:
  virtual ~Store() = default;

  // OutOfRange: the revision is compacted (IsCompacted()) or has not happened yet.
  virtual absl::StatusOr<GetResult> Get(std::string_view key, Revision revision = 0) = 0;
  virtual absl::StatusOr<RangeResult> Range(const RangeRequest& request) = 0;

  // Returns when the change is durable. InvalidArgument: the request breaks a rule or a limit; the message
  // says which. NotFound: a lease that it names does not exist.
  virtual absl::StatusOr<TxnResult> Txn(const TxnRequest& request) = 0;
  // The same, without waiting for the change to be made: `done` is called once and must not block; on a
  // thread of the store's, or at once and on this one if the request is invalid or the store has no thread.
  // Two that are under way together may be made in either order.
  virtual void TxnAsync(TxnRequest request, TxnDone done) = 0;

  virtual absl::StatusOr<std::unique_ptr<Watcher>> Watch(WatchRequest request) = 0;

  // The keys put under a lease are deleted, in one transaction, when it ends: by RevokeLease(), or when
  // nobody has called KeepAlive() for its time to live. NotFound: the lease has ended.
  virtual absl::StatusOr<Lease> GrantLease(absl::Duration ttl) = 0;
  virtual absl::StatusOr<absl::Duration> KeepAlive(LeaseId lease) = 0;
  virtual absl::Status RevokeLease(LeaseId lease) = 0;

  // Forgets what was superseded before `revision`; later reads and watches of that past get IsCompacted().
  virtual absl::Status Compact(Revision revision) = 0;

  // Which store it is, as a URL, for messages: without options and secrets.
  virtual std::string Url() const = 0;

  // Shorthands.
  absl::StatusOr<Revision> Put(std::string_view key, std::string_view value, LeaseId lease = kNoLease);
  absl::StatusOr<DeleteResult> Delete(KeyRange range);
};

// The errors of a revision that is gone or not yet there; 0 for what is not known.
absl::Status CompactedError(Revision asked, Revision compacted);
absl::Status FutureRevisionError(Revision asked, Revision newest);
bool IsCompacted(const absl::Status& status);
absl::Status LeaseNotFoundError(LeaseId lease);

// OK if the request keeps the rules and limits above. Every store checks it before anything else.
absl::Status Validate(const TxnRequest& request);
absl::Status Validate(const RangeRequest& request);
absl::Status Validate(const WatchRequest& request);
absl::Status ValidateKey(std::string_view key);
absl::Status ValidateTtl(absl::Duration ttl);

}  // namespace trainyard::kv
