#include "graph/kernel/threads.h"

#include <algorithm>

extern "C" {
void omp_set_num_threads(int threads);
int omp_get_max_threads();
}

namespace trainyard::graph {

void SetThreads(int threads) { omp_set_num_threads(std::max(1, threads)); }

int Threads() { return omp_get_max_threads(); }

void ParallelFor(std::int64_t count, std::int64_t grain,
                 absl::FunctionRef<void(std::int64_t begin, std::int64_t end)> work) {
  if (count <= 0) return;
  const std::int64_t parts = std::clamp<std::int64_t>(count / std::max<std::int64_t>(1, grain), 1, Threads());
  if (parts == 1) return work(0, count);
  const std::int64_t size = (count + parts - 1) / parts;
  [[maybe_unused]] const int team = static_cast<int>(parts);
#ifdef _OPENMP
#pragma omp parallel for schedule(static) num_threads(team)
#endif
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::int64_t begin = part * size;
    if (begin < count) work(begin, std::min(count, begin + size));
  }
}

}  // namespace trainyard::graph
