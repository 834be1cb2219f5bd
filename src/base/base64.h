// Base 64, as certificates in a kubeconfig and the data of secrets are written.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace trainyard {

// The standard alphabet, with padding and without line breaks.
std::string EncodeBase64(std::string_view bytes);

// White space is passed over, and padding may be missing. InvalidArgument: which byte is wrong.
absl::StatusOr<std::string> DecodeBase64(std::string_view text);

}  // namespace trainyard
