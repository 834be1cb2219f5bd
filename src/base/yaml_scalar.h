// What a YAML scalar without quotes means to Kubernetes' tools.
#pragma once

#include <string>
#include <string_view>

#include "base/document.h"

namespace trainyard {

// null, a bool, a whole number, a floating-point number, or the text itself. As in YAML 1.1, yes, no, on,
// off, y and n are bools, and 017 is 15. Infinities and what is no number are doubles that JSON cannot hold.
Document ResolveScalar(std::string_view text);

// Whether the text, written without quotes, would be read as something else by any tool that reads YAML 1.1:
// also times and numbers to the base of sixty.
bool NeedsQuotes(std::string_view text);

// The shortest digits that give the number back, as "1.5" or "1.5e+21".
std::string PrintDouble(double number);

}  // namespace trainyard
