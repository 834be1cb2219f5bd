// The `format` of a text: what a schema can ask of it beyond being a text.
#pragma once

#include <string_view>

namespace trainyard::apiserver {

// Whether the text is of the format. A format that we do not know accepts everything, as Kubernetes does;
// names are the same with and without dashes ("date-time", "datetime").
bool MatchesFormat(std::string_view format, std::string_view text);

// RFC 3339, as "2006-01-02T15:04:05.999Z".
bool IsDateTime(std::string_view text);
// Standard base64 with padding.
bool IsBase64(std::string_view text);

}  // namespace trainyard::apiserver
