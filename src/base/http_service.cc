#include "base/http_service.h"

#include <poll.h>

#include <algorithm>
#include <deque>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/access.h"
#include "base/clock.h"
#include "base/http_loop.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard {
namespace {

constexpr std::size_t kMostWaiting = std::size_t{256} << 10;  // of a stream
constexpr std::size_t kBlock = std::size_t{16} << 10;
constexpr absl::Duration kLookEvery = absl::Milliseconds(500);

// One request and its answer. The connection is suspended while somebody thinks about it, and while its
// stream has nothing to say.
class Exchange final : public HttpExchange, public HttpStream, public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(HttpLoop& loop, MHD_Connection* connection) : loop_(loop), connection_(connection) {}

  HttpRequest request;
  HttpVerdict verdict = {.trusted = true};  // of the loop's thread
  bool dispatched = false;                  // likewise

  void Send(HttpReply reply) override {
    const MutexLock lock(mu_);
    reply_ = std::move(reply);
    Wake();
  }
  std::shared_ptr<HttpStream> Begin(std::string content_type) override {
    const MutexLock lock(mu_);
    streams_ = true;
    reply_ = HttpReply{.content_type = std::move(content_type)};
    Wake();
    return shared_from_this();
  }

  bool Write(std::string_view bytes) override {
    const MutexLock lock(mu_);
    while (waiting_.size() >= kMostWaiting && !closed_) changed_.Wait(mu_);
    if (closed_) return false;
    waiting_ += bytes;
    Wake();
    return true;
  }
  bool Offer(std::string_view bytes) override {
    const MutexLock lock(mu_);
    if (waiting_.size() >= kMostWaiting) closed_ = true;
    if (closed_) {
      Wake();
      return false;
    }
    waiting_ += bytes;
    Wake();
    return true;
  }
  void End() override {
    const MutexLock lock(mu_);
    ended_ = true;
    Wake();
  }
  bool closed() const override {
    const MutexLock lock(mu_);
    return closed_;
  }

  // ---- Of the loop's thread

  void Suspend() {
    const MutexLock lock(mu_);
    if (reply_ && !streams_) return;  // it was quick
    MHD_suspend_connection(connection_);
    suspended_ = true;
  }
  bool answered() const {
    const MutexLock lock(mu_);
    return reply_.has_value();
  }
  MHD_Result Answer() {
    HttpReply reply;
    bool streams = false;
    {
      const MutexLock lock(mu_);
      reply = *reply_;
      streams = streams_;
    }
    MHD_Response* response = nullptr;
    if (streams) {
      auto* const held = new std::shared_ptr<Exchange>(shared_from_this());
      response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, kBlock, &Read, held, &Free);
    } else {
      response = MHD_create_response_from_buffer(reply.body.size(), reply.body.data(), MHD_RESPMEM_MUST_COPY);
    }
    if (response == nullptr) return MHD_NO;
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, reply.content_type.c_str());
    if (!reply.allow.empty()) MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, reply.allow.c_str());
    for (const auto& [name, value] : reply.headers)
      MHD_add_response_header(response, name.c_str(), value.c_str());
    const MHD_Result queued = MHD_queue_response(connection_, static_cast<unsigned>(reply.code), response);
    MHD_destroy_response(response);
    return queued;
  }

  void Close() {
    const MutexLock lock(mu_);
    closed_ = true;
    waiting_.clear();
    changed_.SignalAll();
    if (std::exchange(suspended_, false)) loop_.Resume(connection_);
  }
  // Its connection is over: nothing may be done to it any more.
  void Gone() {
    const MutexLock lock(mu_);
    closed_ = true;
    gone_ = true;
    changed_.SignalAll();
  }
  // The socket of one that says nothing at the moment, or -1.
  int IdleSocket() const {
    const MutexLock lock(mu_);
    if (!suspended_ || gone_ || !streams_) return -1;
    const MHD_ConnectionInfo* const info =
        MHD_get_connection_info(connection_, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info == nullptr ? -1 : info->connect_fd;
  }
  bool suspended() const {
    const MutexLock lock(mu_);
    return suspended_;
  }

 private:
  void Wake() TY_REQUIRES(mu_) {
    if (!gone_ && std::exchange(suspended_, false)) loop_.Resume(connection_);
  }

  static ssize_t Read(void* self, std::uint64_t /*position*/, char* buffer, std::size_t most) {
    Exchange& exchange = **static_cast<std::shared_ptr<Exchange>*>(self);
    const MutexLock lock(exchange.mu_);
    if (exchange.closed_) return MHD_CONTENT_READER_END_OF_STREAM;
    if (!exchange.waiting_.empty()) {
      const std::size_t size = std::min(most, exchange.waiting_.size());
      std::copy_n(exchange.waiting_.data(), size, buffer);
      exchange.waiting_.erase(0, size);
      exchange.changed_.SignalAll();
      return static_cast<ssize_t>(size);
    }
    if (exchange.ended_) return MHD_CONTENT_READER_END_OF_STREAM;
    MHD_suspend_connection(exchange.connection_);
    exchange.suspended_ = true;
    return 0;
  }
  static void Free(void* self) { delete static_cast<std::shared_ptr<Exchange>*>(self); }

  HttpLoop& loop_;
  MHD_Connection* const connection_;
  mutable Mutex mu_;
  CondVar changed_;
  std::optional<HttpReply> reply_ TY_GUARDED_BY(mu_);
  std::string waiting_ TY_GUARDED_BY(mu_);
  bool streams_ TY_GUARDED_BY(mu_) = false;
  bool ended_ TY_GUARDED_BY(mu_) = false;
  bool closed_ TY_GUARDED_BY(mu_) = false;
  bool gone_ TY_GUARDED_BY(mu_) = false;
  bool suspended_ TY_GUARDED_BY(mu_) = false;
};

