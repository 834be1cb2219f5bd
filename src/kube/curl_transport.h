// The network: requests carried by libcurl, over HTTP/2 where the server has it. One thread drives all of
// them.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kube/http.h"
#include "kube/kubeconfig.h"

namespace trainyard::kube {

struct CurlOptions {
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
  std::string user_agent = "trainyard";
};

// A transport to the cluster. When it goes, what is in flight ends with Cancelled; readers of its streams may
// outlive it. Credentials that are refused with 401 are looked for once more and the request made again.
// InvalidArgument: the configuration's server is no URL.
absl::StatusOr<std::unique_ptr<Transport>> NewCurlTransport(ClusterConfig config, CurlOptions options = {});

}  // namespace trainyard::kube
