// The one HTTP client: requests carried by libcurl, over HTTP/2 where the server has it. One thread drives
// all requests of a client. Requests to one server go through a Transport; those to any server through
// http/calls.h.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "http/credentials.h"
#include "http/message.h"

namespace trainyard::http {

// A server, and who we are to it.
struct Remote {
  std::string server;           // "https://127.0.0.1:6443", without a slash at its end; empty: any
  std::string ca_pem;           // empty: what the system trusts
  bool insecure = false;        // the server's certificate is not looked at
  std::string tls_server_name;  // for its certificate, if not the server's own
  std::string proxy_url;        // empty: as the environment says
  std::shared_ptr<Credentials> credentials;  // null: none
  // What the user can do: ends of the messages about certificates.
  std::string trust_hint;
  std::string certificate_hint;
};

struct ClientOptions {
  std::size_t max_in_flight =
      64;  // exchanges at a time, and so connections of HTTP/1.1; others wait their turn
  absl::Duration connect_timeout = absl::Seconds(10);
  // How long what was sent may go without the other machine's acknowledgement.
  absl::Duration unacknowledged_limit = absl::Seconds(30);
  // A stream on which nothing at all has come for so long is broken. Longer than a watch lasts: not every
  // server sends bookmarks.
  absl::Duration stream_idle_limit = absl::Minutes(6);
  std::size_t stream_buffer_bytes = std::size_t{1} << 20;  // read ahead of a reader that is slow
  std::size_t max_body_bytes = std::size_t{1} << 30;
  std::size_t buffer_bytes = 0;                   // of a connection; 0: as libcurl has it
  absl::Duration keep_alive = absl::Seconds(30);  // after how long without traffic a peer is probed
  bool direct = false;                            // no proxy, whatever the environment says
  // A write may be sent again when a connection that was used before breaks. A read always may.
  bool repeats = false;
  std::string user_agent = "trainyard";
};

// A transport to the server. When it goes, what is in flight ends with Cancelled; readers of its streams may
// outlive it. Credentials that are refused with 401 are looked for once more and the request made again.
// InvalidArgument: the server is no URL.
absl::StatusOr<std::unique_ptr<Transport>> NewClient(Remote remote, ClientOptions options = {});

}  // namespace trainyard::http
