// Sets of indexes of pods, as status fields keep them: "0,2-5".
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trainyard::job {

class IndexSet {
 public:
  IndexSet() = default;
  // Nothing: the text is no such set. An empty text is the empty set.
  static std::optional<IndexSet> Parse(std::string_view text);
  std::string Print() const;

  void Insert(int index);
  // Removes all indexes from `end` on.
  void Truncate(int end);
  bool Contains(int index) const;
  int Count() const;
  bool operator==(const IndexSet&) const = default;

 private:
  std::vector<std::pair<int, int>> ranges_;  // both ends included; in order, and never touching each other
};

}  // namespace trainyard::job
