#include "graph/kernel/finite.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "graph/kernel/vector.h"

namespace trainyard::graph {

// The bits of a non-finite number, without its sign, are those of infinity or more.
TY_VECTOR bool AllFinite(absl::Span<const float> elements) {
  std::uint32_t most = 0;
  for (const float element : elements)
    most = std::max(most, std::bit_cast<std::uint32_t>(element) & 0x7fffffffU);
  return most < 0x7f800000U;
}

}  // namespace trainyard::graph
