#include "job/names.h"

#include <algorithm>

#include "base/text.h"

namespace trainyard::job {
namespace {

constexpr std::size_t kSuffixLength = 5;

}  // namespace

std::string PodName(std::string_view job, std::string_view uid, std::string_view role, int index) {
  return StrCat(job, "-", role, "-", index, "-", uid.substr(0, kSuffixLength));
}

std::size_t LongestPodName(std::string_view job, std::string_view role, int replicas) {
  const std::string uid(kSuffixLength, '0');
  return PodName(job, uid, role, std::max(replicas - 1, 0)).size();
}

std::string ShortName(std::string_view role, int index) { return StrCat(role, "-", index); }

}  // namespace trainyard::job
