#include "kube/error.h"

#include <algorithm>

#include "absl/strings/cord.h"
#include "base/document.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::kube {
namespace {

// Where a status keeps the error that it stands for: the JSON of its Status object.
constexpr char kPayload[] = "trainyard.dev/kube.Status";

// Of a body that is no Status object: enough to recognise whose it is.
constexpr std::size_t kShownBytes = 512;

absl::StatusCode CodeOf(const ApiError& error) {
  switch (error.code) {
    case 400:
    case 422:
      return absl::StatusCode::kInvalidArgument;
    case 401:
      return absl::StatusCode::kUnauthenticated;
    case 403:
      return absl::StatusCode::kPermissionDenied;
    case 404:
      return absl::StatusCode::kNotFound;
    case 409:
      return error.reason == "AlreadyExists" ? absl::StatusCode::kAlreadyExists : absl::StatusCode::kAborted;
    case 410:
      return absl::StatusCode::kOutOfRange;
    case 429:
    case 503:
      return absl::StatusCode::kUnavailable;
    case 500:
      return absl::StatusCode::kInternal;
    case 504:
      return absl::StatusCode::kDeadlineExceeded;
    default:
      return absl::StatusCode::kUnknown;
  }
}

std::string_view ReasonOf(int code) {
  switch (code) {
    case 400:
      return "BadRequest";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "NotFound";
    case 405:
      return "MethodNotAllowed";
    case 406:
      return "NotAcceptable";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 413:
      return "RequestEntityTooLarge";
    case 415:
      return "UnsupportedMediaType";
    case 422:
      return "Invalid";
    case 429:
      return "TooManyRequests";
    case 500:
      return "InternalError";
    case 503:
      return "ServiceUnavailable";
    case 504:
      return "Timeout";
    default:
      return "";
  }
}

void AddText(Object& object, std::string_view key, std::string_view text) {
  if (!text.empty()) object[key] = text;
}

Object DetailsOf(const ApiError& error) {
  Object details;
  AddText(details, "name", error.name);
  AddText(details, "group", error.group);
  AddText(details, "kind", error.kind);
  AddText(details, "uid", error.uid);
  for (const Cause& cause : error.causes) {
    if (!details.contains("causes")) details["causes"].emplace_array();
    Object& one = details["causes"].get_array().emplace_back(Object()).get_object();
    AddText(one, "reason", cause.reason);
    AddText(one, "message", cause.message);
    AddText(one, "field", cause.field);
  }
  if (error.retry_after) {
    details["retryAfterSeconds"] = absl::ToInt64Seconds(absl::Ceil(*error.retry_after, absl::Seconds(1)));
  }
  return details;
}

std::string PrintStatusObject(const ApiError& error) {
  Object status{{"kind", "Status"}, {"apiVersion", "v1"}, {"metadata", Object()}, {"status", "Failure"}};
  AddText(status, "message", error.message);
  AddText(status, "reason", error.reason);
  status["details"] = DetailsOf(error);  // empty too: there are clients that look into it unasked
  status["code"] = error.code;
  return PrintJson(status);
}

// Nothing, if the document is not a Status object.
std::optional<ApiError> ParseStatusObject(std::string_view json, int code) {
  const absl::StatusOr<Document> status = ParseJson(json);
  if (!status.ok() || StringAt(*status, {"kind"}) != "Status") return std::nullopt;
  ApiError error;
  error.code = static_cast<int>(std::clamp<std::int64_t>(IntAt(*status, {"code"}).value_or(code), 0, 999));
  error.reason = StringAt(*status, {"reason"});
  error.message = StringAt(*status, {"message"});
  error.group = StringAt(*status, {"details", "group"});
  error.kind = StringAt(*status, {"details", "kind"});
  error.name = StringAt(*status, {"details", "name"});
  error.uid = StringAt(*status, {"details", "uid"});
  if (const Array* causes = ArrayAt(*status, {"details", "causes"})) {
    for (const Document& cause : *causes) {
      error.causes.push_back({.reason = std::string(StringAt(cause, {"reason"})),
                              .field = std::string(StringAt(cause, {"field"})),
                              .message = std::string(StringAt(cause, {"message"}))});
    }
  }
  if (const auto seconds = IntAt(*status, {"details", "retryAfterSeconds"}); seconds && *seconds >= 0) {
    error.retry_after = absl::Seconds(*seconds);
  }
  return error;
}

// What a proxy, or a server that has not come up, says in its own words.
ApiError ForeignError(const Response& response) {
  std::string_view body = response.body;
  while (!body.empty() && static_cast<unsigned char>(body.back()) <= ' ') body.remove_suffix(1);
  const bool cut = body.size() > kShownBytes;
  std::string message = StrCat("the server answered ", response.code);
  if (!body.empty()) {
    StrAppend(message, ": \"", Escaped(body.substr(0, kShownBytes)), cut ? "...\"" : "\"");
  }
  if (response.code >= 300 && response.code < 400) {
    StrAppend(message, "; redirects are not followed, because the credentials are for this server alone");
  }
  return {.code = response.code, .reason = std::string(ReasonOf(response.code)), .message = message};
}

}  // namespace

absl::Status ToStatus(const ApiError& error) {
  absl::Status status(CodeOf(error), error.message);
  status.SetPayload(kPayload, absl::Cord(PrintStatusObject(error)));
  return status;
}

absl::Status ToStatus(const Response& response) {
  if (response.code >= 200 && response.code < 300) return absl::OkStatus();
  std::optional<ApiError> error = ParseStatusObject(response.body, response.code);
  // Whatever it calls itself, the answer was an error of this code.
  if (error && error->code < 300) error->code = response.code;
  if (!error) error = ForeignError(response);
  if (const auto seconds = ParseNumber<std::int64_t>(response.Header("Retry-After"));
      seconds && *seconds >= 0 && !error->retry_after) {
    error->retry_after = absl::Seconds(*seconds);
  }
  return ToStatus(*error);
}

std::optional<ApiError> ToApiError(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayload);
  if (!payload) return std::nullopt;
  return ParseStatusObject(std::string(*payload), 500);
}

Response ToResponse(const ApiError& error) {
  Response response{.code = error.code, .body = PrintStatusObject(error)};
  if (error.retry_after) {
    const std::int64_t seconds = absl::ToInt64Seconds(absl::Ceil(*error.retry_after, absl::Seconds(1)));
    response.headers.emplace_back("Retry-After", std::to_string(seconds));
  }
  return response;
}

namespace {

// The code alone would do, were it not that a file that is missing is NotFound too.
bool IsFromServer(const absl::Status& status, absl::StatusCode code) {
  return status.code() == code && status.GetPayload(kPayload).has_value();
}

}  // namespace

bool IsNotFound(const absl::Status& status) { return IsFromServer(status, absl::StatusCode::kNotFound); }
bool IsAlreadyExists(const absl::Status& status) {
  return IsFromServer(status, absl::StatusCode::kAlreadyExists);
}
bool IsConflict(const absl::Status& status) { return IsFromServer(status, absl::StatusCode::kAborted); }
bool IsGone(const absl::Status& status) { return IsFromServer(status, absl::StatusCode::kOutOfRange); }

}  // namespace trainyard::kube
