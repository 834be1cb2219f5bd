#include "job/job_status.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/text.h"

namespace trainyard::job {
namespace {

// What a message quotes may be of any length, and a status that is too large is refused.
constexpr std::size_t kLongestMessage = 4096;

}  // namespace

std::string_view Print(State state) {
  switch (state) {
    case State::kPending:
      return "Pending";
    case State::kCreating:
      return "Creating";
    case State::kCreated:
      return "Created";
    case State::kRunning:
      return "Running";
    case State::kRestarting:
      return "Restarting";
    case State::kTerminating:
      return "Terminating";
    case State::kSuspended:
      return "Suspended";
    case State::kSucceeded:
      return "Succeeded";
    case State::kFailed:
      return "Failed";
    case State::kTimeout:
      return "Timeout";
    case State::kPreempted:
      return "Preempted";
    case State::kNodeFail:
      return "NodeFail";
  }
  return "";
}

bool IsEnd(State state) {
  switch (state) {
    case State::kSucceeded:
    case State::kFailed:
    case State::kTimeout:
    case State::kPreempted:
    case State::kNodeFail:
      return true;
    case State::kPending:
    case State::kCreating:
    case State::kCreated:
    case State::kRunning:
    case State::kRestarting:
    case State::kTerminating:
    case State::kSuspended:
      return false;
  }
  return false;
}

std::string PrintAttempts(const std::map<int, int>& attempts) {
  std::string out;
  for (auto first = attempts.begin(); first != attempts.end();) {
    auto end = std::next(first);
    int last = first->first;
    while (end != attempts.end() && end->first == last + 1 && end->second == first->second) {
      last = end->first;
      ++end;
    }
    StrAppend(out, out.empty() ? "" : ",", first->first);
    if (last != first->first) StrAppend(out, "-", last);
    StrAppend(out, ":", first->second);
    first = end;
  }
  return out;
}

std::optional<std::map<int, int>> ParseAttempts(std::string_view text) {
  std::map<int, int> attempts;
  if (text.empty()) return attempts;
  for (const std::string_view part : Split(text, ',')) {
    const std::size_t colon = part.find(':');
    if (colon == std::string_view::npos) return std::nullopt;
    const std::string_view indexes = part.substr(0, colon);
    const std::size_t dash = std::min(indexes.find('-'), indexes.size());
    const auto first = ParseNumber<int>(indexes.substr(0, dash));
    const auto last = dash == indexes.size() ? first : ParseNumber<int>(indexes.substr(dash + 1));
    const auto attempt = ParseNumber<int>(part.substr(colon + 1));
    const int next = attempts.empty() ? 0 : attempts.rbegin()->first + 1;  // they stand in order
    if (!first || !last || *first < next || *last < *first || *last > kMostIndex) return std::nullopt;
    if (!attempt || *attempt < 0 || *attempt > kMostAttempts) return std::nullopt;
    for (int index = *first; index <= *last; ++index) attempts[index] = *attempt;
  }
  return attempts;
}

const Condition* JobStatus::Current() const {
  const auto found = std::ranges::find_if(conditions, &Condition::is_true);
  return found == conditions.end() ? nullptr : &*found;
}

const Condition* JobStatus::Find(State type) const {
  const auto found = std::ranges::find(conditions, type, &Condition::type);
  return found == conditions.end() ? nullptr : &*found;
}

bool JobStatus::Is(State type) const {
  const Condition* current = Current();
  return current != nullptr && current->type == type;
}

bool JobStatus::IsFinished() const {
  const Condition* current = Current();
  return current != nullptr && IsEnd(current->type);
}

std::int64_t JobStatus::CountRestarts() const {
  std::int64_t count = 0;
  for (const auto& [name, role] : roles) count += role.restarts;
  return count;
}

void JobStatus::Set(State type, bool is_true, std::string reason, std::string_view message, absl::Time now) {
  if (IsFinished() && type != Current()->type) return;
  Condition next{.type = type,
                 .is_true = is_true,
                 .reason = std::move(reason),
                 .message = Shortened(message, kLongestMessage),
                 .updated = now,
                 .changed = now};
  const auto known = std::ranges::find(conditions, type, &Condition::type);
  if (known != conditions.end()) {
    if (known->is_true == is_true && known->reason == next.reason && known->message == next.message) return;
    if (known->is_true == is_true) next.changed = known->changed;
    conditions.erase(known);
  }
  if (is_true) {
    for (Condition& other : conditions) {
      if (!other.is_true) continue;
      other.is_true = false;
      other.updated = other.changed = now;
    }
    conditions.push_back(std::move(next));
    return;
  }
  // The current state keeps the last place.
  const auto current = std::ranges::find_if(conditions, &Condition::is_true);
  conditions.insert(current, std::move(next));
}

std::optional<IndexSet> IndexSet::Parse(std::string_view text) {
  IndexSet set;
  if (text.empty()) return set;
  for (const std::string_view part : Split(text, ',')) {
    const std::size_t dash = part.find('-');
    const auto first = ParseNumber<int>(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : ParseNumber<int>(part.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first) return std::nullopt;
    if (!set.ranges_.empty() && *first <= set.ranges_.back().second + 1) return std::nullopt;
    set.ranges_.emplace_back(*first, *last);
  }
  return set;
}

std::string IndexSet::Print() const {
  std::string out;
  for (const auto& [first, last] : ranges_) {
    StrAppend(out, out.empty() ? "" : ",", first);
    if (last != first) StrAppend(out, "-", last);
  }
  return out;
}

void IndexSet::Insert(int index) {
  const auto after = std::ranges::upper_bound(ranges_, index, {},
                                              [](const std::pair<int, int>& range) { return range.first; });
  if (after != ranges_.begin() && std::prev(after)->second >= index) return;
  const bool joins_before = after != ranges_.begin() && std::prev(after)->second + 1 == index;
  const bool joins_after = after != ranges_.end() && after->first == index + 1;
  if (joins_before && joins_after) {
    std::prev(after)->second = after->second;
    ranges_.erase(after);
  } else if (joins_before) {
    std::prev(after)->second = index;
  } else if (joins_after) {
    after->first = index;
  } else {
    ranges_.insert(after, {index, index});
  }
}

void IndexSet::Truncate(int end) {
  while (!ranges_.empty() && ranges_.back().first >= end) ranges_.pop_back();
  if (!ranges_.empty()) ranges_.back().second = std::min(ranges_.back().second, end - 1);
}

bool IndexSet::Contains(int index) const {
  const auto after = std::ranges::upper_bound(ranges_, index, {},
                                              [](const std::pair<int, int>& range) { return range.first; });
  return after != ranges_.begin() && std::prev(after)->second >= index;
}

int IndexSet::Count() const {
  int count = 0;
  for (const auto& [first, last] : ranges_) count += last - first + 1;
  return count;
}

}  // namespace trainyard::job
