#include "job/index_set.h"

#include <algorithm>

#include "base/text.h"

namespace trainyard::job {

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
