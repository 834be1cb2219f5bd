#include "http/client.h"

#include <chrono>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "base/text.h"
#include "http/client_engine.h"

namespace trainyard::http {
namespace {

// Counts down as the exchanges of one call end, and wakes the caller at the last.
class Countdown {
 public:
  explicit Countdown(std::size_t count) : left_(count) {}
  void Down() {
    MutexLock lock(mu_);
    if (--left_ == 0) done_.Signal();
  }
  void Await() {
    MutexLock lock(mu_);
    while (left_ > 0) done_.Wait(mu_);
  }

 private:
  Mutex mu_;
  CondVar done_;
  std::size_t left_ TY_GUARDED_BY(mu_);
};

// An exchange whose answer is read whole. Its result is the caller's once the countdown is over.
class WholeExchange final : public ClientExchange {
 public:
  WholeExchange(Request request_of, std::shared_ptr<const Credential> credential_of,
                std::shared_ptr<Countdown> countdown)
      : ClientExchange(std::move(request_of), std::move(credential_of), /*is_stream=*/false),
        countdown_(std::move(countdown)) {}

  void OnHead(Response head) override { response_ = std::move(head); }
  bool OnBody(std::string_view bytes) override {
    response_.body.append(bytes);
    return true;
  }
  void OnEnd(absl::Status status) override {
    status_ = std::move(status);
    countdown_->Down();
  }

  absl::StatusOr<Response> Take() {
    if (!status_.ok()) return status_;
    return std::move(response_);
  }

 private:
  const std::shared_ptr<Countdown> countdown_;
  Response response_;
  absl::Status status_;
};

bool IsSuccess(int code) { return code >= 200 && code < 300; }

// An exchange whose body is read as it comes, by one thread, while the IO thread brings it.
class StreamExchange final : public ClientExchange {
 public:
  StreamExchange(Request request_of, std::shared_ptr<const Credential> credential_of,
                 const ClientOptions& options)
      : ClientExchange(std::move(request_of), std::move(credential_of), /*is_stream=*/true),
        read_ahead_(options.stream_buffer_bytes) {}

  void OnHead(Response head) override {
    MutexLock lock(mu_);
    head_ = std::move(head);
    opened_ = IsSuccess(head_.code);
    changed_.Signal();
  }

  bool OnBody(std::string_view bytes) override {
    MutexLock lock(mu_);
    if (!opened_ && buffer_.size() >= read_ahead_) return true;  // more of an error is not looked at
    paused_ = buffer_.size() >= read_ahead_;
    if (paused_) return false;
    buffer_.append(bytes);
    if (opened_) changed_.Signal();
    return true;
  }

  void OnEnd(absl::Status status) override {
    MutexLock lock(mu_);
    ended_ = true;
    status_ = std::move(status);
    changed_.Signal();
  }

  // The head; with the body, if that is an error's.
  absl::StatusOr<Response> AwaitHead() {
    MutexLock lock(mu_);
    while (!opened_ && !ended_) changed_.Wait(mu_);
    if (opened_) return head_;
    if (!status_.ok()) return status_;
    head_.body = std::move(buffer_);
    return head_;
  }

  // The next bytes; sets `resume` if the IO thread waits for there to be room.
  absl::StatusOr<std::string> Read(absl::Duration timeout, bool& resume) {
    const SteadyTime deadline = Clock::System().Steady() + timeout;
    MutexLock lock(mu_);
    while (!cancelled_ && buffer_.empty() && !ended_) {
      if (!changed_.WaitUntil(mu_, deadline)) return absl::DeadlineExceededError("nothing came in time");
    }
    if (cancelled_) return absl::CancelledError("the stream was cancelled");
    resume = std::exchange(paused_, false);
    if (!buffer_.empty() || status_.ok()) return std::exchange(buffer_, "");
    if (absl::IsCancelled(status_)) return status_;
    return absl::UnavailableError(status_.message());
  }

  void Cancel() {
    MutexLock lock(mu_);
    cancelled_ = true;
    changed_.Signal();
  }

 private:
  const std::size_t read_ahead_;
  Mutex mu_;
  CondVar changed_;
  Response head_ TY_GUARDED_BY(mu_);
  std::string buffer_ TY_GUARDED_BY(mu_);
  absl::Status status_ TY_GUARDED_BY(mu_);
  bool opened_ TY_GUARDED_BY(mu_) = false;
  bool paused_ TY_GUARDED_BY(mu_) = false;
  bool ended_ TY_GUARDED_BY(mu_) = false;
  bool cancelled_ TY_GUARDED_BY(mu_) = false;
};

class ClientBodyReader final : public BodyReader {
 public:
  ClientBodyReader(std::shared_ptr<ClientEngine> engine, std::shared_ptr<StreamExchange> exchange)
      : engine_(std::move(engine)), exchange_(std::move(exchange)) {}
  ~ClientBodyReader() override { Cancel(); }

