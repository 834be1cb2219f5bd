// RFC 6901: the way to one place in a document, as JSON patches write it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/document.h"

namespace trainyard::apiserver {

// The steps of a pointer, unescaped; none: the whole document. InvalidArgument: what is wrong with it.
absl::StatusOr<std::vector<std::string>> ParseJsonPointer(std::string_view text);

// The index that a step is in an array: digits without a leading zero.
std::optional<std::size_t> ParseArrayIndex(std::string_view step);

// What stands at the end of the steps, or null.
Document* FindByPointer(Document& document, std::span<const std::string> steps);

}  // namespace trainyard::apiserver
