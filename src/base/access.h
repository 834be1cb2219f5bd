// Who may use what a process serves, and where it listens.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/fd.h"
#include "base/mutex.h"
#include "base/steady_time.h"

namespace trainyard {

// 256 random bits, as text.
absl::StatusOr<std::string> NewToken();
// What a token may be: 1 to 4096 printable ASCII characters without spaces, so that it fits into a header.
absl::Status CheckToken(std::string_view token);
// A token without the white space around it, which files and environments often add: a newline at its end.
std::string_view TrimToken(std::string_view text);
// The first line of a file, trimmed. Every error names the file; InvalidArgument: it is not a token.
absl::StatusOr<std::string> ReadToken(const std::string& path);
// The token of `file`, or if that is empty that of an environment variable; "" if there is neither.
// InvalidArgument names the one that does not hold a token.
absl::StatusOr<std::string> FindToken(const std::string& file, const char* variable);

// Whether what a client has sent is the secret. How long it takes depends on what was sent alone, so that a
// secret cannot be found byte by byte. An empty secret matches nothing.
bool SameSecret(std::string_view sent, std::string_view secret);
// The token of a header "Bearer X"; empty if it is of another scheme.
std::string_view BearerToken(std::string_view header);
// Whether what a client has sent in a header ("Bearer X", or X alone) is the token.
bool IsToken(std::string_view sent, std::string_view token);

// Warns that clients send wrong tokens, at most once a minute however many come. From any thread.
class WrongTokens {
 public:
  // `server` says whose token it is: "the launcher".
  explicit WrongTokens(std::string_view server) : server_(server) {}
  // Of a client that has sent `sent`, which was refused. Empty: it has sent nothing.
  void Note(std::string_view sent);

 private:
  const std::string server_;
  Mutex mu_;
  std::uint64_t count_ TY_GUARDED_BY(mu_) = 0;
  SteadyTime next_ TY_GUARDED_BY(mu_);
};

struct ListenAddress {
  std::string host;  // an address, without brackets; empty: all of this machine's
  std::uint16_t port = 0;

  bool IsIpv6() const { return host.find(':') != std::string::npos; }
  // Nobody else than this machine's own processes can come there.
  bool IsLoopback() const;
  // "127.0.0.1:2379", "[::1]:2379"; "[::]:2379" for all addresses.
  std::string Text() const;
};

// "HOST:PORT" or ":PORT"; port 0 is any that is free. The host is an address or localhost: a name may lead
// elsewhere tomorrow. InvalidArgument: it is none of these.
absl::StatusOr<ListenAddress> ParseListenAddress(std::string_view text);

// A socket that takes connections there and does not block. Unavailable: nobody can listen there.
// InvalidArgument: the host is not an address.
absl::StatusOr<Fd> Listen(const ListenAddress& address);
// The port that it got.
absl::StatusOr<std::uint16_t> PortOf(const Fd& socket);

}  // namespace trainyard
