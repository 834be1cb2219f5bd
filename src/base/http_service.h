// An HTTP/1.1 server for few and short requests and for bodies that come over time: one loop for all
// connections, a few threads for whoever answers.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace trainyard {

struct HttpRequest {
  std::string method;
  std::string path;                          // decoded, without the query
  std::map<std::string, std::string> query;  // decoded
  std::string authorization;                 // the header
  std::string host;                          // the header
  std::string cookie;                        // the header
  bool from_page = false;                    // a web page sent it
  std::string body;
};

struct HttpReply {
  int code = 200;
  std::string body;
  std::string content_type = "application/json";
  std::string allow;  // of 405
  std::vector<std::pair<std::string, std::string>> headers;
};

// A body that is written while it is sent. From any thread.
class HttpStream {
 public:
  virtual ~HttpStream() = default;
  // Waits while the client takes nothing and much is waiting. False: the client has gone, or the service
  // ends.
  virtual bool Write(std::string_view bytes) = 0;
  // The same without waiting: one that is so far behind is closed.
  virtual bool Offer(std::string_view bytes) = 0;
  virtual void End() = 0;
  virtual bool closed() const = 0;
};

// How a request is answered; one of them, once, while the handler runs.
class HttpExchange {
 public:
  virtual ~HttpExchange() = default;
  virtual void Send(HttpReply reply) = 0;
  // The answer is 200 with this body. Whoever gets the stream may keep it after the handler has returned.
  virtual std::shared_ptr<HttpStream> Begin(std::string content_type) = 0;
};

// What a request's head is worth.
struct HttpVerdict {
  bool trusted = false;              // its client may ask: strangers no longer push its connection out
  std::optional<HttpReply> refusal;  // sent in place of the handler's answer; the body is dropped
};

struct HttpServiceOptions {
  std::string address = "127.0.0.1:0";  // as ParseListenAddress() takes it
  int threads = 4;
  std::size_t most_body = std::size_t{1} << 20;
  absl::Duration request_timeout = absl::Seconds(30);  // from the connection to the end of its request
  // Called with a request without its body, by the thread that serves all connections. Null: every client is
  // trusted.
  std::function<HttpVerdict(const HttpRequest& head)> judge;
};

class HttpService {
 public:
  using Handler = std::function<void(const HttpRequest& request, HttpExchange& exchange)>;
  // The handler is called by several threads at once. Unavailable: nobody can listen there.
  static absl::StatusOr<std::unique_ptr<HttpService>> Start(const HttpServiceOptions& options,
                                                            Handler handler);
  // Ends all streams, and waits for handlers that run.
  virtual ~HttpService() = default;
  virtual std::string address() const = 0;
};

}  // namespace trainyard
