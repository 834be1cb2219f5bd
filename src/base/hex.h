// Bytes as text that can be shown and copied.
#pragma once

#include <string>
#include <string_view>

namespace trainyard {

// Two lower-case hexadecimal digits for each byte.
std::string HexBytes(std::string_view bytes);

}  // namespace trainyard
