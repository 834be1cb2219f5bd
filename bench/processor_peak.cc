// How fast one core of this processor can multiply and add, if nothing else is to be done.
#include "bench/graph.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace trainyard::bench {
namespace {

#if defined(__x86_64__)

constexpr int kChains = 12;  // sums that do not wait for each other: two units, each some cycles deep
constexpr int kLinks = 10000;

// Operations of one call.
__attribute__((target("avx512f"))) double Chains512() {
  const __m512 factor = _mm512_set1_ps(0.5F);
  __m512 sums[kChains];
  for (__m512& sum : sums) sum = factor;
  for (int link = 0; link < kLinks; ++link) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) sums[i] = _mm512_fmadd_ps(sums[i], factor, factor);
  }
  volatile float kept = 0;
  for (const __m512& sum : sums) kept = kept + _mm512_cvtss_f32(sum);
  return 2.0 * 16 * kChains * kLinks;
}

__attribute__((target("avx2,fma"))) double Chains256() {
  const __m256 factor = _mm256_set1_ps(0.5F);
  __m256 sums[kChains];
  for (__m256& sum : sums) sum = factor;
  for (int link = 0; link < kLinks; ++link) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) sums[i] = _mm256_fmadd_ps(sums[i], factor, factor);
  }
  volatile float kept = 0;
  for (const __m256& sum : sums) kept = kept + _mm256_cvtss_f32(sum);
  return 2.0 * 8 * kChains * kLinks;
}

#endif

}  // namespace

absl::StatusOr<double> ProcessorPeak(absl::Duration time) {
#if defined(__x86_64__)
  double (*chains)() = nullptr;
  if (__builtin_cpu_supports("fma")) chains = Chains256;
  if (__builtin_cpu_supports("avx512f")) chains = Chains512;
  if (chains != nullptr) {
    const double operations = chains();
    return operations * CpuRate(time, [&] { (void)chains(); });
  }
#endif
  return absl::UnimplementedError("this processor's peak is not known: it has no fused multiply-add");
}

}  // namespace trainyard::bench
