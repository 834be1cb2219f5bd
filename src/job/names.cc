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

std::size_t LongestPodName(const NameRule& rule, std::string_view role, int replicas) {
  return PodName(rule, role, std::max(replicas - 1, 0)).size();
}

std::string ShortName(std::string_view role, int index) { return StrCat(role, "-", index); }

}  // namespace trainyard::job
