// The head of an HTTP answer, as it goes over the wire.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "http/message.h"

namespace trainyard::http {

struct ResponseFraming {
  std::optional<std::size_t> length;  // unset: until the end of the connection, or in chunks
  bool chunked = false;
  bool keep_alive = true;
  bool http11 = true;
};

// False for codes whose answers never have a body: 1xx, 204, 304.
bool MayHaveBody(int code);

// "Not Found"; for a code without a name of its own, that of its class.
std::string_view ReasonPhrase(int code);

// Status line, headers and the empty line. Line breaks in a header's value become spaces: they would begin
// another header.
std::string PrintResponseHead(const Response& response, const ResponseFraming& framing,
                              std::string_view date);

// "Sun, 06 Nov 1994 08:49:37 GMT"
std::string PrintHttpDate(absl::Time time);

}  // namespace trainyard::http
