#include "job/names.h"

#include <algorithm>

#include "base/text.h"

namespace trainyard::job {
namespace {

constexpr std::size_t kSuffixLength = 5;

}  // namespace

std::string PodName(const NameRule& rule, std::string_view role, int index) {
  std::string name = StrCat(rule.job, "-", role, "-", index);
  if (!rule.uid.empty()) StrAppend(name, "-", rule.uid.substr(0, kSuffixLength));
  return name;
}

std::optional<SeatName> ParsePodName(const NameRule& rule, std::string_view name) {
  const std::string prefix = StrCat(rule.job, "-");
  const std::string suffix = rule.uid.empty() ? "" : StrCat("-", rule.uid.substr(0, kSuffixLength));
  if (!name.starts_with(prefix) || !name.ends_with(suffix) || name.size() < prefix.size() + suffix.size())
    return std::nullopt;
  const std::string_view seat = name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
  const std::size_t dash = seat.rfind('-');
  if (dash == std::string_view::npos || dash == 0) return std::nullopt;
  const auto index = ParseNumber<int>(seat.substr(dash + 1));
  if (!index || PodName(rule, seat.substr(0, dash), *index) != name) return std::nullopt;
  return SeatName{.role = std::string(seat.substr(0, dash)), .index = *index};
}

std::size_t LongestPodName(const NameRule& rule, std::string_view role, int replicas) {
  return PodName(rule, role, std::max(replicas - 1, 0)).size();
}

std::string ShortName(std::string_view role, int index) { return StrCat(role, "-", index); }

}  // namespace trainyard::job
