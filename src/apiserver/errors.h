// The API server's refusals. Each message says what, which object, and what to do next.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "apiserver/resources.h"
#include "kube/error.h"

namespace trainyard::apiserver {

kube::ApiError BadRequest(std::string_view message);
kube::ApiError NoSuchPath(std::string_view path);
kube::ApiError NotFound(const ResourceInfo& resource, std::string_view name);
kube::ApiError AlreadyExists(const ResourceInfo& resource, std::string_view name);
// `message` goes on after the object's name.
kube::ApiError Conflict(const ResourceInfo& resource, std::string_view name, std::string_view message);
kube::ApiError Invalid(const ResourceInfo& resource, std::string_view name, std::vector<kube::Cause> causes);
kube::ApiError Forbidden(const ResourceInfo& resource, std::string_view name, std::string_view message);
kube::ApiError Expired(std::string_view message);
kube::ApiError MethodNotAllowed(std::string_view method, std::string_view what);
kube::ApiError UnsupportedMediaType(std::string_view got, std::string_view supported);
kube::ApiError NotAcceptable(std::string_view supported);
kube::ApiError TooLargeResourceVersion(std::int64_t asked, std::int64_t newest);

// The object, perhaps only with its defaults, is larger than the store takes.
kube::ApiError TooLarge();
// What the store could not do, as an answer: 503 to be tried again, 507 when the disk is full, 500 else.
kube::ApiError FromStore(const absl::Status& status);

// Any status of ours as an answer: the ApiError that it carries, or what stands closest to it.
kube::ApiError FromStatus(const absl::Status& status);

// The error of a request that the HTTP server refuses by itself: its ErrorPrinter here.
kube::Response PrintRefusal(int code, std::string_view message);

}  // namespace trainyard::apiserver
