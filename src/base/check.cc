#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace trainyard {

void CheckFailed(std::string_view condition, std::string_view what, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: bug: %.*s (%.*s does not hold)\n", file, line, static_cast<int>(what.size()),
               what.data(), static_cast<int>(condition.size()), condition.data());
  std::abort();
}

}  // namespace trainyard
