// Statuses as Python exceptions.
#pragma once

#include <utility>

#include <pybind11/pybind11.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace trainyard::python {

// Defines trainyard.Error and trainyard.EndOfPass, and what turns Raise() into them.
void AddErrors(pybind11::module_& module);

// Throws what becomes trainyard.Error with the status's message, or EndOfPass for OutOfRange. May be called
// without the interpreter's lock.
[[noreturn]] void Raise(absl::Status status);

inline void Check(absl::Status status) {
  if (!status.ok()) Raise(std::move(status));
}

template <typename T>
T Take(absl::StatusOr<T> result) {
  if (!result.ok()) Raise(std::move(result).status());
  return *std::move(result);
}

}  // namespace trainyard::python
