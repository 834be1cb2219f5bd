// Threads inside one operator. The library that multiplies matrices brings a pool of its own (OpenMP's);
// everything else uses the same one, or the two would fight for the processors.
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"

namespace trainyard::graph {

// How many threads the operators that this thread runs may use; at least 1.
void SetThreads(int threads);
int Threads();

// Calls `work(begin, end)` for parts of [0, count), each of at least `grain` but for the last, on up to
// Threads() threads, and returns when all are done.
void ParallelFor(std::int64_t count, std::int64_t grain,
                 absl::FunctionRef<void(std::int64_t begin, std::int64_t end)> work);

}  // namespace trainyard::graph
