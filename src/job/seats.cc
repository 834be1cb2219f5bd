#include "job/seats.h"

#include <string_view>
#include <tuple>

#include "base/text.h"
#include "job/names.h"

namespace trainyard::job {
namespace {

// Higher is better.
auto Rank(const JobView& view, const PodView& pod) {
  return std::tuple(pod.owned, pod.name == PodName(view.Naming(), pod.role, pod.index), pod.attempt,
                    !pod.deletion.has_value());
}
auto Rank(const JobView& view, const ServiceView& service) {
  return std::tuple(service.owned, service.name == PodName(view.Naming(), service.role, service.index),
                    !service.leaving);
}

// Gives the place to the better of the two; the other one is surplus if it is ours.
template <typename T>
void Take(const JobView& view, const T& object, const T*& place, std::vector<const T*>& surplus) {
  const T* other = &object;
  if (place == nullptr || Rank(view, *place) < Rank(view, object)) std::swap(place, other);
  if (other != nullptr && other->owned) surplus.push_back(other);
}

Seat* FindSeat(const JobView& view, Seats& seats, std::string_view role, int index) {
  for (std::size_t i = 0; i < view.spec.roles.size(); ++i) {
    if (view.spec.roles[i].slug != role) continue;
    if (index < 0 || index >= view.spec.roles[i].replicas) return nullptr;
    return &seats.roles[i][static_cast<std::size_t>(index)];
  }
  return nullptr;
}

}  // namespace

Seats FindSeats(const JobView& view) {
  Seats seats;
  for (const RoleSpec& role : view.spec.roles) {
    seats.roles.emplace_back(static_cast<std::size_t>(std::max(role.replicas, 0)));
  }
  for (const PodView& pod : view.pods) {
    if (Seat* seat = FindSeat(view, seats, pod.role, pod.index)) {
      Take(view, pod, seat->pod, seats.surplus_pods);
    } else if (pod.owned) {
      seats.surplus_pods.push_back(&pod);
    }
  }
  for (const ServiceView& service : view.services) {
    if (Seat* seat = FindSeat(view, seats, service.role, service.index)) {
      Take(view, service, seat->service, seats.surplus_services);
    } else if (service.owned) {
      seats.surplus_services.push_back(&service);
    }
  }
  return seats;
}

void Tally::Add(const RoleSpec& role, int index, const PodView* pod, Fate fate) {
  ++counts_[static_cast<std::size_t>(fate)];
  ++wanted_;
  if (fate == Fate::kCompleted || fate == Fate::kGivenUp || fate == Fate::kRuns) return;
  if (pod == nullptr || pod->node.empty()) ++unscheduled_;
  if (waiting_role_ != nullptr && fate <= waiting_fate_) {
    ++others_;
    return;
  }
  others_ += waiting_role_ == nullptr ? 0 : 1;
  waiting_fate_ = fate;
  waiting_role_ = &role;
  waiting_for_ = ShortName(role.slug, index);
  waiting_why_.clear();
  if (pod != nullptr) waiting_why_ = pod->creation_error.empty() ? pod->waits : pod->creation_error;
}

std::string Tally::PrintWaitingFor() const {
  std::string text = waiting_for_;
  if (!waiting_why_.empty()) StrAppend(text, " (", waiting_why_, ")");
  if (others_ > 0) StrAppend(text, " and ", others_, others_ == 1 ? " other" : " others");
  return text;
}

std::string Tally::PrintWaiting() const {
  const std::string_view are = others_ > 0 ? " are" : " is";
  switch (waiting_fate_) {
    case Fate::kLeaves:
      return StrCat(PrintWaitingFor(), are, " being deleted and", are, " made again");
    case Fate::kMissing:
      return StrCat(PrintWaitingFor(), are, " missing and", are, " made");
    case Fate::kCompleted:
    case Fate::kGivenUp:
    case Fate::kRuns:
    case Fate::kStarts:
    case Fate::kRestarts:
    case Fate::kStale:
      break;
  }
  return StrCat("waiting for ", PrintWaitingFor());
}

std::string Tally::PrintRunning() const {
  const int completed = Count(Fate::kCompleted);
  const int given_up = Count(Fate::kGivenUp);
  if (completed == 0 && given_up == 0) {
    return wanted_ == 1 ? "its pod runs" : StrCat("all ", wanted_, " pods run");
  }
  std::string text = StrCat(Count(Fate::kRuns), " of ", wanted_, " pods run");
  if (completed > 0) StrAppend(text, ", ", completed, completed == 1 ? " has" : " have", " completed");
  if (given_up > 0) StrAppend(text, ", ", given_up, given_up == 1 ? " has" : " have", " failed");
  return text;
}

std::string Tally::PrintExisting() const {
  const int there = wanted_ - Count(Fate::kMissing);
  return StrCat(there, " of ", wanted_, " pods and ", wanted_ - missing_services_, " of ", wanted_,
                " services exist");
}

}  // namespace trainyard::job
