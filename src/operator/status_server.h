// Answers what probes and Prometheus ask, over plain HTTP.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace trainyard::ops {

struct StatusPage {
  int code = 200;
  std::string body;
  std::string content_type = "text/plain; charset=utf-8";
};

class StatusServer {
 public:
  // By path: "/healthz". Called from a thread of the server's; answers GET and HEAD.
  using Pages = std::map<std::string, std::function<StatusPage()>, std::less<>>;

  // Listens at "HOST:PORT" or ":PORT", which is every address; port 0 is any that is free. InvalidArgument:
  // it is none of these. Unavailable: the port is taken.
  static absl::StatusOr<std::unique_ptr<StatusServer>> Start(const std::string& address, Pages pages);
  virtual ~StatusServer() = default;  // ends it
  virtual std::uint16_t port() const = 0;
};

}  // namespace trainyard::ops
