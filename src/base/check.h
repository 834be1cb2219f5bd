// Ends the process on what only a bug can cause. What the world can do is returned as a Status.
#pragma once

#include <string_view>

namespace trainyard {

// Says what is wrong on standard error and in the pod's termination message, and aborts.
[[noreturn]] void CheckFailed(std::string_view condition, std::string_view what, const char* file, int line);

// What a pod's status says of the end of this process, where there is a kubelet that reads it.
void WriteTerminationLog(std::string_view message);

// For main(): an abort ends also process 1 of a container, which the kernel does not kill by signals, with
// 134.
void EndByAborts();

}  // namespace trainyard

#define TY_CHECK(condition, what)                                       \
  do {                                                                  \
    if (!(condition)) [[unlikely]]                                      \
      ::trainyard::CheckFailed(#condition, (what), __FILE__, __LINE__); \
  } while (false)
