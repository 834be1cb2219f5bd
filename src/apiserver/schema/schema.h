// What objects of a kind look like: the structural schema of a CustomResourceDefinition, and of our built-in
// kinds, which are written in the same terms (apiserver/schema/kinds/). Validation, defaults, pruning,
// strategic merge, server-side apply, OpenAPI and `kubectl explain` all read this one tree.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "apiserver/budget.h"
#include "base/document.h"
#include "kube/error.h"

namespace re2 {
class RE2;
}  // namespace re2

namespace trainyard::apiserver {

struct Schema;
// Shared: one definition (a pod's spec) stands in many kinds. Never changed once it is built.
using SchemaPtr = std::shared_ptr<const Schema>;

enum class SchemaType : std::uint8_t {
  kAny,
  kObject,
  kArray,
  kString,
  kInteger,
  kNumber,
  kBoolean,
  kIntOrString
};
// "object"; "any" and "integer,string" where OpenAPI has no word.
std::string_view TypeName(SchemaType type);
enum class ListType : std::uint8_t { kAtomic, kSet, kMap };

// Where a field stands in the protobuf message of a built-in kind.
using WirePath = std::vector<std::uint32_t>;
struct WireField {
  WirePath path;             // more than one number: within messages that JSON does not show
  bool zero_counts = false;  // 0, false and "" are values; of others they mean that the field is missing
  std::string property;
};

struct Schema {
  SchemaType type = SchemaType::kAny;
  std::string name;  // of a shared definition: "io.k8s.api.core.v1.Container"; for OpenAPI and explain
  std::string description;
  std::string format;  // "int32", "int64", "date-time", "quantity", "byte", ...
  bool nullable = false;
  bool preserve_unknown = false;   // x-kubernetes-preserve-unknown-fields
  bool embedded_resource = false;  // x-kubernetes-embedded-resource
  // Stands where a definition contains itself (JSONSchemaProps): only `name` counts, any value is taken.
  bool recursive = false;

  std::map<std::string, SchemaPtr, std::less<>> properties;
  std::vector<std::string> required;
  std::vector<WireField> wire;  // of the properties; empty: it is not known in protobuf
  SchemaPtr additional;         // additionalProperties: a map's values
  SchemaPtr items;

  std::optional<Document> default_value;
  // 0 and "" count as missing, as they do in built-in kinds, whose fields have no other way to be missing.
  bool zero_is_missing = false;

  // Lists and maps in server-side apply.
  ListType list_type = ListType::kAtomic;
  std::vector<std::string> list_keys;  // of kMap
  // Two items with the same key, or the same item twice in a set, are an error. Of custom resources only:
  // a built-in list says for itself what may stand in it twice.
  bool unique_keys = false;
  bool atomic_map = false;  // x-kubernetes-map-type: atomic
  // Strategic merge: the key by which a list's items are the same item; "" with merge_primitives for sets;
  // both empty: the list is replaced whole.
  std::string merge_key;
  bool merge_primitives = false;
  bool retain_keys = false;

  // What a value must hold.
  std::vector<Document> one_of_values;  // enum
  std::optional<double> minimum;
  std::optional<double> maximum;
  bool exclusive_minimum = false;
  bool exclusive_maximum = false;
  std::optional<double> multiple_of;
  std::optional<std::int64_t> min_length;
  std::optional<std::int64_t> max_length;
  std::optional<std::int64_t> min_items;
  std::optional<std::int64_t> max_items;
  std::optional<std::int64_t> min_properties;
  std::optional<std::int64_t> max_properties;
  bool unique_items = false;
  std::string pattern;                    // ECMA-like, as RE2 reads it
  std::shared_ptr<const re2::RE2> regex;  // the pattern, compiled once
  std::vector<SchemaPtr> all_of;
  std::vector<SchemaPtr> any_of;
  std::vector<SchemaPtr> one_of;
  SchemaPtr negated;
  Array rules;  // x-kubernetes-validations: kept and shown, not evaluated
};

// Schemas nest this deep at most, so that nothing that walks one can exhaust the stack.
inline constexpr int kMaxSchemaDepth = 64;

// Reads `openAPIV3Schema` of a CustomResourceDefinition. apiVersion, kind and metadata are added where the
// schema leaves them out, at the root and in embedded resources. InvalidArgument: what is not structural,
// with its path. What is accepted but not obeyed (CEL rules) is told in `warnings`.
absl::StatusOr<SchemaPtr> ParseOpenApiSchema(const Document& document,
                                             std::vector<std::string>* warnings = nullptr);

// The schema as an OpenAPI document, all of it inline. V2 leaves out what kubectl before 1.27 cannot read:
// alternatives, nullable types, and the fields of what keeps unknown ones.
enum class OpenApiVersion : std::uint8_t { kV2, kV3 };
Document ToOpenApi(const Schema& schema, OpenApiVersion version = OpenApiVersion::kV3);

// Fills in what is missing and has a default, also in what the defaults themselves bring. A null where the
// schema allows none counts as missing: it gets the default or goes away. Idempotent. False: the budget does
// not pay for all of them; some were left out.
[[nodiscard]] bool ApplyDefaults(const Schema& schema, Document& value, Budget& budget);
[[nodiscard]] inline bool ApplyDefaults(const Schema& schema, Document& value) {
  Budget budget;
  return ApplyDefaults(schema, value, budget);
}

// Removes what the schema does not know; returns the paths of what was removed ("spec.foo"), in the order in
// which they stood, for the warning or the error of strict field validation. The budget pays for the paths;
// once it is overdrawn, what is removed has no path. Idempotent.
std::vector<std::string> Prune(const Schema& schema, Document& value, Budget& budget);
inline std::vector<std::string> Prune(const Schema& schema, Document& value) {
  Budget budget;
  return Prune(schema, value, budget);
}

// Everything that is wrong with the value, in order of the fields; at most `most` causes. Unknown fields are
// not wrong. The usual order is Prune, ApplyDefaults, Validate.
std::vector<kube::Cause> Validate(const Schema& schema, const Document& value, std::size_t most = 16);

}  // namespace trainyard::apiserver
