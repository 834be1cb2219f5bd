// Comparing what somebody shows with a secret.
#pragma once

#include <string_view>

namespace trainyard {

// Takes the same time wherever they differ, so that nobody can find a secret out byte by byte.
inline bool SameSecret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  return difference == 0;
}

}  // namespace trainyard
