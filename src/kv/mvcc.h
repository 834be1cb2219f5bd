// The state of a local store and what a request changes in it. Decides; reads values it needs, and writes
// nothing.
//
//   request --Evaluate--> records --Journal::Stage--> locations --Apply--> state that the next request sees
//                                                  \--Flush failed: Undo, newest first
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "kv/journal.h"
#include "kv/key_index.h"
#include "kv/lease_table.h"
#include "kv/store.h"

namespace trainyard::kv {

// What a request changes. The records point into the request and into `keys`.
struct Changes {
  std::vector<Record> records;
  std::deque<std::string> keys;
};

class Mvcc {
 public:
  // Reads values through `journal`, which must outlive this.
  explicit Mvcc(const Journal& journal) : journal_(journal) {}

  // Each says what the request answers, and adds what it changes. The state stays as it is.
  absl::StatusOr<TxnResult> Evaluate(const TxnRequest& request, Changes& changes) const;
  absl::Status EvaluateGrant(LeaseId id, absl::Duration ttl, Changes& changes) const;
  absl::Status EvaluateRevoke(LeaseId id, Changes& changes) const;
  absl::Status EvaluateCompact(Revision revision, Changes& changes) const;

  // Makes a record part of the state, newest last. Also how a store is rebuilt from its journal.
  void Apply(const Record& record, const Location& location, SteadyTime now);
  // Takes back what Apply() did since the last Settle(), the newest record first.
  void Undo(const Record& record);
  // What was applied can not be taken back any more. Returns what a compaction has made superfluous.
  std::vector<Version> Settle();

  // OK if the state at `revision` can be read while `newest` is the newest that may be seen.
  absl::Status CheckReadable(Revision revision, Revision newest) const;

  Revision revision() const { return revision_; }
  Revision compacted() const { return compacted_; }
  const KeyIndex& index() const { return index_; }
  KeyIndex& index() { return index_; }
  LeaseTable& leases() { return leases_; }
  const LeaseTable& leases() const { return leases_; }

 private:
  class Evaluation;

  absl::StatusOr<bool> Holds(const Compare& compare) const;
  absl::StatusOr<std::string> ReadValue(const Version& version) const;

  const Journal& journal_;
  KeyIndex index_;
  LeaseTable leases_;
  Revision revision_ = 1;  // as etcd's: an empty store is at 1
  Revision compacted_ = 0;
  Revision compact_to_ = 0;                      // applied, not settled
  std::vector<LeaseTable::Entry> ended_leases_;  // applied, not settled
};

}  // namespace trainyard::kv
