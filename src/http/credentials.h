// Who we are to an API server: a token, a password or a certificate, and where it comes from.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"

namespace trainyard::http {

// What is presented with one request.
struct Credential {
  std::vector<std::pair<std::string, std::string>> headers;  // Authorization, and whom to act as
  // Of the client, in PEM; empty: none.
  std::string certificate_pem;
  std::string key_pem;
  bool operator==(const Credential&) const = default;
};

// Where credentials come from. All calls may be made from many threads at once.
class Credentials {
 public:
  virtual ~Credentials() = default;
  // What to present now; may read a file or run a program meanwhile. Unauthenticated: there is none, and what
  // to do about it.
  virtual absl::StatusOr<Credential> Get() = 0;
  // The server took `refused` for nobody's: the next Get() looks for another one.
  virtual void Refuse(const Credential& refused) = 0;
};

// The same for ever.
std::unique_ptr<Credentials> NewFixedCredentials(Credential credential);

// `rest`, with the token that stands in a file, which is read again as it rotates: once a minute, and when it
// is refused. While the file cannot be read the last token serves on, or at first `fallback` if that is not
// empty. The clock must outlive it.
std::unique_ptr<Credentials> NewTokenFileCredentials(std::string path, std::string fallback, Credential rest,
                                                     Clock& clock);

std::pair<std::string, std::string> BearerHeader(std::string_view token);
std::pair<std::string, std::string> BasicHeader(std::string_view user, std::string_view password);

}  // namespace trainyard::http
