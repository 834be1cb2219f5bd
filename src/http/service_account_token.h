// The tokens with which pods come back to the API server. They are not stored: a token names its account and
// is signed with a secret of the cluster.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "http/responder.h"

namespace trainyard::http {

// The token of an account; an empty name is the account "default".
std::string ServiceAccountToken(std::string_view secret, std::string_view ns, std::string_view name);

// Whose token it is. Nothing: it is none, or another cluster's.
std::optional<Identity> FindServiceAccount(std::string_view secret, std::string_view token);

}  // namespace trainyard::http
