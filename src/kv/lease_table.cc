#include "kv/lease_table.h"

#include <utility>

namespace trainyard::kv {

void LeaseTable::Insert(Entry entry) {
  by_deadline_.emplace(entry.deadline, entry.id);
  entries_.insert_or_assign(entry.id, std::move(entry));
}

std::optional<LeaseTable::Entry> LeaseTable::Remove(LeaseId id) {
  const auto it = entries_.find(id);
  if (it == entries_.end()) return std::nullopt;
  Entry entry = std::move(it->second);
  entries_.erase(it);
  by_deadline_.erase({entry.deadline, id});
  return entry;
}

const LeaseTable::Entry* LeaseTable::Find(LeaseId id) const {
  const auto it = entries_.find(id);
  return it == entries_.end() ? nullptr : &it->second;
}

void LeaseTable::Attach(LeaseId id, std::string_view key) {
  if (const auto it = entries_.find(id); it != entries_.end()) it->second.keys.emplace(key);
}

void LeaseTable::Detach(LeaseId id, std::string_view key) {
  const auto it = entries_.find(id);
  if (it == entries_.end()) return;
  if (const auto found = it->second.keys.find(key); found != it->second.keys.end())
    it->second.keys.erase(found);
}

std::optional<absl::Duration> LeaseTable::Renew(LeaseId id, SteadyTime now) {
  const auto it = entries_.find(id);
  if (it == entries_.end()) return std::nullopt;
  Entry& entry = it->second;
  by_deadline_.erase({entry.deadline, id});
  entry.deadline = now + entry.ttl;
  by_deadline_.emplace(entry.deadline, id);
  return entry.ttl;
}

std::vector<LeaseId> LeaseTable::Due(SteadyTime now) const {
  std::vector<LeaseId> due;
  for (const auto& [deadline, id] : by_deadline_) {
    if (deadline > now) break;
    due.push_back(id);
  }
  return due;
}

SteadyTime LeaseTable::NextDeadline() const {
  return by_deadline_.empty() ? SteadyTime::Never() : by_deadline_.begin()->first;
}

}  // namespace trainyard::kv
