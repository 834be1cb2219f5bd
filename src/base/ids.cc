#include "base/ids.h"

#include <sys/random.h>

#include "absl/strings/str_format.h"
#include "base/check.h"

namespace trainyard {

IdSource IdSource::Random() {
  std::uint64_t seed = 0;
  TY_CHECK(getrandom(&seed, sizeof seed, 0) == sizeof seed, "the system has no entropy");
  return IdSource(seed);
}

std::uint64_t IdSource::Next() {
  MutexLock lock(mu_);
  return engine_();
}

std::uint64_t IdSource::Below(std::uint64_t bound) {
  TY_CHECK(bound > 0, "an empty range has no element");
  // Reject the short last stretch, or low numbers would come up more often.
  const std::uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
  std::uint64_t value = Next();
  while (value >= limit) value = Next();
  return value % bound;
}

std::string IdSource::Uuid() {
  const std::uint64_t high = (Next() & ~0xf000ULL) | 0x4000ULL;
  const std::uint64_t low = (Next() & ~(3ULL << 62)) | (2ULL << 62);
  return absl::StrFormat("%08x-%04x-%04x-%04x-%012x", high >> 32, (high >> 16) & 0xffff, high & 0xffff,
                         low >> 48, low & 0xffffffffffffULL);
}

std::string IdSource::Suffix(int length) {
  static constexpr std::string_view kAlphabet = "bcdfghjklmnpqrstvwxz2456789";
  std::string suffix;
  for (int i = 0; i < length; ++i) suffix.push_back(kAlphabet[Below(kAlphabet.size())]);
  return suffix;
}

}  // namespace trainyard
