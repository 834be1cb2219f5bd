#include "apiserver/errors.h"

#include "base/status.h"
#include "base/text.h"

namespace trainyard::apiserver {
namespace {

kube::ApiError About(const ResourceInfo& resource, std::string_view name, int code, std::string_view reason,
                     std::string message) {
  return {.code = code,
          .reason = std::string(reason),
          .message = std::move(message),
          .group = resource.group,
          .kind = resource.plural,
          .name = std::string(name)};
}

// `pods "x"`, `tfjobs.kubeflow.org "x"`
std::string Named(const ResourceInfo& resource, std::string_view name) {
  return StrCat(resource.plural, resource.group.empty() ? "" : ".", resource.group, " \"", name, "\"");
}

}  // namespace

kube::ApiError BadRequest(std::string_view message) {
  return {.code = 400, .reason = "BadRequest", .message = std::string(message)};
}

kube::ApiError NoSuchPath(std::string_view path) {
  return {.code = 404,
          .reason = "NotFound",
          .message = StrCat("the server could not find the requested resource: nothing is served at ",
                            Escaped(path))};
}

kube::ApiError NotFound(const ResourceInfo& resource, std::string_view name) {
  return About(resource, name, 404, "NotFound", StrCat(Named(resource, name), " not found"));
}

kube::ApiError AlreadyExists(const ResourceInfo& resource, std::string_view name) {
  return About(resource, name, 409, "AlreadyExists", StrCat(Named(resource, name), " already exists"));
}

kube::ApiError Conflict(const ResourceInfo& resource, std::string_view name, std::string_view message) {
  return About(resource, name, 409, "Conflict", StrCat(Named(resource, name), " ", message));
}

kube::ApiError Invalid(const ResourceInfo& resource, std::string_view name, std::vector<kube::Cause> causes) {
  std::string message = StrCat(resource.kind, resource.group.empty() ? "" : ".", resource.group, " \"", name,
                               "\" is invalid: ");
  const bool many = causes.size() > 1;
  if (many) message += '[';
  for (std::size_t at = 0; at < causes.size(); ++at) {
    StrAppend(message, at == 0 ? "" : ", ", causes[at].field, causes[at].field.empty() ? "" : ": ",
              causes[at].message);
  }
  if (many) message += ']';
  kube::ApiError error = About(resource, name, 422, "Invalid", std::move(message));
  error.kind = resource.kind;
  error.causes = std::move(causes);
  return error;
}

kube::ApiError Forbidden(const ResourceInfo& resource, std::string_view name, std::string_view message) {
  return About(resource, name, 403, "Forbidden", StrCat(Named(resource, name), " is forbidden: ", message));
}

kube::ApiError Expired(std::string_view message) {
  return {.code = 410, .reason = "Expired", .message = std::string(message)};
}

kube::ApiError MethodNotAllowed(std::string_view method, std::string_view what) {
  return {.code = 405,
          .reason = "MethodNotAllowed",
          .message = StrCat("the server does not allow ", Escaped(method), " on ", Escaped(what))};
}

kube::ApiError UnsupportedMediaType(std::string_view got, std::string_view supported) {
  return {.code = 415,
          .reason = "UnsupportedMediaType",
          .message = StrCat("the body of the request is ", got.empty() ? "of no stated type" : Escaped(got),
                            "; what can be read is: ", supported)};
}

kube::ApiError NotAcceptable(std::string_view supported) {
  return {.code = 406, .reason = "NotAcceptable", .message = StrCat("what can be sent is: ", supported)};
}

kube::ApiError TooLargeResourceVersion(std::int64_t asked, std::int64_t newest) {
  return {.code = 504,
          .reason = "Timeout",
          .message = StrCat("Too large resource version: ", asked, ", current: ", newest),
          .causes = {{.reason = "ResourceVersionTooLarge", .message = "Too large resource version"}},
          .retry_after = absl::Seconds(1)};
}

kube::ApiError TooLarge() {
  return {.code = 413,
          .reason = "RequestEntityTooLarge",
          .message = "the object is too large for the store, which takes 1.5 MiB of one; make it smaller"};
}

kube::ApiError FromStore(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
      return {.code = 503,
              .reason = "ServiceUnavailable",
              .message = StrCat("the store cannot be reached: ", Message(status)),
              .retry_after = absl::Seconds(1)};
    case absl::StatusCode::kResourceExhausted:
      return {.code = 507, .reason = "InsufficientStorage", .message = std::string(Message(status))};
    case absl::StatusCode::kInvalidArgument:
      return TooLarge();
    default:
      return {
          .code = 500, .reason = "InternalError", .message = StrCat("the store failed: ", Message(status))};
  }
}

kube::ApiError FromStatus(const absl::Status& status) {
  if (auto error = kube::ToApiError(status)) return *std::move(error);
  if (status.code() == absl::StatusCode::kInvalidArgument) return BadRequest(Message(status));
  return {.code = 500, .reason = "InternalError", .message = std::string(Message(status))};
}

kube::Response PrintRefusal(int code, std::string_view message) {
  const auto reason = [&]() -> std::string_view {
    switch (code) {
      case 401:
        return "Unauthorized";
      case 408:
        return "Timeout";
      case 413:
        return "RequestEntityTooLarge";
      case 415:
        return "UnsupportedMediaType";
      case 429:
        return "TooManyRequests";
      case 500:
        return "InternalError";
      default:
        return "BadRequest";
    }
  };
  return kube::ToResponse({.code = code, .reason = std::string(reason()), .message = std::string(message)});
}

}  // namespace trainyard::apiserver
