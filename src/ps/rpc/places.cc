#include "ps/rpc/places.h"

namespace trainyard::ps {

wire::Places ToWire(const Share& share) {
  wire::Places places;
  places.set_pass(share.pass);
  for (const Range& range : share.places) {
    places.add_bounds(range.begin);
    places.add_bounds(range.end);
  }
  return places;
}

absl::StatusOr<Share> FromWire(const wire::Places& places) {
  Share share{.pass = places.pass()};
  if (places.bounds_size() % 2 != 0) return absl::InvalidArgumentError("a range of places has no end");
  for (int i = 0; i < places.bounds_size(); i += 2) {
    const Range range{places.bounds(i), places.bounds(i + 1)};
    const bool behind = share.places.empty() ? range.begin >= 0 : range.begin > share.places.back().end;
    if (!behind || range.end <= range.begin)
      return absl::InvalidArgumentError("ranges of places are not in order");
    share.places.push_back(range);
  }
  return share;
}

}  // namespace trainyard::ps
