// When two JSON values are the same value: numbers by what they count, objects whatever the order of their
// keys.
#pragma once

#include "base/document.h"

namespace trainyard::apiserver {

bool SameValue(const Document& a, const Document& b);

}  // namespace trainyard::apiserver
