// The scale subresource of custom resources: their replicas, shown and set through autoscaling/v1 Scale.
// Pure.
#pragma once

#include "absl/status/statusor.h"
#include "apiserver/resources.h"
#include "base/document.h"

namespace trainyard::apiserver {

// The Scale that an object has.
Document ScaleOf(const ScalePaths& paths, const Document& object);

// The object with the replicas that the Scale asks for. InvalidArgument: spec.replicas is missing or
// negative.
absl::StatusOr<Document> WithScale(const ScalePaths& paths, Document object, const Document& scale);

}  // namespace trainyard::apiserver
