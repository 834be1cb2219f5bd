// The HTTP server for handlers that may block: a few threads answer, and bodies may come over time.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "http/message.h"
#include "http/server.h"

namespace trainyard::http {

struct ServiceRequest {
  std::string method;
  std::string path;                          // decoded, without the query
  std::map<std::string, std::string> query;  // decoded
  Headers headers;
  bool from_page = false;  // a web page sent it
  std::string body;

  std::string_view Header(std::string_view name) const { return FindHeader(headers, name); }
};

// A body that is written while it is sent. From any thread.
class ServiceStream {
 public:
  virtual ~ServiceStream() = default;
  // Waits while the client takes nothing and much is waiting. False: the client has gone, or the service
  // ends.
  virtual bool Write(std::string_view bytes) = 0;
  // The same without waiting: one that is so far behind is closed.
  virtual bool Offer(std::string_view bytes) = 0;
  virtual void End() = 0;
  virtual bool closed() const = 0;
};

// How a request is answered; one of them, once, while the handler runs.
class ServiceExchange {
 public:
  virtual ~ServiceExchange() = default;
  virtual void Send(Response reply) = 0;
  // The answer is 200 with this body. The handler may keep the stream after it has returned.
  virtual std::shared_ptr<ServiceStream> Begin(std::string content_type) = 0;
};

// What a request's head is worth.
struct ServiceVerdict {
  bool trusted = false;             // its client may ask: strangers no longer push its connection out
  std::optional<Response> refusal;  // sent in place of the handler's answer; the body is dropped
};

struct ServiceOptions {
  std::string address = "127.0.0.1:0";  // as ParseListenAddress() takes it
  int threads = 4;
  std::size_t most_body = std::size_t{1} << 20;
  // From the connection, or the answer before, to the head of a request; from there to its end.
  absl::Duration request_timeout = absl::Seconds(30);
  // Called with a request without its body, on the server's thread. Null: every client is trusted.
  std::function<ServiceVerdict(const ServiceRequest& head)> judge;
};

class Service {
 public:
  using Handler = std::function<void(const ServiceRequest& request, ServiceExchange& exchange)>;
  // The handler is called by several threads at once. Unavailable: nobody can listen there.
  static absl::StatusOr<std::unique_ptr<Service>> Start(const ServiceOptions& options, Handler handler);
  // Ends all streams, and waits for handlers that run.
  virtual ~Service() = default;
  virtual std::string address() const = 0;
};

// Pages by path ("/healthz"), for probes and metrics: GET and HEAD, for everybody. They are called on the
// server's thread. InvalidArgument, Unavailable: as Server::Start() has it.
using Pages = std::map<std::string, std::function<Response()>, std::less<>>;
absl::StatusOr<std::unique_ptr<Server>> ServePages(const std::string& address, Pages pages);

}  // namespace trainyard::http
