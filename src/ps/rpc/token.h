// Whether a caller has shown the token that lets it in.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/access.h"
#include "grpcpp/server_context.h"

namespace trainyard::ps {

// Unauthenticated: `sent` is not the job's token, and what is wrong with it. An empty token lets everybody
// in.
inline absl::Status CheckSentToken(std::string_view sent, std::string_view token) {
  if (token.empty() || SameSecret(sent, token)) return absl::OkStatus();
  if (sent.empty())
    return absl::UnauthenticatedError("no token: send the job's token as the metadata \"token\"");
  if (SameSecret(TrimToken(sent), token)) {
    return absl::UnauthenticatedError(
        "wrong token: it is the job's token with white space around it; remove the space or newline");
  }
  return absl::UnauthenticatedError("wrong token: it is not that of this job");
}

inline absl::Status CheckCaller(const grpc::ServerContext& context, std::string_view token) {
  const auto found = context.client_metadata().find("token");
  const bool sent = found != context.client_metadata().end();
  return CheckSentToken(sent ? std::string_view(found->second.data(), found->second.size()) : "", token);
}

}  // namespace trainyard::ps
