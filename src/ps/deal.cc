#include "ps/deal.h"

#include <algorithm>

#include "base/check.h"
#include "base/text.h"

namespace trainyard::ps {
namespace {

// Puts a range behind the others, as one with the last if they touch.
void Append(Ranges& ranges, const Range& range) {
  if (range.size() <= 0) return;
  if (!ranges.empty() && ranges.back().end == range.begin) {
    ranges.back().end = range.end;
  } else {
    ranges.push_back(range);
  }
}

// Takes ranges apart from the front.
class Cutter {
 public:
  explicit Cutter(const Ranges& ranges) : ranges_(ranges) {}

  // The next `count`, or what is left if that is fewer.
  Ranges Next(std::int64_t count) {
    Ranges next;
    while (count > 0 && at_ < ranges_.size()) {
      const std::int64_t begin = ranges_[at_].begin + used_;
      const std::int64_t taken = std::min(count, ranges_[at_].end - begin);
      Append(next, {begin, begin + taken});
      count -= taken;
      used_ += taken;
      if (used_ < ranges_[at_].size()) break;
      ++at_;
      used_ = 0;
    }
    return next;
  }

 private:
  const Ranges& ranges_;
  std::size_t at_ = 0;
  std::int64_t used_ = 0;  // of ranges_[at_]
};

absl::Status UsedTwice(const Range& taken) {
  return absl::FailedPreconditionError(
      StrCat("records ", Print(Ranges{taken}), " are taken and are not all there: some were used before"));
}

}  // namespace

std::int64_t SizeOf(const Ranges& ranges) {
  std::int64_t size = 0;
  for (const Range& range : ranges) size += range.size();
  return size;
}

Ranges Join(const Ranges& a, const Ranges& b) {
  Ranges joined;
  auto next_a = a.begin();
  auto next_b = b.begin();
  while (next_a != a.end() || next_b != b.end()) {
    const bool from_a = next_b == b.end() || (next_a != a.end() && next_a->begin < next_b->begin);
    const Range& next = from_a ? *next_a++ : *next_b++;
    TY_CHECK(joined.empty() || joined.back().end <= next.begin, "ranges that are joined do not overlap");
    Append(joined, next);
  }
  return joined;
}

Ranges Front(const Ranges& ranges, std::int64_t count) { return Cutter(ranges).Next(count); }

absl::Status Take(Ranges& from, const Ranges& taken) {
  Ranges left;
  auto next = taken.begin();
  for (const Range& range : from) {
    std::int64_t begin = range.begin;
    for (; next != taken.end() && next->begin < range.end; ++next) {
      if (next->size() <= 0 || next->begin < begin || next->end > range.end) return UsedTwice(*next);
      Append(left, {begin, next->begin});
      begin = next->end;
    }
    Append(left, {begin, range.end});
  }
  if (next != taken.end()) return UsedTwice(*next);
  from = std::move(left);
  return absl::OkStatus();
}

std::vector<Ranges> Deal(const Ranges& ranges, int parts) {
  TY_CHECK(parts > 0, "records are dealt to somebody");
  const std::int64_t size = SizeOf(ranges);
  // i * size / parts, without its product, which may be too large.
  const auto begin_of = [&](std::int64_t i) { return size / parts * i + size % parts * i / parts; };
  std::vector<Ranges> dealt;
  dealt.reserve(static_cast<std::size_t>(parts));
  Cutter cutter(ranges);
  for (std::int64_t i = 0; i < parts; ++i) dealt.push_back(cutter.Next(begin_of(i + 1) - begin_of(i)));
  return dealt;
}

std::string Print(const Ranges& ranges) {
  std::string text;
  for (const Range& range : ranges) {
    StrAppend(text, text.empty() ? "" : ",", range.begin, "-", range.end - 1);
  }
  return text;
}

}  // namespace trainyard::ps
