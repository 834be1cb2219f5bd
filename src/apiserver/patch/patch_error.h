// What a client hears when its patch cannot be used: the codes and reasons of a Kubernetes API server.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace trainyard::apiserver {

// 400 BadRequest: the patch is not a patch.
absl::Status BadPatch(std::string message);
// 422 Invalid: a patch, but not one that this object can take.
absl::Status UnfitPatch(std::string message);
// 413 RequestEntityTooLarge.
absl::Status PatchTooLarge(std::string message);
// The same: the request's budget does not pay for `what`.
absl::Status OverBudget(std::string_view what);

}  // namespace trainyard::apiserver
