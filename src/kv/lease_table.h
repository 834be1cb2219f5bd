// Pure: leases, when they end, and which keys end with them.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "kv/store.h"

namespace trainyard::kv {

class LeaseTable {
 public:
  struct Entry {
    LeaseId id = kNoLease;
    absl::Duration ttl;
    SteadyTime deadline;
    absl::btree_set<std::string, std::less<>> keys;
  };

  void Insert(Entry entry);
  // The entry, with the keys that are under it still; nothing if there is no such lease.
  std::optional<Entry> Remove(LeaseId id);
  const Entry* Find(LeaseId id) const;

  // kNoLease and leases that do not exist are passed over.
  void Attach(LeaseId id, std::string_view key);
  void Detach(LeaseId id, std::string_view key);

  // Gives the lease its whole time again; its time to live, or nothing if it has ended.
  std::optional<absl::Duration> Renew(LeaseId id, SteadyTime now);

  std::vector<LeaseId> Due(SteadyTime now) const;
  SteadyTime NextDeadline() const;  // Never() without leases
  const absl::btree_map<LeaseId, Entry>& entries() const { return entries_; }

 private:
  absl::btree_map<LeaseId, Entry> entries_;
  std::set<std::pair<SteadyTime, LeaseId>> by_deadline_;
};

}  // namespace trainyard::kv
