#include "master/pods/lost_streams.h"

#include <algorithm>
#include <utility>

namespace trainyard::master {
namespace {

constexpr absl::Duration kMostBetweenLooks = absl::Seconds(2);

}  // namespace

std::vector<std::string> LostStreams::Look(const std::vector<PodSight>& pods, SteadyTime now) {
  const absl::Duration passed = looked_ ? std::min(now - last_, kMostBetweenLooks) : absl::ZeroDuration();
  std::map<std::string, Known> present;
  std::vector<std::string> lost;
  for (const PodSight& pod : pods) {
    const auto before = known_.find(pod.uid);
    std::int64_t& incarnation = incarnations_[pod.name];
    Known known = before != known_.end() ? before->second : Known{.before = incarnation};
    if (pod.incarnation != 0) {
      incarnation = pod.incarnation;
      known.had_stream |= pod.incarnation != known.before;
      known.gone = absl::ZeroDuration();
    } else if (known.had_stream || pod.pserver) {
      known.gone += before != known_.end() ? passed : absl::ZeroDuration();
      if (known.gone >= (known.had_stream ? kStreamPatience : kPserverPatience)) {
        lost.push_back(pod.uid);
        known.gone = absl::ZeroDuration();
      }
    }
    present.emplace(pod.uid, known);
  }
  known_ = std::move(present);
  last_ = now;
  looked_ = true;
  return lost;
}

}  // namespace trainyard::master
