// One exchange as libcurl sees it: an easy handle, set up once and used again and again.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include <curl/curl.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "http/client.h"
#include "http/credentials.h"
#include "http/message.h"

namespace trainyard::http {

struct FreeEasy {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct FreeMulti {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};
struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using EasyPointer = std::unique_ptr<CURL, FreeEasy>;
using MultiPointer = std::unique_ptr<CURLM, FreeMulti>;
using ListPointer = std::unique_ptr<curl_slist, FreeList>;

// What all requests of an engine share. Does not change.
struct Endpoint {
  Remote remote;
  ClientOptions options;
  std::string url;         // before a request's target; empty: a target is a whole URL
  std::string connect_to;  // where that really is, if not where the URL says
  std::string host;        // for the Host header, likewise
  bool loopback = false;
};
// InvalidArgument: the server is no URL.
absl::StatusOr<Endpoint> MakeEndpoint(Remote remote, ClientOptions options);

// One exchange, from the request to what becomes of the answer. The functions are called on the IO thread;
// the last one is OnEnd.
class ClientExchange {
 public:
  ClientExchange(Request request_of, std::shared_ptr<const Credential> credential_of, bool is_stream)
      : request(std::move(request_of)), credential(std::move(credential_of)), stream(is_stream) {}
  virtual ~ClientExchange() = default;
  // Code, headers and content type are there; the body is to come.
  virtual void OnHead(Response head) = 0;
  // False: not now. The same bytes come again when the exchange is resumed.
  virtual bool OnBody(std::string_view bytes) = 0;
  virtual void OnEnd(absl::Status status) = 0;

  const Request request;
  const std::shared_ptr<const Credential> credential;
  const bool stream;  // the body has no end in sight
  SteadyTime due;     // not begun before
};

// Belongs to the IO thread.
class ClientHandle {
 public:
  ClientHandle(const Endpoint& endpoint, bool stream);
  ClientHandle(const ClientHandle&) = delete;
  ClientHandle& operator=(const ClientHandle&) = delete;

  // Before it is given to the multi handle. InvalidArgument: libcurl does not take such a target.
  absl::Status Prepare(std::shared_ptr<ClientExchange> exchange, SteadyTime now);
  // After it is taken from it; the exchange has then been told the end.
  void Finish(CURLcode code);
  void Finish(absl::Status status);

  CURL* easy() const { return easy_.get(); }
  bool stream() const { return stream_; }
  const std::shared_ptr<ClientExchange>& exchange() const { return exchange_; }

  // When a stream is to be given up, if nothing comes until then. Never() while its reader is what is slow.
  SteadyTime GiveUpAt() const;
  absl::Status GiveUpStatus() const;
  // No later than which GiveUpAt() has to be asked, whatever comes meanwhile.
  SteadyTime LookAgainAt() const;
  void Resume(SteadyTime now);

 private:
  static std::size_t WriteBody(char* data, std::size_t one, std::size_t size, void* self);
  static std::size_t WriteHeader(char* data, std::size_t one, std::size_t size, void* self);
  static int BeforeRequest(void* self, char*, char*, int, int);
  static int OnSocket(void* self, curl_socket_t socket, curlsocktype);

  void SetUpOnce();
  void SetUpTls();
  absl::Status SetTarget(const Request& request);
  void SetMethod(const Request& request);
  void SetHeaders(const Request& request, const Credential& credential);
  void SetCertificate(const Credential& credential);
  void TakeHeaderLine(std::string_view line);
  absl::Status ToStatus(CURLcode code) const;
  const std::string& server() const;  // for messages
  absl::Duration IdleLimit() const;
  // Whether the request may have reached the server.
  bool WasSent() const;

  const Endpoint& endpoint_;
  const bool stream_;
  EasyPointer easy_;
  std::array<char, CURL_ERROR_SIZE> error_{};

  // What the handle is set up for; the next request is often alike.
  std::string method_;
  std::string target_;
  std::shared_ptr<const Credential> credential_;
  std::string content_type_;
  std::string accept_;
  ListPointer headers_;
  ListPointer connect_to_;

  // Of the exchange under way.
  std::shared_ptr<ClientExchange> exchange_;
  Response head_;
  bool head_done_ = false;
  bool paused_ = false;
  int sent_times_ = 0;
  std::size_t received_ = 0;
  SteadyTime head_deadline_;
  SteadyTime last_arrival_;
};

}  // namespace trainyard::http
