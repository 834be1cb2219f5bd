// What is wrong with a program or with what somebody wants of one, in one sentence.
#pragma once

#include "absl/status/status.h"
#include "base/text.h"

namespace trainyard::graph {

// InvalidArgument; the parts are put one behind the other.
template <typename... Parts>
absl::Status Wrong(const Parts&... parts) {
  return absl::InvalidArgumentError(StrCat(parts...));
}

}  // namespace trainyard::graph
