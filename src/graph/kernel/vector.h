// Loops that the compiler turns into vector instructions. It makes one version for processors with wide
// registers and one for all others; the right one is taken when the program is loaded.
#pragma once

#include <cstdint>

// Before a function whose loops are worth it.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && !defined(TRAINYARD_SANITIZED)
#define TY_VECTOR __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define TY_VECTOR
#endif

// Before a loop whose steps do not depend on each other: what one writes, no other reads. An output may be
// the very memory of an input.
#if defined(__clang__)
#define TY_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define TY_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace trainyard::graph {

// Elements of a part that is worth a thread of its own.
inline constexpr std::int64_t kGrain = 32768;

}  // namespace trainyard::graph
