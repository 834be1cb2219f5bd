// CustomResourceDefinitions: what the server writes into one, what is wrong with one, and the resource that
// it defines. Pure.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "apiserver/resources.h"
#include "base/document.h"
#include "kube/error.h"

namespace trainyard::apiserver {

// It holds a definition until the last of its objects is gone.
inline constexpr std::string_view kDefinitionFinalizer = "customresourcecleanup.apiextensions.k8s.io";

// The names that follow from others, the status with its conditions, the finalizer.
void PrepareDefinition(Document& definition, absl::Time now);

// The same for one that is changed: what the status says of it, and the versions in which objects are stored.
void RefreshDefinition(const Document& live, Document& definition);

// `live` is null for a new one. What may not change afterwards: group, scope, kind and plural.
std::vector<kube::Cause> ValidateDefinition(const Document* live, const Document& definition);

// The resource that it defines. InvalidArgument: which version's schema cannot be used, and why.
absl::StatusOr<std::shared_ptr<const ResourceInfo>> ResourceOf(const Document& definition);

}  // namespace trainyard::apiserver
