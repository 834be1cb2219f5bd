#include "http/client_handle.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::http {
namespace {

// The options that cannot fail but for a bug or for want of memory.
template <typename T>
void Set(CURL* easy, CURLoption option, T value) {
  const CURLcode code = curl_easy_setopt(easy, option, value);
  TY_CHECK(code == CURLE_OK, curl_easy_strerror(code));
}

long Milliseconds(absl::Duration duration) {
  if (duration >= absl::Hours(24 * 20)) return 0;  // for curl: without limit
  return std::max<long>(1, absl::ToInt64Milliseconds(duration));
}

long Seconds(absl::Duration duration) { return std::max<long>(1, absl::ToInt64Seconds(duration)); }

curl_blob BlobOf(const std::string& text) {
  return {.data = const_cast<char*>(text.data()), .len = text.size(), .flags = CURL_BLOB_NOCOPY};
}

ListPointer Append(ListPointer list, const std::string& line) {
  curl_slist* longer = curl_slist_append(list.get(), line.c_str());
  TY_CHECK(longer != nullptr, "out of memory");
  // What was appended to is a part of it now.
  [[maybe_unused]] const curl_slist* shorter = list.release();
  return ListPointer(longer);
}

}  // namespace

ClientHandle::ClientHandle(const Endpoint& endpoint, bool stream)
    : endpoint_(endpoint), stream_(stream), easy_(curl_easy_init()) {
  TY_CHECK(easy_ != nullptr, "out of memory");
  SetUpOnce();
  SetUpTls();
}

