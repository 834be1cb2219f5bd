// What an API server answers when it does not do what it was asked: code, reason and message, carried as an
// absl::Status through the client and printed as a `Status` object by the embedded server.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "kube/http.h"

namespace trainyard::kube {

// One thing that is wrong with one field of an object.
struct Cause {
  std::string reason;  // "FieldValueRequired", "FieldValueInvalid", ...
  std::string field;   // "spec.containers[0].name"
  std::string message;
  bool operator==(const Cause&) const = default;
};

struct ApiError {
  int code = 500;
  std::string reason;  // "NotFound", "AlreadyExists", "Conflict", "Expired", "Invalid", ...
  std::string message;
  // Which object, where it is known.
  std::string group;
  std::string kind;
  std::string name;
  std::string uid;
  std::vector<Cause> causes;
  std::optional<absl::Duration> retry_after;
  bool operator==(const ApiError&) const = default;
};

// The status that stands for it; ToApiError() finds it again. 404 NotFound; 409 AlreadyExists (reason
// AlreadyExists) or Aborted (Conflict); 410 OutOfRange; 400 and 422 InvalidArgument; 401 Unauthenticated; 403
// PermissionDenied; 429 and 503 Unavailable; 504 DeadlineExceeded; all else Internal or Unknown.
absl::Status ToStatus(const ApiError& error);
// The error that an answer reports, also where its body is no Status object; OK if its code is 2xx.
absl::Status ToStatus(const Response& response);
// Null if the status does not come from an API server.
std::optional<ApiError> ToApiError(const absl::Status& status);

// The answer that reports it.
Response ToResponse(const ApiError& error);

// What the server said, never what happened on the way to it. Written with kube:: before them: absl has two
// of these names too.
bool IsNotFound(const absl::Status& status);
bool IsAlreadyExists(const absl::Status& status);
bool IsConflict(const absl::Status& status);  // 409, but not AlreadyExists
bool IsGone(const absl::Status& status);      // 410: list again

}  // namespace trainyard::kube
