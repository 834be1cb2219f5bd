// The certificates of an embedded cluster: an authority made at the first start, and what it signs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace trainyard::http {

struct KeyPair {
  std::string certificate_pem;
  std::string key_pem;
};

// ECDSA P-256; ten years.
absl::StatusOr<KeyPair> MakeAuthority(std::string_view common_name, absl::Time now);
// For a server: its DNS names and IP addresses stand in the certificate. One year.
absl::StatusOr<KeyPair> MakeServerCertificate(const KeyPair& authority, const std::vector<std::string>& names,
                                              absl::Time now);
// For a user: CN is the user, O the groups. One year.
absl::StatusOr<KeyPair> MakeClientCertificate(const KeyPair& authority, std::string_view user,
                                              const std::vector<std::string>& groups, absl::Time now);
// When the certificate ends; InvalidArgument if it cannot be read.
absl::StatusOr<absl::Time> CertificateEnd(std::string_view certificate_pem);

}  // namespace trainyard::http