void ClientHandle::SetUpOnce() {
  CURL* easy = easy_.get();
  const ClientOptions& options = endpoint_.options;
  Set(easy, CURLOPT_PRIVATE, this);
  Set(easy, CURLOPT_ERRORBUFFER, error_.data());
  Set(easy, CURLOPT_NOSIGNAL, 1L);
  Set(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  Set(easy, CURLOPT_FOLLOWLOCATION, 0L);
  Set(easy, CURLOPT_PATH_AS_IS, 1L);
  Set(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  Set(easy, CURLOPT_USERAGENT, options.user_agent.c_str());
  Set(easy, CURLOPT_CONNECTTIMEOUT_MS, Milliseconds(options.connect_timeout));
  Set(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  Set(easy, CURLOPT_TCP_KEEPIDLE, Seconds(options.keep_alive));
  Set(easy, CURLOPT_TCP_KEEPINTVL, Seconds(options.keep_alive / 3));
  if (options.buffer_bytes > 0) Set(easy, CURLOPT_BUFFERSIZE, static_cast<long>(options.buffer_bytes));
  Set(easy, CURLOPT_SOCKOPTFUNCTION, &ClientHandle::OnSocket);
  Set(easy, CURLOPT_SOCKOPTDATA, this);
  Set(easy, CURLOPT_WRITEFUNCTION, &ClientHandle::WriteBody);
  Set(easy, CURLOPT_WRITEDATA, this);
  Set(easy, CURLOPT_HEADERFUNCTION, &ClientHandle::WriteHeader);
  Set(easy, CURLOPT_HEADERDATA, this);
  Set(easy, CURLOPT_PREREQFUNCTION, &ClientHandle::BeforeRequest);
  Set(easy, CURLOPT_PREREQDATA, this);
  if (stream_) {
    // A connection of its own: a reader that is slow then holds up nobody but itself.
    Set(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    Set(easy, CURLOPT_FRESH_CONNECT, 1L);
    Set(easy, CURLOPT_FORBID_REUSE, 1L);
  } else {
    Set(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2TLS));
    Set(easy, CURLOPT_ACCEPT_ENCODING, "gzip");
    // Wait for a connection that may be shared rather than open one for each.
    if (endpoint_.url.starts_with("https://")) Set(easy, CURLOPT_PIPEWAIT, 1L);
  }
  if (!endpoint_.connect_to.empty()) {
    connect_to_ = Append(nullptr, endpoint_.connect_to);
    Set(easy, CURLOPT_CONNECT_TO, connect_to_.get());
  }
  if (!endpoint_.remote.proxy_url.empty()) {
    Set(easy, CURLOPT_PROXY, endpoint_.remote.proxy_url.c_str());
  } else if (endpoint_.loopback || options.direct) {
    Set(easy, CURLOPT_PROXY, "");
  }
}

void ClientHandle::SetUpTls() {
  CURL* easy = easy_.get();
  Set(easy, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  if (endpoint_.remote.insecure) {
    Set(easy, CURLOPT_SSL_VERIFYPEER, 0L);
    Set(easy, CURLOPT_SSL_VERIFYHOST, 0L);
  } else if (!endpoint_.remote.ca_pem.empty()) {
    curl_blob blob = BlobOf(endpoint_.remote.ca_pem);
    Set(easy, CURLOPT_CAINFO_BLOB, &blob);
    Set(easy, CURLOPT_CAPATH, static_cast<char*>(nullptr));  // these alone, not also the system's
  }
}

absl::Status ClientHandle::Prepare(std::shared_ptr<ClientExchange> exchange, SteadyTime now) {
  exchange_ = std::move(exchange);
  const Request& request = exchange_->request;
  error_[0] = 0;
  head_ = {};
  head_done_ = false;
  paused_ = false;
  sent_times_ = 0;
  received_ = 0;
  last_arrival_ = now;
  head_deadline_ = now + request.timeout;
  TY_RETURN_IF_ERROR(SetTarget(request));
  // A stream has no end to wait for; its head does.
  Set(easy(), CURLOPT_TIMEOUT_MS, stream_ ? 0L : Milliseconds(request.timeout));
  SetMethod(request);
  const bool same = credential_ == exchange_->credential && content_type_ == request.content_type &&
                    accept_ == request.accept && headers_ != nullptr;
  if (same) return absl::OkStatus();
  SetHeaders(request, *exchange_->credential);
  SetCertificate(*exchange_->credential);
  credential_ = exchange_->credential;
  content_type_ = request.content_type;
  accept_ = request.accept;
  return absl::OkStatus();
}

absl::Status ClientHandle::SetTarget(const Request& request) {
  if (target_ == request.target) return absl::OkStatus();
  const CURLcode code = curl_easy_setopt(easy(), CURLOPT_URL, StrCat(endpoint_.url, request.target).c_str());
  if (code != CURLE_OK) {
    return absl::InvalidArgumentError(
        StrCat("cannot ask for ", Shortened(Escaped(request.target), 100), ": ", curl_easy_strerror(code)));
  }
  target_ = request.target;
  return absl::OkStatus();
}

void ClientHandle::SetMethod(const Request& request) {
  const bool has_body = request.method != "GET" && (request.method != "DELETE" || !request.body.empty());
  if (has_body) {
    Set(easy(), CURLOPT_POSTFIELDS, request.body.data());
    Set(easy(), CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
  }
  if (method_ == request.method && has_body) return;
  Set(easy(), has_body ? CURLOPT_POST : CURLOPT_HTTPGET, 1L);
  const bool usual = request.method == (has_body ? "POST" : "GET");
  Set(easy(), CURLOPT_CUSTOMREQUEST, usual ? nullptr : request.method.c_str());
  method_ = request.method;
}

void ClientHandle::SetHeaders(const Request& request, const Credential& credential) {
  const auto or_json = [](const std::string& type) { return type.empty() ? "application/json" : type; };
  ListPointer list;
  list = Append(std::move(list), StrCat("Accept: ", or_json(request.accept)));
  list = Append(std::move(list), StrCat("Content-Type: ", or_json(request.content_type)));
  list = Append(std::move(list), "Expect:");  // not asked for: a round trip for each large object
  if (!endpoint_.host.empty()) list = Append(std::move(list), StrCat("Host: ", endpoint_.host));
  for (const auto& [name, value] : credential.headers)
    list = Append(std::move(list), StrCat(name, ": ", value));
  Set(easy(), CURLOPT_HTTPHEADER, list.get());
  headers_ = std::move(list);
}

void ClientHandle::SetCertificate(const Credential& credential) {
  if (credential.certificate_pem.empty() && (credential_ == nullptr || credential_->certificate_pem.empty()))
    return;
  if (credential.certificate_pem.empty()) {
    Set(easy(), CURLOPT_SSLCERT_BLOB, static_cast<curl_blob*>(nullptr));
    Set(easy(), CURLOPT_SSLKEY_BLOB, static_cast<curl_blob*>(nullptr));
    return;
  }
  // The exchange's credential is kept as long as the handle is set up for it.
  curl_blob certificate = BlobOf(credential.certificate_pem);
  curl_blob key = BlobOf(credential.key_pem);
  Set(easy(), CURLOPT_SSLCERT_BLOB, &certificate);
  Set(easy(), CURLOPT_SSLKEY_BLOB, &key);
}

void ClientHandle::Finish(CURLcode code) { Finish(ToStatus(code)); }

void ClientHandle::Finish(absl::Status status) {
  const std::shared_ptr<ClientExchange> exchange = std::exchange(exchange_, nullptr);
  exchange->OnEnd(std::move(status));
}

// ---- what libcurl calls

std::size_t ClientHandle::WriteBody(char* data, std::size_t, std::size_t size, void* self) {
  auto& handle = *static_cast<ClientHandle*>(self);
  handle.last_arrival_ = Clock::System().Steady();
  if (handle.received_ + size > handle.endpoint_.options.max_body_bytes && !handle.stream_) return 0;
  handle.paused_ = !handle.exchange_->OnBody({data, size});
  if (handle.paused_) return CURL_WRITEFUNC_PAUSE;
  handle.received_ += size;
  return size;
}

std::size_t ClientHandle::WriteHeader(char* data, std::size_t, std::size_t size, void* self) {
  static_cast<ClientHandle*>(self)->TakeHeaderLine({data, size});
  return size;
}

void ClientHandle::TakeHeaderLine(std::string_view line) {
  if (head_done_) return;  // trailers
  if (line.starts_with("HTTP/")) {
    const std::size_t space = line.find(' ');
    head_ = {.code = ParseNumber<int>(line.substr(std::min(space, line.size() - 1) + 1, 3)).value_or(0),
             .content_type = ""};
    return;
  }
  line = Trimmed(line);
  if (line.empty()) {
    if (head_.code < 200) return;  // the answer proper is to come
    head_done_ = true;
    last_arrival_ = Clock::System().Steady();
    exchange_->OnHead(std::move(head_));
    return;
  }
  const std::size_t colon = std::min(line.find(':'), line.size() - 1);
  const std::string_view name = line.substr(0, colon);
  const std::string_view value = Trimmed(line.substr(colon + 1));
  if (SameHeader(name, "content-type")) {
    head_.content_type = value;
  } else if (!SameHeader(name, "content-length")) {
    head_.headers.emplace_back(name, value);
  }
}

// Called each time that libcurl is about to send. It would do so again by itself when a connection that was
// used before breaks; what may have been done is not ours to repeat.
int ClientHandle::BeforeRequest(void* self, char*, char*, int, int) {
  auto& handle = *static_cast<ClientHandle*>(self);
  const bool again = ++handle.sent_times_ > 1;
  const bool may = handle.endpoint_.options.repeats || handle.exchange_->request.method == "GET";
  return again && !may ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

int ClientHandle::OnSocket(void* self, curl_socket_t socket, curlsocktype) {
  const auto& handle = *static_cast<ClientHandle*>(self);
  const auto limit = static_cast<unsigned int>(Milliseconds(handle.endpoint_.options.unacknowledged_limit));
  // A kernel that does not know it leaves the other limits.
  (void)::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, sizeof limit);
  return CURL_SOCKOPT_OK;
}

// ---- streams

SteadyTime ClientHandle::GiveUpAt() const {
  if (!head_done_) return head_deadline_;
  if (paused_) return SteadyTime::Never();
  return last_arrival_ + IdleLimit();
}

SteadyTime ClientHandle::LookAgainAt() const { return std::min(GiveUpAt(), last_arrival_ + IdleLimit()); }

absl::Duration ClientHandle::IdleLimit() const {
  return exchange_->request.idle_limit.value_or(endpoint_.options.stream_idle_limit);
}

absl::Status ClientHandle::GiveUpStatus() const {
  if (!head_done_) {
    const std::string message =
        StrCat(server(), " did not answer within ", absl::FormatDuration(exchange_->request.timeout));
    return WasSent() ? absl::DeadlineExceededError(message) : absl::UnavailableError(message);
  }
  return absl::UnavailableError(StrCat("nothing came from ", server(), " for ",
                                       absl::FormatDuration(IdleLimit()),
                                       "; the connection counts as broken"));
}

void ClientHandle::Resume(SteadyTime now) {
  paused_ = false;
  last_arrival_ = now;
  curl_easy_pause(easy(), CURLPAUSE_CONT);
}

// ---- errors

const std::string& ClientHandle::server() const {
  return endpoint_.url.empty() && exchange_ != nullptr ? exchange_->request.target : endpoint_.remote.server;
}

bool ClientHandle::WasSent() const { return sent_times_ > 0; }

absl::Status ClientHandle::ToStatus(CURLcode code) const {
  if (code == CURLE_OK) return absl::OkStatus();
  std::string why = error_[0] != 0 ? error_.data() : curl_easy_strerror(code);
  long error = 0;  // of the system; libcurl's text leaves it out
  curl_easy_getinfo(easy(), CURLINFO_OS_ERRNO, &error);
  if (code == CURLE_COULDNT_CONNECT && error != 0)
    StrAppend(why, ": ", std::strerror(static_cast<int>(error)));
  switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_INVALIDCERTSTATUS:
    case CURLE_SSL_CACERT_BADFILE:
      return absl::FailedPreconditionError(
          StrCat("the certificate of ", server(), " is not trusted: ", why, endpoint_.remote.trust_hint));
    case CURLE_SSL_CERTPROBLEM:
      return absl::FailedPreconditionError(StrCat("the client certificate for ", server(),
                                                  " cannot be used: ", why,
                                                  endpoint_.remote.certificate_hint));
    case CURLE_OPERATION_TIMEDOUT:
      return WasSent() ? absl::DeadlineExceededError(StrCat(server(), " did not answer in time: ", why))
                       : absl::UnavailableError(StrCat("cannot connect to ", server(), ": ", why));
    case CURLE_OUT_OF_MEMORY:
      return absl::ResourceExhaustedError(StrCat("out of memory while speaking to ", server()));
    case CURLE_WRITE_ERROR:
      return absl::ResourceExhaustedError(StrCat("the answer of ", server(), " is larger than ",
                                                 FormatBytes(endpoint_.options.max_body_bytes)));
    case CURLE_ABORTED_BY_CALLBACK:
      return absl::UnknownError(
          StrCat("the connection to ", server(), " broke; what was asked for may or may not have been done"));
    default:
      return WasSent() ? absl::UnknownError(StrCat("the connection to ", server(), " broke: ", why))
                       : absl::UnavailableError(StrCat("cannot connect to ", server(), ": ", why));
  }
}

}  // namespace trainyard::http