  absl::StatusOr<std::string> Read(absl::Duration timeout) override {
    bool resume = false;
    absl::StatusOr<std::string> bytes = exchange_->Read(timeout, resume);
    if (resume) engine_->Resume(exchange_);
    return bytes;
  }

  void Cancel() override {
    exchange_->Cancel();
    engine_->Cancel(exchange_);
  }

 private:
  const std::shared_ptr<ClientEngine> engine_;
  const std::shared_ptr<StreamExchange> exchange_;
};

// What calls under way share with the transport, and keep when it goes.
class ClientSession {
 public:
  explicit ClientSession(std::shared_ptr<ClientEngine> engine)
      : engine_(std::move(engine)), credentials_(engine_->endpoint().remote.credentials) {}

  ClientEngine& engine() { return *engine_; }
  std::vector<absl::StatusOr<Response>> DoAll(std::vector<Request> requests);
  absl::StatusOr<OpenedResponse> Open(const Request& request);

 private:
  using CredentialPointer = std::shared_ptr<const Credential>;
  using Exchanges = std::vector<std::shared_ptr<WholeExchange>>;

  // What to present. The same object as before if nothing has changed: handles that are set up for it need
  // not be again.
  absl::StatusOr<CredentialPointer> Present() TY_EXCLUDES(mu_);
  // The one to try after `refused`; null if there is no other.
  absl::StatusOr<CredentialPointer> PresentAfter(const CredentialPointer& refused);
  // Returns when all of them have ended.
  Exchanges Carry(std::vector<Request> requests, const CredentialPointer& credential);
  absl::StatusOr<OpenedResponse> OpenWith(const Request& request, const CredentialPointer& credential);

  const std::shared_ptr<ClientEngine> engine_;
  const std::shared_ptr<Credentials> credentials_;
  Mutex mu_;
  CredentialPointer last_ TY_GUARDED_BY(mu_);
};

absl::StatusOr<ClientSession::CredentialPointer> ClientSession::Present() {
  TY_ASSIGN_OR_RETURN(Credential credential, credentials_->Get());
  MutexLock lock(mu_);
  if (last_ == nullptr || *last_ != credential)
    last_ = std::make_shared<const Credential>(std::move(credential));
  return last_;
}

absl::StatusOr<ClientSession::CredentialPointer> ClientSession::PresentAfter(
    const CredentialPointer& refused) {
  credentials_->Refuse(*refused);
  TY_ASSIGN_OR_RETURN(CredentialPointer next, Present());
  if (*next == *refused) return nullptr;
  return next;
}

ClientSession::Exchanges ClientSession::Carry(std::vector<Request> requests,
                                              const CredentialPointer& credential) {
  const auto countdown = std::make_shared<Countdown>(requests.size());
  Exchanges exchanges;
  exchanges.reserve(requests.size());
  for (Request& request : requests) {
    exchanges.push_back(std::make_shared<WholeExchange>(std::move(request), credential, countdown));
  }
  engine_->Begin({exchanges.begin(), exchanges.end()});
  countdown->Await();
  return exchanges;
}

std::vector<absl::StatusOr<Response>> ClientSession::DoAll(std::vector<Request> requests) {
  if (requests.empty()) return {};
  const absl::StatusOr<CredentialPointer> credential = Present();
  if (!credential.ok()) return {requests.size(), credential.status()};
  const Exchanges exchanges = Carry(std::move(requests), *credential);
  std::vector<absl::StatusOr<Response>> responses;
  responses.reserve(exchanges.size());
  std::vector<std::size_t> refused;
  for (const auto& exchange : exchanges) {
    responses.push_back(exchange->Take());
    if (responses.back().ok() && responses.back()->code == 401) refused.push_back(responses.size() - 1);
  }
  if (refused.empty()) return responses;
  const absl::StatusOr<CredentialPointer> next = PresentAfter(*credential);
  if (!next.ok()) {
    for (const std::size_t i : refused) responses[i] = next.status();
  } else if (*next != nullptr) {
    std::vector<Request> again;
    again.reserve(refused.size());
    for (const std::size_t i : refused) again.push_back(exchanges[i]->request);
    const Exchanges second = Carry(std::move(again), *next);
    for (std::size_t i = 0; i < refused.size(); ++i) responses[refused[i]] = second[i]->Take();
  }
  return responses;
}

absl::StatusOr<OpenedResponse> ClientSession::OpenWith(const Request& request,
                                                       const CredentialPointer& credential) {
  auto exchange = std::make_shared<StreamExchange>(request, credential, engine_->endpoint().options);
  engine_->Begin({exchange});
  TY_ASSIGN_OR_RETURN(Response head, exchange->AwaitHead());
  OpenedResponse opened{.head = std::move(head)};
  if (IsSuccess(opened.head.code))
    opened.body = std::make_unique<ClientBodyReader>(engine_, std::move(exchange));
  return opened;
}

absl::StatusOr<OpenedResponse> ClientSession::Open(const Request& request) {
  TY_ASSIGN_OR_RETURN(const CredentialPointer credential, Present());
  absl::StatusOr<OpenedResponse> opened = OpenWith(request, credential);
  if (!opened.ok() || opened->head.code != 401) return opened;
  TY_ASSIGN_OR_RETURN(const CredentialPointer next, PresentAfter(credential));
  return next == nullptr ? std::move(opened) : OpenWith(request, next);
}

class ClientTransport final : public Transport {
 public:
  explicit ClientTransport(std::shared_ptr<ClientEngine> engine)
      : session_(std::make_shared<ClientSession>(std::move(engine))) {}
  ~ClientTransport() override { session_->engine().Stop(); }

