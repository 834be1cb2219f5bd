// Who reads which records: the data of a pass is dealt out in ranges, and what is left of it is dealt anew
// when trainers come or go. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace trainyard::ps {

struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

// Ranges in order, none empty, none touching another.
using Ranges = std::vector<Range>;

std::int64_t SizeOf(const Ranges& ranges);
// Both together; they must not overlap.
Ranges Join(const Ranges& a, const Ranges& b);
// The first `count` of them, or all if there are fewer.
Ranges Front(const Ranges& ranges, std::int64_t count);
// `from` without `taken`. FailedPrecondition: `taken` is not all in `from`: a record was used twice.
absl::Status Take(Ranges& from, const Ranges& taken);
// Cuts them into `parts` that differ by at most one record, in order: part i of n of [0, N) begins at i N /
// n.
std::vector<Ranges> Deal(const Ranges& ranges, int parts);

// "0-99,120-149"
std::string Print(const Ranges& ranges);

}  // namespace trainyard::ps
