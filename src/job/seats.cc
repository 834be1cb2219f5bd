#include "job/seats.h"

#include <string_view>
#include <tuple>

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

}  // namespace trainyard::job
