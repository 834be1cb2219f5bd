// The rules by which a custom resource's schema is structural: what it says of types stands outside of its
// alternatives, so that defaults and pruning never depend on which alternative holds.
#pragma once

#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apiserver/schema/field_error.h"
#include "apiserver/schema/schema.h"

namespace trainyard::apiserver {

// Where a schema stands in the one around it.
enum class SchemaPlace : std::uint8_t { kRoot, kField, kItems, kAlternative };

// InvalidArgument: what is wrong with this node; its children have been checked.
absl::Status CheckStructural(const Schema& schema, const FieldPath& path, SchemaPlace place);

// InvalidArgument: the default has fields that the schema does not know, or does not validate.
absl::Status CheckDefault(const Schema& schema, const FieldPath& path);

// Gives an object that is a resource its apiVersion, kind and metadata. What the schema says of metadata.name
// is kept beside what every object's metadata has to be.
void AddObjectFields(Schema& schema);

// InvalidArgument: why RE2 does not take it.
absl::StatusOr<std::shared_ptr<const re2::RE2>> CompilePattern(std::string_view pattern);

}  // namespace trainyard::apiserver
