// Pooling of images [batch, channels, height, width]: the largest element, or the average, of each window.
#include <algorithm>
#include <vector>

#include "graph/kernel/kernel.h"
#include "graph/kernel/threads.h"
#include "graph/kernel/vector.h"
#include "graph/kernel/window.h"

namespace trainyard::graph {
namespace {

struct Pooling {
  std::int64_t planes;
  Axis down;
  Axis across;
  bool average;

  std::int64_t in_plane() const { return down.length * across.length; }
  std::int64_t out_plane() const { return down.places * across.places; }
};

Pooling PoolingOf(const Op& op, const Dims& x, const Dims& out) {
  const auto axis = [&](std::size_t i) {
    const int dim = static_cast<int>(i) + 2;
    if (op.Bool("global_pooling")) return Axis{.length = x[dim], .places = 1, .size = x[dim]};
    return Axis{.length = x[dim],
                .places = out[dim],
                .size = op.IntList("ksize")[i],
                .stride = op.IntList("strides")[i],
                .padding = op.IntList("paddings")[i]};
  };
  return {.planes = x[0] * x[1],
          .down = axis(0),
          .across = axis(1),
          .average = op.String("pooling_type") == "avg"};
}

// Calls `work(plane)` for each plane, on several threads if it is worth it.
template <typename Work>
void ForEachPlane(const Pooling& pool, Work work) {
  const std::int64_t grain = kGrain / std::max<std::int64_t>(1, pool.in_plane()) + 1;
  ParallelFor(pool.planes, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t plane = begin; plane < end; ++plane) work(plane);
  });
}

// Calls `work(place, lines, columns)` for each window of a plane.
template <typename Work>
void ForEachWindow(const Pooling& pool, Work work) {
  std::int64_t place = 0;
  for (std::int64_t y = 0; y < pool.down.places; ++y) {
    const Range lines = pool.down.Covered(y);
    for (std::int64_t x = 0; x < pool.across.places; ++x) work(place++, lines, pool.across.Covered(x));
  }
}

// The first of the largest elements of a window that is not empty.
std::int64_t FirstLargest(const Pooling& pool, const float* x, Range lines, Range columns) {
  std::int64_t best = lines.first * pool.across.length + columns.first;
  for (std::int64_t line = lines.first; line < lines.last; ++line) {
    for (std::int64_t i = line * pool.across.length + columns.first;
         i < line * pool.across.length + columns.last; ++i) {
      if (x[i] > x[best]) best = i;
    }
  }
  return best;
}

double SumOf(const Pooling& pool, const float* x, Range lines, Range columns) {
  double sum = 0;
  for (std::int64_t line = lines.first; line < lines.last; ++line) {
    const float* row = x + line * pool.across.length;
    for (std::int64_t i = columns.first; i < columns.last; ++i) sum += static_cast<double>(row[i]);
  }
  return sum;
}

// The largest of each two by two elements of two lines.
TY_VECTOR void LargestOfFours(std::int64_t count, const float* upper, const float* lower, float* out) {
  TY_INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i) {
    const float above = upper[2 * i] < upper[2 * i + 1] ? upper[2 * i + 1] : upper[2 * i];
    const float below = lower[2 * i] < lower[2 * i + 1] ? lower[2 * i + 1] : lower[2 * i];
    out[i] = above < below ? below : above;
  }
}

// Gives each gradient to the first of the four elements that is the largest, and nothing to the others.
TY_VECTOR void GiveToFours(std::int64_t count, const float* from, const float* upper, const float* lower,
                           float* to_upper, float* to_lower) {
  TY_INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i) {
    const float a = upper[2 * i];
    const float b = upper[2 * i + 1];
    const float c = lower[2 * i];
    const float d = lower[2 * i + 1];
    const float above = a < b ? b : a;
    const float below = c < d ? d : c;
    const float to_above = above < below ? 0.0F : from[i];
    const float to_below = above < below ? from[i] : 0.0F;
    to_upper[2 * i] = a < b ? 0.0F : to_above;
    to_upper[2 * i + 1] = a < b ? to_above : 0.0F;
    to_lower[2 * i] = c < d ? 0.0F : to_below;
    to_lower[2 * i + 1] = c < d ? to_below : 0.0F;
  }
}

void PoolPlane(const Pooling& pool, const float* x, float* out) {
  if (!pool.average && pool.down.Pairs() && pool.across.Pairs()) {
    for (std::int64_t y = 0; y < pool.down.places; ++y) {
      const float* upper = x + 2 * y * pool.across.length;
      LargestOfFours(pool.across.places, upper, upper + pool.across.length, out + y * pool.across.places);
    }
    return;
  }
  ForEachWindow(pool, [&](std::int64_t place, Range lines, Range columns) {
    const std::int64_t members = lines.Count() * columns.Count();
    if (members == 0) {
      out[place] = 0;
    } else if (pool.average) {
      out[place] = static_cast<float>(SumOf(pool, x, lines, columns) / static_cast<double>(members));
    } else {
      out[place] = x[FirstLargest(pool, x, lines, columns)];
    }
  });
}

void PoolPlaneBack(const Pooling& pool, const float* x, const float* from, float* to) {
  std::fill_n(to, pool.in_plane(), 0.0F);
  if (!pool.average && pool.down.Pairs() && pool.across.Pairs()) {
    for (std::int64_t y = 0; y < pool.down.places; ++y) {
      const std::int64_t upper = 2 * y * pool.across.length;
      const std::int64_t lower = upper + pool.across.length;
      GiveToFours(pool.across.places, from + y * pool.across.places, x + upper, x + lower, to + upper,
                  to + lower);
    }
    return;
  }
  ForEachWindow(pool, [&](std::int64_t place, Range lines, Range columns) {
    const std::int64_t members = lines.Count() * columns.Count();
    if (members == 0) return;
    if (!pool.average) {
      to[FirstLargest(pool, x, lines, columns)] += from[place];
      return;
    }
    const float share = from[place] / static_cast<float>(members);
    for (std::int64_t line = lines.first; line < lines.last; ++line) {
      float* row = to + line * pool.across.length;
      for (std::int64_t i = columns.first; i < columns.last; ++i) row[i] += share;
    }
  });
}

absl::Status Pool(OpRun& run) {
  const Pooling pool = PoolingOf(run.op(), run.In("X").dims(), run.Out("Out").dims());
  const float* x = run.In("X").data<float>();
  float* out = run.Out("Out").data<float>();
  ForEachPlane(pool, [&](std::int64_t plane) {
    PoolPlane(pool, x + plane * pool.in_plane(), out + plane * pool.out_plane());
  });
  return absl::OkStatus();
}

absl::Status PoolGradient(OpRun& run) {
  if (!run.HasOut("X@GRAD")) return absl::OkStatus();
  const Pooling pool = PoolingOf(run.op(), run.In("X").dims(), run.In("Out@GRAD").dims());
  const float* x = run.In("X").data<float>();
  const float* from = run.In("Out@GRAD").data<float>();
  float* to = run.Out("X@GRAD").data<float>();
  ForEachPlane(pool, [&](std::int64_t plane) {
    const std::int64_t in = plane * pool.in_plane();
    PoolPlaneBack(pool, x + in, from + plane * pool.out_plane(), to + in);
  });
  return absl::OkStatus();
}

}  // namespace

void AddPoolKernels(KernelTable& table) {
  table.Add("pool2d", Pool);
  table.Add("pool2d_grad", PoolGradient);
}

}  // namespace trainyard::graph