  std::vector<absl::StatusOr<Response>> DoAll(std::vector<Request> requests) override {
    const std::shared_ptr<ClientSession> session = session_;
    return session->DoAll(std::move(requests));
  }
  absl::StatusOr<OpenedResponse> Open(Request request) override {
    const std::shared_ptr<ClientSession> session = session_;
    return session->Open(request);
  }
  std::string Server() const override { return session_->engine().endpoint().remote.server; }

 private:
  const std::shared_ptr<ClientSession> session_;
};

// ---- which address a server is at, and under which name it is known there

struct FreeUrl {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};

std::string Part(CURLU* url, CURLUPart part, unsigned int flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK) return "";
  std::string copy(text);
  curl_free(text);
  return copy;
}

bool IsLoopback(std::string_view host) {
  return host == "localhost" || host == "[::1]" || host.starts_with("127.");
}

}  // namespace

absl::StatusOr<Endpoint> MakeEndpoint(Remote remote, ClientOptions options) {
  if (remote.server.empty()) return Endpoint{.remote = std::move(remote), .options = std::move(options)};
  const std::unique_ptr<CURLU, FreeUrl> url(curl_url());
  const CURLUcode code = url == nullptr ? CURLUE_OUT_OF_MEMORY
                                        : curl_url_set(url.get(), CURLUPART_URL, remote.server.c_str(), 0);
  if (code != CURLUE_OK) {
    return absl::InvalidArgumentError(
        StrCat("\"", Escaped(remote.server), "\" is no server's URL: ", curl_url_strerror(code)));
  }
  Endpoint endpoint{.options = std::move(options), .url = remote.server};
  const std::string host = Part(url.get(), CURLUPART_HOST);
  const std::string port = Part(url.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT);
  endpoint.loopback = IsLoopback(host);
  if (!remote.tls_server_name.empty()) {
    // The name in the URL is what the certificate is checked against and what TLS asks for.
    const std::string path = Part(url.get(), CURLUPART_PATH);
    endpoint.url = StrCat(Part(url.get(), CURLUPART_SCHEME), "://", remote.tls_server_name, ":", port,
                          path == "/" ? "" : path);
    endpoint.connect_to = StrCat(remote.tls_server_name, ":", port, ":", host, ":", port);
    endpoint.host = StrCat(host, ":", port);
  }
  while (endpoint.url.ends_with('/')) endpoint.url.pop_back();
  endpoint.remote = std::move(remote);
  return endpoint;
}

absl::StatusOr<std::unique_ptr<Transport>> NewClient(Remote remote, ClientOptions options) {
  if (remote.credentials == nullptr) remote.credentials = NewFixedCredentials({});
  TY_ASSIGN_OR_RETURN(Endpoint endpoint, MakeEndpoint(std::move(remote), std::move(options)));
  TY_ASSIGN_OR_RETURN(std::shared_ptr<ClientEngine> engine, ClientEngine::Start(std::move(endpoint)));
  return std::make_unique<ClientTransport>(std::move(engine));
}

}  // namespace trainyard::http
