// JSON as it is written: the agent's answers are small and flat.
#pragma once

#include <string>
#include <string_view>

namespace trainyard::agent {

// In quotes, escaped. Bytes that are no UTF-8 become U+FFFD: paths and names may hold anything, JSON may not.
std::string Quote(std::string_view text);

}  // namespace trainyard::agent
