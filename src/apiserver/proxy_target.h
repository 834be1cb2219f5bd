// What the URL of a proxy subresource asks for:
//
//   /api/v1/namespaces/NS/services/[SCHEME:]NAME[:PORT]/proxy/PATH?QUERY      and the same of pods
//
// where a scheme needs a colon behind the name too, as in "http:web:". Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace trainyard::apiserver {

struct ProxyTarget {
  std::string plural;  // "services" or "pods"
  std::string ns;
  std::string id;      // "http:web:80", as it is asked for
  std::string scheme;  // "http", "https", or empty if the client leaves it to us
  std::string name;
  std::string port;    // a name or a number; empty: not given
  std::string prefix;  // the path with "/proxy" at its end, percent-encoded as it came
  std::string path;    // what follows, percent-encoded, without "." and ".."; empty, or begins with '/'
  std::string query;   // with its '?'; empty if there is none
};

// Whether it is such a URL, be it right or wrong.
bool IsProxyTarget(std::string_view target);

// Nothing: it is not. An ApiError 400: it is, but names nothing that can be.
absl::StatusOr<std::optional<ProxyTarget>> ParseProxyTarget(std::string_view target);

}  // namespace trainyard::apiserver
