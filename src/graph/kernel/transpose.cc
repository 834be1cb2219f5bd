#include "graph/kernel/transpose.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "graph/kernel/threads.h"
#include "graph/kernel/vector.h"

namespace trainyard::graph {
namespace {

// One dim of the output: its size, and how far apart its steps lie in the input and in the output.
struct CopyAxis {
  std::int64_t size;
  std::int64_t from;
  std::int64_t to;
};

std::vector<std::int64_t> StridesOf(const Dims& dims) {
  std::vector<std::int64_t> strides;
  strides.reserve(static_cast<std::size_t>(dims.rank()));
  for (int i = 0; i < dims.rank(); ++i) strides.push_back(dims.Count(i + 1, dims.rank()));
  return strides;
}

// The output's dims. Those of size 1 are left out, and neighbours that are neighbours in the input are one.
std::vector<CopyAxis> AxesOf(const Tensor& x, const Ints& order, const Tensor& out) {
  const std::vector<std::int64_t> from = StridesOf(x.dims());
  const std::vector<std::int64_t> to = StridesOf(out.dims());
  std::vector<CopyAxis> axes;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const CopyAxis axis = {out.dims()[static_cast<int>(i)], from[static_cast<std::size_t>(order[i])], to[i]};
    if (axis.size == 1) continue;
    if (!axes.empty() && axes.back().from == axis.from * axis.size) {
      axes.back() = {axes.back().size * axis.size, axis.from, axis.to};
    } else {
      axes.push_back(axis);
    }
  }
  if (axes.empty()) axes.push_back({1, 1, 1});
  return axes;
}

constexpr std::int64_t kTile = 8;  // floats of a wide register

// Where input steps lie next to each other in `rows`, and output steps in `columns`.
struct Plane {
  CopyAxis rows;
  CopyAxis columns;
};

// Turns a tile by way of a small square, so that what lies together is read together and written together.
[[gnu::always_inline]] inline void TurnTile(const Plane& plane, std::int64_t rows, std::int64_t columns,
                                            const float* from, float* to) {
  float square[kTile][kTile];
  for (std::int64_t column = 0; column < columns; ++column) {
    for (std::int64_t row = 0; row < rows; ++row)
      square[row][column] = from[column * plane.columns.from + row];
  }
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column)
      to[row * plane.rows.to + column] = square[row][column];
  }
}

constexpr std::int64_t kBand = 8 * kTile;  // of output rows that are made together: whole lines of the input

// The first `count` output rows of a plane, at most a band of them.
TY_VECTOR void TransposeRows(const Plane& plane, std::int64_t count, const float* from, float* to) {
  for (std::int64_t column = 0; column < plane.columns.size; column += kTile) {
    const std::int64_t columns = std::min(kTile, plane.columns.size - column);
    for (std::int64_t row = 0; row < count; row += kTile) {
      const std::int64_t rows = std::min(kTile, count - row);
      const float* read = from + column * plane.columns.from + row;
      float* write = to + row * plane.rows.to + column;
      if (rows == kTile && columns == kTile) {
        TurnTile(plane, kTile, kTile, read, write);
      } else {
        TurnTile(plane, rows, columns, read, write);
      }
    }
  }
}

// The place of the i-th of all combinations of `axes`, in the input and in the output.
struct Place {
  std::int64_t from = 0;
  std::int64_t to = 0;
};

Place PlaceOf(std::int64_t i, const std::vector<CopyAxis>& axes) {
  Place place;
  for (std::size_t k = axes.size(); k-- > 0;) {
    place.from += i % axes[k].size * axes[k].from;
    place.to += i % axes[k].size * axes[k].to;
    i /= axes[k].size;
  }
  return place;
}

std::int64_t CountOf(const std::vector<CopyAxis>& axes) {
  std::int64_t count = 1;
  for (const CopyAxis& axis : axes) count *= axis.size;
  return count;
}

void CopyRuns(const std::vector<CopyAxis>& around, std::int64_t length, const float* from, float* to) {
  ParallelFor(CountOf(around), std::max<std::int64_t>(1, kGrain / length),
              [&](std::int64_t begin, std::int64_t end) {
                for (std::int64_t i = begin; i < end; ++i) {
                  const Place place = PlaceOf(i, around);
                  std::copy_n(from + place.from, length, to + place.to);
                }
              });
}

}  // namespace

void TransposeDims(const Tensor& x, const Ints& axis, Tensor& out) {
  if (x.empty()) return;
  std::vector<CopyAxis> axes = AxesOf(x, axis, out);
  const float* from = x.data<float>();
  float* to = out.data<float>();
  const CopyAxis last = axes.back();
  axes.pop_back();
  if (last.from == 1) return CopyRuns(axes, last.size, from, to);

  const auto inner = std::find_if(axes.begin(), axes.end(), [](const CopyAxis& a) { return a.from == 1; });
  const Plane plane = {.rows = *inner, .columns = last};
  axes.erase(inner);
  const std::int64_t bands = (plane.rows.size + kBand - 1) / kBand;
  const std::int64_t grain = std::max<std::int64_t>(1, kGrain / (kBand * last.size));
  ParallelFor(CountOf(axes) * bands, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const Place place = PlaceOf(i / bands, axes);
      const std::int64_t first = i % bands * kBand;
      TransposeRows(plane, std::min(kBand, plane.rows.size - first), from + place.from + first,
                    to + place.to + first * plane.rows.to);
    }
  });
}

}  // namespace trainyard::graph
