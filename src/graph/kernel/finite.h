// NaNs and infinities among elements.
#pragma once

#include "absl/types/span.h"

namespace trainyard::graph {

// Whether there are none.
bool AllFinite(absl::Span<const float> elements);

}  // namespace trainyard::graph
