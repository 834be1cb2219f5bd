// How a user lets a node fail: an annotation of its object that its agent obeys.
#pragma once

#include <string_view>

namespace trainyard::node {

inline constexpr std::string_view kNodeStateAnnotation =
    "trainyard.dev/node-state";  // "killed", "stopped", or absent

}  // namespace trainyard::node
