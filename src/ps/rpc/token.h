// Whether a caller has shown the token that lets it in.
#pragma once

#include <string>

#include "base/same_secret.h"
#include "grpcpp/server_context.h"

namespace trainyard::ps {

// "": everybody is let in.
inline bool ShowsToken(const grpc::ServerContext& context, const std::string& token) {
  if (token.empty()) return true;
  const auto found = context.client_metadata().find("token");
  return found != context.client_metadata().end() &&
         SameSecret({found->second.data(), found->second.size()}, token);
}

}  // namespace trainyard::ps
