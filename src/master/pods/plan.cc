#include "master/pods/plan.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace trainyard::master {
namespace {

constexpr absl::Duration kFirstDelay = absl::Seconds(1);
constexpr absl::Duration kMostDelay = absl::Seconds(30);

// Of the n-th failure in a row: the first one is tried again at once.
absl::Duration DelayOf(int failures) {
  if (failures <= 1) return absl::ZeroDuration();
  return std::min(kFirstDelay * (std::int64_t{1} << std::min(failures - 2, 20)), kMostDelay);
}

bool IsLive(const SeenPod& pod) {
  return !pod.deleting && (pod.state == PodState::kPending || pod.state == PodState::kRunning);
}

class Planner {
 public:
  Planner(const PodsView& view, absl::Time now) : view_(view), now_(now) { plan_.memory = view.memory; }

  PodsPlan Plan() {
    PodMemory& memory = plan_.memory;
    memory.target = std::clamp(memory.target, view_.limits.least, view_.limits.most);
    for (const SeenPod& pod : view_.pods) Newest(pod);
    for (const int index : view_.at_work) memory.seats[index].failures = 0;
    if (view_.over) {
      for (const auto& [index, pod] : newest_) {
        // The others hear of it from the master.
        if (IsLive(*pod) && pod->state == PodState::kPending) plan_.deletes.push_back(pod->name);
      }
      return plan_;
    }
    Shrink();
    Grow();
    for (int index = 0; index < memory.target && plan_.failure.empty(); ++index) Fill(index);
    for (const auto& [index, pod] : newest_) {
      if (index >= memory.target && IsLive(*pod)) plan_.deletes.push_back(pod->name);
    }
    TellWaiting();
    return plan_;
  }

 private:
  void Newest(const SeenPod& pod) {
    const SeenPod*& newest = newest_[pod.index];
    if (newest == nullptr || newest->launch < pod.launch) newest = &pod;
    PodMemory::Seat& seat = plan_.memory.seats[pod.index];
    seat.launches = std::max(seat.launches, pod.launch + 1);
    seat.restarts = std::max(seat.restarts, pod.restarts);
  }

  const SeenPod* Find(int index) const {
    const auto found = newest_.find(index);
    return found == newest_.end() ? nullptr : found->second;
  }

  void WakeAt(absl::Time time) {
    plan_.wake_after = std::min(plan_.wake_after, std::max(time - now_, absl::ZeroDuration()));
  }

  // The last ones that find no room are taken back, as far as the job can do without.
  void Shrink() {
    int& target = plan_.memory.target;
    while (target > view_.limits.least) {
      const SeenPod* const last = Find(target - 1);
      if (last == nullptr || !IsLive(*last) || last->unscheduled.empty()) return;
      const absl::Time due = last->since + view_.limits.withdraw_after;
      if (now_ < due) return WakeAt(due);
      --target;
      plan_.memory.seats[target].ended = last->launch;  // nothing is wrong with it
      plan_.memory.grow_after = now_ + view_.limits.grow_again;
    }
  }

  void Grow() {
    PodMemory& memory = plan_.memory;
    if (memory.target >= view_.limits.most || !view_.more_to_do) return;
    for (int index = 0; index < memory.target; ++index) {
      const SeenPod* const pod = Find(index);
      const bool works = pod != nullptr && IsLive(*pod) && pod->state == PodState::kRunning &&
                         std::ranges::find(view_.at_work, index) != view_.at_work.end();
      if (!works) return;
    }
    if (memory.grow_after == absl::InfinitePast()) memory.grow_after = now_ + view_.limits.grow_every;
    if (now_ < memory.grow_after) return WakeAt(memory.grow_after);
    ++memory.target;
    memory.grow_after = now_ + view_.limits.grow_every;
  }

  void Fill(int index) {
    const SeenPod* const pod = Find(index);
    PodMemory::Seat& seat = plan_.memory.seats[index];
    if (pod != nullptr && (IsLive(*pod) || pod->state == PodState::kSucceeded)) {
      GiveUpIfNeeded(*pod);
      return;
    }
    // What is on its way out has the name, not the seat.
    if (pod != nullptr && seat.launches == pod->launch + 1 && !seat.not_before) {
      if (pod->state == PodState::kFailed) {
        ++seat.failures;
        if (seat.failures >= view_.limits.most_failures) {
          plan_.failure = StrCat(view_.role, " ", index, " failed ", seat.failures,
                                 " times in a row, the last time ", pod->name, " ", pod->cause);
          return;
        }
        seat.not_before = now_ + DelayOf(seat.failures);
      } else {
        seat.not_before = now_;
      }
    }
    if (seat.not_before && now_ < *seat.not_before) return WakeAt(*seat.not_before);
    // A launch that fails is planned again.
    if (pod != nullptr && std::exchange(seat.ended, pod->launch) != pod->launch) {
      plan_.ended.push_back({index, pod->name, pod->cause});
      ++seat.restarts;
    }
    seat.not_before.reset();
    plan_.launches.push_back({index, seat.launches++, seat.restarts});
  }

  void GiveUpIfNeeded(const SeenPod& pod) {
    if (pod.unscheduled.empty() || pod.index >= view_.limits.least) return;
    const absl::Time due = pod.since + view_.limits.patience;
    if (now_ < due) return WakeAt(due);
    plan_.failure =
        StrCat(view_.role, " ", pod.index, " (", pod.name, ") finds no room since ",
               absl::FormatDuration(absl::Trunc(now_ - pod.since, absl::Seconds(1))), ": ", pod.unscheduled);
  }

  void TellWaiting() {
    for (const auto& [index, pod] : newest_) {
      if (index >= plan_.memory.target || pod->unscheduled.empty() || !IsLive(*pod)) continue;
      plan_.waiting = StrCat("room for ", view_.role, " ", index, ": ", pod->unscheduled);
      return;
    }
    for (const auto& [index, seat] : plan_.memory.seats) {
      if (!seat.not_before || index >= plan_.memory.target) continue;
      plan_.waiting = StrCat(view_.role, " ", index, ", which failed ", seat.failures,
                             " times in a row and is launched again in ",
                             absl::FormatDuration(absl::Ceil(*seat.not_before - now_, absl::Seconds(1))));
      return;
    }
  }

  const PodsView& view_;
  const absl::Time now_;
  PodsPlan plan_;
  std::map<int, const SeenPod*> newest_;
};

}  // namespace

PodsPlan PlanPods(const PodsView& view, absl::Time now) { return Planner(view, now).Plan(); }

int CountRestarts(const PodMemory& memory) {
  int restarts = 0;
  for (const auto& [index, seat] : memory.seats) restarts += seat.restarts;
  return restarts;
}

}  // namespace trainyard::master