class MicroService final : public HttpService {
 public:
  MicroService(HttpServiceOptions options, Handler handler)
      : options_(std::move(options)), handler_(std::move(handler)) {}

  ~MicroService() override {
    {
      const MutexLock lock(mu_);
      stopping_ = true;
      changed_.SignalAll();
    }
    for (const auto& exchange : All()) exchange->Close();  // whoever writes to one is waited for
    for (std::thread& thread : threads_) thread.join();
    // None may be suspended when the loop ends.
    for (;;) {
      std::vector<std::shared_ptr<Exchange>> all = All();
      for (const auto& exchange : all) exchange->Close();
      if (std::ranges::none_of(all, [](const auto& exchange) { return exchange->suspended(); })) break;
    }
    loop_.Stop();
  }

  absl::Status Open() {
    TY_ASSIGN_OR_RETURN(address_, ParseListenAddress(options_.address));
    TY_ASSIGN_OR_RETURN(Fd socket, Listen(address_));
    TY_ASSIGN_OR_RETURN(address_.port, PortOf(socket));
    TY_RETURN_IF_ERROR(loop_.Start(std::move(socket), {.request_timeout = options_.request_timeout,
                                                       .on_request = &OnRequest,
                                                       .on_completed = &OnCompleted,
                                                       .self = this}));
    for (int i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { Work(); });
    threads_.emplace_back([this] { Look(); });
    return absl::OkStatus();
  }

  std::string address() const override { return address_.Text(); }

 private:
  static MHD_Result OnRequest(void* self, MHD_Connection* connection, const char* path, const char* method,
                              const char* /*version*/, const char* body, size_t* size, void** state) {
    return static_cast<MicroService*>(self)->Take(connection, path, method, {body, *size}, size, state);
  }

