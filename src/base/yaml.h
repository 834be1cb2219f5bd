// YAML as users write it, read into the same documents as JSON.
#pragma once

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/document.h"

namespace trainyard {

// The documents of a stream, those that are empty left out. Anchors and aliases are resolved, within a bound
// on what they grow to; << merges. Scalars without quotes have the types that YAML 1.1 gives them in
// Kubernetes' own tools: null, bools (also yes, no, on, off, y and n, in keys too), whole and floating-point
// numbers (a whole value is a whole number: 3.0 is 3). InvalidArgument: what is wrong and at which line and
// column; also for a key that is given twice.
absl::StatusOr<std::vector<Document>> ParseYaml(std::string_view text);

// JSON is YAML; this is the faster way for what begins like JSON, and the other for all else.
absl::StatusOr<std::vector<Document>> ParseJsonOrYaml(std::string_view text);

// One document, as `kubectl -o yaml` prints it: keys in their order, two spaces, long texts folded, no
// document marks.
std::string PrintYaml(const Document& document);

}  // namespace trainyard
