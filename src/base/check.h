// Ends the process on what only a bug can cause. What the world can do is returned as a Status.
#pragma once

#include <string_view>

namespace trainyard {

[[noreturn]] void CheckFailed(std::string_view condition, std::string_view what, const char* file, int line);

}  // namespace trainyard

#define TY_CHECK(condition, what)                                       \
  do {                                                                  \
    if (!(condition)) [[unlikely]]                                      \
      ::trainyard::CheckFailed(#condition, (what), __FILE__, __LINE__); \
  } while (false)
