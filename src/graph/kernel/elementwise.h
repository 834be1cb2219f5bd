// What works on each element by itself, and sums over elements that are the same for any number of threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "graph/kernel/tensor.h"
#include "graph/kernel/threads.h"
#include "graph/kernel/vector.h"

namespace trainyard::graph {

// out[i] = f(in[i]...). An input may be the output's own memory.
template <typename F, typename... In>
TY_VECTOR static void MapRun(std::int64_t count, float* out, F f, const In*... in) {
  TY_INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i) out[i] = f(in[i]...);
}

// The same over whole tensors of floats.
template <typename F, typename... Tensors>
void Map(Tensor& out, F f, const Tensors&... in) {
  TY_CHECK(((in.count() == out.count()) && ...), "what goes together by element has as many elements");
  const auto run = [&, to = out.data<float>()](const auto*... from) {
    ParallelFor(out.count(), kGrain, [&](std::int64_t begin, std::int64_t end) {
      MapRun(end - begin, to + begin, f, (from + begin)...);
    });
  };
  run(in.template data<float>()...);
}

// The sum of f(in[i]...), exact to nearly the last bit of a double.
template <typename F, typename... In>
TY_VECTOR static double SumRun(std::int64_t count, F f, const In*... in) {
  constexpr int kLanes = 16;
  double lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] += f(static_cast<double>(in[i + lane])...);
  }
  double sum = 0;
  for (; i < count; ++i) sum += f(static_cast<double>(in[i])...);
  for (const double lane : lanes) sum += lane;
  return sum;
}

// The sum of run(begin, end) over parts of [0, count) that do not depend on the number of threads.
template <typename Run>
double SumOfParts(std::int64_t count, Run run) {
  const std::int64_t parts = (count + kGrain - 1) / kGrain;
  if (parts <= 1) return run(std::int64_t{0}, count);
  std::vector<double> sums(static_cast<std::size_t>(parts));
  ParallelFor(parts, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t part = begin; part < end; ++part)
      sums[static_cast<std::size_t>(part)] = run(part * kGrain, std::min(count, (part + 1) * kGrain));
  });
  double sum = 0;
  for (const double part : sums) sum += part;
  return sum;
}

}  // namespace trainyard::graph
