#include "client/gateway_errors.h"

#include <optional>

#include "base/document.h"
#include "base/status.h"
#include "base/text.h"
#include "kube/error.h"

namespace trainyard::client {
namespace {

constexpr std::size_t kMostShown = 200;  // of a page that is not meant for us

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

Verdict NotMade(std::string_view where, std::string_view why) {
  return {Outcome::kNotMade,
          absl::UnavailableError(StrCat(where, " cannot be reached (", why,
                                        "): check that it runs and that the address is right"))};
}

Verdict Unknown(std::string_view where, std::string_view why) {
  return {Outcome::kUnknown,
          absl::UnknownError(StrCat(where, " did not answer (", why,
                                    "): the request may or may not have been carried out"))};
}

Verdict Refused(absl::Status status) { return {Outcome::kRefused, std::move(status)}; }

Verdict JudgeTransport(const absl::Status& status, std::string_view where) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
      return NotMade(where, Message(status));
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kResourceExhausted:
      return Unknown(where, Message(status));
    default:
      return Refused(Annotate(status, where));
  }
}

// What the API server says of its own, before or instead of the store.
Verdict JudgeApiServer(const kube::ApiError& error, std::string_view where) {
  switch (error.code) {
    case 401:
    case 403:
      return Refused(absl::PermissionDeniedError(
          StrCat(where, " cannot be reached: the API server does not let this user through (", error.message,
                 "); grant it services/proxy")));
    case 404:  // the service, or what is behind it, may be on its way
    case 429:
      return NotMade(where, error.message);
    case 503:
      // Only where no connection was made is it certain that nothing was sent.
      if (Contains(error.message, "error trying to reach service") && !Contains(error.message, "dial "))
        return Unknown(where, error.message);
      return NotMade(where, error.message);
    default:
      if (error.code >= 500) return Unknown(where, error.message);
      return Refused(absl::FailedPreconditionError(
          StrCat(where, " cannot be asked through the API server: ", error.message)));
  }
}

// Something on the way that speaks neither for the store nor for the API server.
Verdict JudgeStranger(const kube::Response& response, std::string_view where) {
  const std::string why = StrCat("HTTP ", response.code, " ", Shortened(Escaped(response.body), kMostShown));
  if (response.code == 401 || response.code == 403) {
    return Refused(absl::PermissionDeniedError(StrCat(where, " does not let us in (", why, ")")));
  }
  if (response.code == 429) return NotMade(where, why);
  if (response.code >= 500) return Unknown(where, why);
  return Refused(absl::UnimplementedError(
      StrCat(where, " is no gateway of an etcd 3.4 or later (", why, "): check the address")));
}

absl::Status RefusalStatus(std::int64_t code, std::string_view message, std::string_view where,
                           kv::Revision asked) {
  if (Contains(message, "has been compacted")) return kv::CompactedError(asked, 0);
  if (Contains(message, "is a future revision")) return kv::FutureRevisionError(asked, 0);
  if (Contains(message, "requested lease not found")) {
    return absl::NotFoundError("the lease does not exist: it was revoked or its time ran out");
  }
  if (Contains(message, "permission denied") || Contains(message, "user name is empty") ||
      Contains(message, "user name not found")) {
    return absl::PermissionDeniedError(StrCat(where, " does not let us do that (", message, ")"));
  }
  if (Contains(message, "database space exceeded")) {
    return absl::ResourceExhaustedError(
        StrCat(where, " is full: compact and defragment it, or raise its quota"));
  }
  constexpr std::int64_t kLastCode = 16;
  const bool known = code > 0 && code <= kLastCode;
  return {known ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kInternal,
          StrCat(where, ": ", message)};
}

}  // namespace

Verdict JudgeGrpc(std::int64_t code, std::string_view message, std::string_view where, kv::Revision asked) {
  switch (static_cast<absl::StatusCode>(code)) {
    case absl::StatusCode::kUnavailable:
      if (Contains(message, "no leader") || Contains(message, "onnection refused"))
        return NotMade(where, message);
      return Unknown(where, message);
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kInternal:
      return Unknown(where, message);
    case absl::StatusCode::kUnauthenticated:
      return Refused(absl::PermissionDeniedError(StrCat(
          where, " wants a token, or not the one that it was given (", message, "): check the token")));
    default:
      if (Contains(message, "too many requests")) return NotMade(where, message);
      return Refused(RefusalStatus(code, message, where, asked));
  }
}

Verdict Judge(const absl::StatusOr<kube::Response>& answer, std::string_view where, kv::Revision asked) {
  if (!answer.ok()) return JudgeTransport(answer.status(), where);
  if (answer->code >= 200 && answer->code < 300) return {};
  const auto body = ParseJson(answer->body);
  if (!body.ok()) return JudgeStranger(*answer, where);
  if (StringAt(*body, {"kind"}) == "Status")
    return JudgeApiServer(kube::ToApiError(kube::ToStatus(*answer)).value_or(kube::ApiError{}), where);
  const auto code = IntAt(*body, {"code"});
  if (!code) return JudgeStranger(*answer, where);
  return JudgeGrpc(*code, StringAt(*body, {"message"}, StringAt(*body, {"error"})), where, asked);
}

}  // namespace trainyard::client