  MHD_Result Take(MHD_Connection* connection, const char* path, const char* method, std::string_view body,
                  size_t* size, void** state) {
    if (*state == nullptr) {
      auto exchange = std::make_shared<Exchange>(loop_, connection);
      exchange->request.method = method;
      exchange->request.path = path;
      MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, &OnArgument, exchange.get());
      const auto header = [&](const char* name) {
        const char* const value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
        return std::string(value == nullptr ? "" : value);
      };
      exchange->request.authorization = header("Authorization");
      exchange->request.host = header("Host");
      exchange->request.cookie = header("Cookie");
      const std::string site = header("Sec-Fetch-Site");
      exchange->request.from_page = !header("Origin").empty() || (!site.empty() && site != "none");
      if (options_.judge) exchange->verdict = options_.judge(exchange->request);
      if (!exchange->request.path.starts_with('/'))
        exchange->verdict.refusal = {.code = 400, .body = R"({"error":"a path begins with a slash"})"};
      *state = exchange.get();
      const MutexLock lock(mu_);
      exchanges_.insert(std::move(exchange));
      return MHD_YES;
    }
    auto& exchange = *static_cast<Exchange*>(*state);
    if (*size > 0) {
      std::optional<HttpReply>& refusal = exchange.verdict.refusal;
      if (!refusal && exchange.request.body.size() + *size > options_.most_body)
        refusal = {.code = 413, .body = R"({"error":"the body is too long"})"};
      if (!refusal) exchange.request.body.append(body);
      *size = 0;
      return MHD_YES;
    }
    if (exchange.verdict.refusal) exchange.Send(*std::exchange(exchange.verdict.refusal, std::nullopt));
    if (exchange.answered()) return exchange.Answer();
    if (std::exchange(exchange.dispatched, true)) return MHD_YES;
    const MutexLock lock(mu_);
    if (stopping_) {
      exchange.Send({.code = 503, .body = R"({"error":"it is ending"})"});
      return exchange.Answer();
    }
    if (exchange.verdict.trusted) loop_.Serve(connection);
    exchange.Suspend();
    queue_.push_back(exchange.shared_from_this());
    changed_.SignalAll();
    return MHD_YES;
  }

  static MHD_Result OnArgument(void* self, MHD_ValueKind /*kind*/, const char* name, const char* value) {
    static_cast<Exchange*>(self)->request.query[name] = value == nullptr ? "" : value;
    return MHD_YES;
  }

  static void OnCompleted(void* self, MHD_Connection* /*connection*/, void** state,
                          MHD_RequestTerminationCode /*code*/) {
    if (*state == nullptr) return;
    auto* const exchange = static_cast<Exchange*>(*state);
    *state = nullptr;
    exchange->Gone();
    auto& service = *static_cast<MicroService*>(self);
    const std::shared_ptr<Exchange> kept = exchange->shared_from_this();  // goes after the lock
    const MutexLock lock(service.mu_);
    service.exchanges_.erase(kept);
  }

  void Work() {
    for (;;) {
      std::shared_ptr<Exchange> exchange;
      {
        const MutexLock lock(mu_);
        while (queue_.empty() && !stopping_) changed_.Wait(mu_);
        if (stopping_) return;
        exchange = std::move(queue_.front());
        queue_.pop_front();
      }
      handler_(exchange->request, *exchange);
      if (!exchange->answered()) exchange->Send({.code = 500, .body = R"({"error":"nobody has answered"})"});
    }
  }

  std::vector<std::shared_ptr<Exchange>> All() {
    const MutexLock lock(mu_);
    return {exchanges_.begin(), exchanges_.end()};
  }

  // The library does not look at connections that are suspended: whether their clients have gone is for us to
  // see.
  void Look() {
    for (;;) {
      {
        const MutexLock lock(mu_);
        while (!stopping_ && exchanges_.empty()) changed_.Wait(mu_);
        if (!stopping_) changed_.WaitUntil(mu_, Clock::System().Steady() + kLookEvery);
        if (stopping_) return;
      }
      for (const auto& exchange : All()) {
        pollfd socket{.fd = exchange->IdleSocket(), .events = POLLRDHUP, .revents = 0};
        if (socket.fd >= 0 && ::poll(&socket, 1, 0) > 0) exchange->Close();
      }
    }
  }

  const HttpServiceOptions options_;
  const Handler handler_;
  ListenAddress address_;
  Mutex mu_;
  CondVar changed_;
  std::deque<std::shared_ptr<Exchange>> queue_ TY_GUARDED_BY(mu_);
  std::set<std::shared_ptr<Exchange>> exchanges_ TY_GUARDED_BY(mu_);
  bool stopping_ TY_GUARDED_BY(mu_) = false;
  std::vector<std::thread> threads_;
  HttpLoop loop_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<HttpService>> HttpService::Start(const HttpServiceOptions& options,
                                                                Handler handler) {
  auto service = std::make_unique<MicroService>(options, std::move(handler));
  if (absl::Status opened = service->Open(); !opened.ok()) return opened;
  return service;
}

}  // namespace trainyard
