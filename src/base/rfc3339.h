// Time as Kubernetes writes it: points of time in objects, and ages in tables.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace trainyard {

// "2024-05-01T10:00:00Z": what most fields have; parts of a second are cut off.
std::string PrintTime(absl::Time time);
// "2024-05-01T10:00:00.123456Z": leases and the newer events.
std::string PrintMicroTime(absl::Time time);
// Either of them, with any offset and any number of digits behind the point. InvalidArgument names the text.
absl::StatusOr<absl::Time> ParseTime(std::string_view text);

// How kubectl prints an age: "5s", "2m3s", "45m", "3h12m", "2d4h", "400d", "2y31d"; two figures, and one
// where the second says little. "<invalid>" if it lies in the future by more than two clocks may differ.
std::string PrintAge(absl::Duration age);

}  // namespace trainyard
