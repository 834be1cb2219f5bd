#include "apiserver/patch/patch.h"

#include <utility>

#include "apiserver/budget.h"
#include "base/text.h"
#include "kube/error.h"

namespace trainyard::apiserver {

absl::Status BadPatch(std::string message) {
  return kube::ToStatus(kube::ApiError{.code = 400, .reason = "BadRequest", .message = std::move(message)});
}

absl::Status UnfitPatch(std::string message) {
  return kube::ToStatus(kube::ApiError{.code = 422, .reason = "Invalid", .message = std::move(message)});
}

absl::Status PatchTooLarge(std::string message) {
  return kube::ToStatus(
      kube::ApiError{.code = 413, .reason = "RequestEntityTooLarge", .message = std::move(message)});
}

absl::Status OverBudget(std::string_view what) {
  return PatchTooLarge(StrCat("the ", what, " would add more than ", FormatBytes(Budget::kBytes),
                              " to the request; make it smaller"));
}

}  // namespace trainyard::apiserver
