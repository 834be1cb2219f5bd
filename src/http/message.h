// One exchange over HTTP, whoever carries it: the types that the client and the server share, and the port
// between a client's logic and the network.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace trainyard::http {

using Headers = std::vector<std::pair<std::string, std::string>>;
// The first header of that name, in any letter case; empty if there is none.
std::string_view FindHeader(const Headers& headers, std::string_view name);

struct Request {
  std::string method = "GET";
  std::string target;  // "/api/v1/pods?limit=500", percent-encoded
  std::string body;
  std::string content_type;  // of the body; empty: application/json
  std::string accept;        // empty: application/json
  // How long the whole exchange may take, or, for Open(), until the head of the answer is there.
  absl::Duration timeout = absl::Seconds(30);
  // For Open(): after how long without a byte the body counts as broken. Unset: as the transport thinks fit.
  std::optional<absl::Duration> idle_limit;
};

struct Response {
  int code = 200;
  std::string content_type = "application/json";
  std::string body;
  Headers headers;  // beside Content-Type and Content-Length

  std::string_view Header(std::string_view name) const { return FindHeader(headers, name); }
};

// The body of an answer that comes over time: a watch, or a log that is followed. Used by one thread at a
// time, except where said.
class BodyReader {
 public:
  virtual ~BodyReader() = default;
  // The next bytes, at least one; an empty text at the body's end. DeadlineExceeded: none came in time, and
  // the body goes on. Unavailable: the connection broke. Cancelled: after Cancel().
  virtual absl::StatusOr<std::string> Read(absl::Duration timeout) = 0;
  // Ends a Read() that waits in another thread, and all that follow. From any thread.
  virtual void Cancel() = 0;
};

// An answer whose body is read as it comes. If its code is not 2xx the body has been read whole instead.
struct OpenedResponse {
  Response head;
  std::unique_ptr<BodyReader> body;  // null unless 2xx
};

// Carries requests to one server, with its credentials. Any answer, whatever its code, is a Response; a
// status says why there was none: Unavailable (not connected: nothing was done), Unknown (the connection
// broke after the request was sent: it may have been done), DeadlineExceeded (likewise), Unauthenticated (no
// credentials to be had), FailedPrecondition (the server's certificate is not trusted). Messages name the
// server. All calls may be made from many threads at once.
class Transport {
 public:
  virtual ~Transport() = default;
  // All in flight at once; the results are in the order of the requests.
  virtual std::vector<absl::StatusOr<Response>> DoAll(std::vector<Request> requests) = 0;
  virtual absl::StatusOr<OpenedResponse> Open(Request request) = 0;
  // For messages: "https://127.0.0.1:6443".
  virtual std::string Server() const = 0;
};

// Percent-encoded for a path segment or a query's value.
std::string PercentEncoded(std::string_view text);

// Whether two names of headers are the same: their letter case does not matter.
bool SameHeader(std::string_view a, std::string_view b);

// Appends a query parameter to a request's target, unless its value is empty.
void AddParameter(std::string& target, std::string_view name, std::string_view value);
// What is not valid is InvalidArgument. In a query, '+' is a space.
absl::StatusOr<std::string> PercentDecoded(std::string_view text, bool query);

}  // namespace trainyard::http
