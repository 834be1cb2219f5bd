// Helpers over absl::Status. A message says what failed, on which object, and what to look at next.
#pragma once

#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace trainyard {

// The status of a failed system call: `what` (with the object), then the system's reason.
absl::Status ErrnoStatus(int error, std::string_view what);

// The message, in std's type.
inline std::string_view Message(const absl::Status& status) {
  return {status.message().data(), status.message().size()};
}

// Puts "context: " before the message and keeps the code and payloads. An OK status stays OK.
absl::Status Annotate(const absl::Status& status, std::string_view context);

namespace internal {
inline absl::Status StatusOf(const absl::Status& status) { return status; }
template <typename T>
absl::Status StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}
}  // namespace internal

}  // namespace trainyard

#define TY_CONCAT_INNER(a, b) a##b
#define TY_CONCAT(a, b) TY_CONCAT_INNER(a, b)

// Returns the error of `expr` (a Status or StatusOr) from the enclosing function, if there is one.
#define TY_RETURN_IF_ERROR(expr)                                      \
  do {                                                                \
    if (const auto& ty_status = (expr); !ty_status.ok()) [[unlikely]] \
      return ::trainyard::internal::StatusOf(ty_status);              \
  } while (false)

// TY_ASSIGN_OR_RETURN(const auto x, F()): x is F's value, or F's error is returned.
#define TY_ASSIGN_OR_RETURN(lhs, expr) TY_ASSIGN_OR_RETURN_INNER(TY_CONCAT(ty_result_, __LINE__), lhs, expr)
#define TY_ASSIGN_OR_RETURN_INNER(result, lhs, expr) \
  auto result = (expr);                              \
  if (!result.ok()) [[unlikely]]                     \
    return std::move(result).status();               \
  lhs = *std::move(result)
