// Windows that move over images, one axis at a time.
#pragma once

#include <algorithm>
#include <cstdint>

namespace trainyard::graph {

// [first, last)
struct Range {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t Count() const { return last - first; }
};

struct Axis {
  std::int64_t length = 0;  // of the image
  std::int64_t places = 0;  // of the window: the length of the output
  std::int64_t size = 1;    // of the window
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t dilation = 1;

  // Where an element of the window lies in the image when the window is at `place`; may be outside.
  std::int64_t At(std::int64_t place, std::int64_t element) const {
    return place * stride - padding + element * dilation;
  }

  // The places at which an element of the window lies inside the image.
  Range PlacesInside(std::int64_t element) const {
    const std::int64_t offset = At(0, element);
    const std::int64_t first = std::min(places, offset >= 0 ? 0 : (-offset + stride - 1) / stride);
    const std::int64_t last = offset >= length ? 0 : (length - 1 - offset) / stride + 1;
    return {first, std::clamp(last, first, places)};
  }

  // What of the image a window without dilation covers at `place`.
  Range Covered(std::int64_t place) const {
    const std::int64_t first = std::clamp<std::int64_t>(At(place, 0), 0, length);
    return {first, std::clamp(At(place, size), first, length)};
  }

  // The windows lie side by side and cover two elements each.
  bool Pairs() const { return size == 2 && stride == 2 && padding == 0; }
};

}  // namespace trainyard::graph
