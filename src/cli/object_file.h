// Objects of a file that a user names with -f.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/document.h"

namespace trainyard::cli {

// What the file has, in YAML or JSON, without what is empty; "-" is standard input.
absl::StatusOr<std::vector<Document>> ReadObjectFile(const std::string& file);
// With the items of lists in the place of the lists.
std::vector<Document> Expand(std::vector<Document> documents);

}  // namespace trainyard::cli
