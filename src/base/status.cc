#include "base/status.h"

#include <cerrno>
#include <cstring>

#include "absl/strings/cord.h"
#include "base/text.h"

namespace trainyard {

absl::Status ErrnoStatus(int error, std::string_view what) {
  const std::string message = StrCat(what, ": ", std::strerror(error));
  // absl's own mapping calls a full disk and a quota unavailable; here they are what they are.
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) return absl::ResourceExhaustedError(message);
  if (error == EROFS || error == EACCES || error == EPERM) return absl::PermissionDeniedError(message);
  return {absl::ErrnoToStatusCode(error), message};
}

absl::Status Annotate(const absl::Status& status, std::string_view context) {
  if (status.ok()) return status;
  absl::Status annotated(status.code(), StrCat(context, ": ", status.message()));
  status.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& payload) { annotated.SetPayload(url, payload); });
  return annotated;
}

}  // namespace trainyard
