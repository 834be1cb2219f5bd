#include "http/service.h"

#include <deque>
#include <thread>
#include <utility>
#include <vector>

#include "base/access.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::http {
namespace {

constexpr std::size_t kMostWaiting = std::size_t{256} << 10;  // of a stream
constexpr absl::Duration kServiceWriteTimeout = absl::Seconds(30);
constexpr std::size_t kServiceConnections = 256;
constexpr std::size_t kServiceStrangers = 64;
constexpr absl::Duration kPageTimeout = absl::Seconds(10);
constexpr std::size_t kPageConnections = 64;

// As browsers and servers of old do it: what is no escape stays as it is, and so does a NUL.
std::string Unescaped(std::string_view text, bool query) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = text[i] == '%' && i + 2 < text.size()
                          ? ParseNumber<std::uint8_t>(text.substr(i + 1, 2), 16)
                          : std::nullopt;
    if (byte && *byte != 0) {
      out += static_cast<char>(*byte);
      i += 2;
    } else {
      out += query && text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

ServiceRequest ParseServiceRequest(std::string_view method, std::string_view target, const Headers& headers) {
  const std::size_t mark = target.find('?');
  ServiceRequest request{
      .method = std::string(method), .path = Unescaped(target.substr(0, mark), false), .headers = headers};
  if (mark != std::string_view::npos) {
    for (const std::string_view part : Split(target.substr(mark + 1), '&')) {
      const std::size_t equals = part.find('=');
      if (part.empty()) continue;
      request.query[Unescaped(part.substr(0, equals), true)] =
          equals == std::string_view::npos ? "" : Unescaped(part.substr(equals + 1), true);
    }
  }
  const std::string_view site = request.Header("Sec-Fetch-Site");
  request.from_page = !request.Header("Origin").empty() || (!site.empty() && site != "none");
  return request;
}

class WriterStream final : public ServiceStream, public std::enable_shared_from_this<WriterStream> {
 public:
  static std::shared_ptr<WriterStream> Make(std::shared_ptr<BodyWriter> writer) {
    auto stream = std::make_shared<WriterStream>(std::move(writer));
    stream->writer_->OnGone([weak = stream->weak_from_this()] {
      if (const auto self = weak.lock()) self->Closed();
    });
    return stream;
  }
  explicit WriterStream(std::shared_ptr<BodyWriter> writer) : writer_(std::move(writer)) {}

  bool Write(std::string_view bytes) override {
    while (!closed()) {
      if (writer_->Backlog() < kMostWaiting) return Put(bytes);
      {
        const MutexLock lock(mu_);
        room_ = false;
      }
      writer_->OnRoom(kMostWaiting / 2, [weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->HasRoom();
      });
      const MutexLock lock(mu_);
      while (!room_ && !closed_) changed_.Wait(mu_);
    }
    return false;
  }
  bool Offer(std::string_view bytes) override {
    if (closed()) return false;
    if (writer_->Backlog() < kMostWaiting) return Put(bytes);
    Closed();
    writer_->Close();  // the connection goes when its client takes nothing more
    return false;
  }
  void End() override { writer_->Close(); }
  bool closed() const override {
    const MutexLock lock(mu_);
    return closed_;
  }

 private:
  bool Put(std::string_view bytes) {
    if (writer_->Write(std::make_shared<const std::string>(bytes))) return true;
    Closed();
    return false;
  }
  void Closed() {
    const MutexLock lock(mu_);
    closed_ = true;
    changed_.SignalAll();
  }
  void HasRoom() {
    const MutexLock lock(mu_);
    room_ = true;
    changed_.SignalAll();
  }

  const std::shared_ptr<BodyWriter> writer_;
  mutable Mutex mu_;
  CondVar changed_;
  bool closed_ TY_GUARDED_BY(mu_) = false;
  bool room_ TY_GUARDED_BY(mu_) = false;
};

class ResponderExchange final : public ServiceExchange {
 public:
  explicit ResponderExchange(Responder& responder) : responder_(responder) {}
  void Send(Response reply) override { responder_.Send(std::move(reply)); }
  std::shared_ptr<ServiceStream> Begin(std::string content_type) override {
    return WriterStream::Make(responder_.Stream({.content_type = std::move(content_type)}));
  }

 private:
  Responder& responder_;
};

class ThreadedService final : public Service {
 public:
  ThreadedService(ServiceOptions options, Handler handler)
      : options_(std::move(options)), handler_(std::move(handler)) {}

  ~ThreadedService() override {
    {
      const MutexLock lock(mu_);
      stopping_ = true;
      changed_.SignalAll();
    }
    server_.reset();  // closes the streams: whoever writes to one is waited for
    for (std::thread& thread : threads_) thread.join();
  }

  absl::Status Open() {
    TY_ASSIGN_OR_RETURN(ListenAddress address, ParseListenAddress(options_.address));
    TY_ASSIGN_OR_RETURN(server_,
                        Server::Start({.listen = std::move(address),
                                       .max_body_bytes = options_.most_body,
                                       .max_connections = kServiceConnections,
                                       .max_strangers = kServiceStrangers,
                                       .head_timeout = options_.request_timeout,
                                       .body_timeout = options_.request_timeout,
                                       .idle_timeout = options_.request_timeout,
                                       .write_timeout = kServiceWriteTimeout,
                                       .all_headers = true},
                                      options_.judge == nullptr ? Judge() : JudgeOf(options_.judge),
                                      [this](ServerRequest request, std::unique_ptr<Responder> responder) {
                                        Take(std::move(request), std::move(responder));
                                      }));
    for (int i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { Work(); });
    return absl::OkStatus();
  }

  std::string address() const override { return server_->address(); }

 private:
  struct Job {
    ServerRequest request;
    std::unique_ptr<Responder> responder;
  };

  static Judge JudgeOf(const std::function<ServiceVerdict(const ServiceRequest&)>& judge) {
    return [judge](const RequestHead& head, const std::optional<Identity>&) -> Verdict {
      ServiceVerdict verdict = judge(ParseServiceRequest(head.method, head.target, head.headers));
      return {.admitted = verdict.trusted, .refusal = std::move(verdict.refusal)};
    };
  }

  void Take(ServerRequest request, std::unique_ptr<Responder> responder) {
    const MutexLock lock(mu_);
    if (stopping_) return responder->Send(PrintJsonError(503, "it is ending"));
    queue_.push_back({std::move(request), std::move(responder)});
    changed_.Signal();
  }

  void Work() {
    for (;;) {
      Job job;
      {
        const MutexLock lock(mu_);
        while (queue_.empty() && !stopping_) changed_.Wait(mu_);
        if (stopping_) return;
        job = std::move(queue_.front());
        queue_.pop_front();
      }
      Request& asked = job.request.request;
      ServiceRequest request = ParseServiceRequest(asked.method, asked.target, job.request.headers);
      request.body = std::move(asked.body);
      ResponderExchange exchange(*job.responder);
      handler_(request, exchange);
    }
  }

  const ServiceOptions options_;
  const Handler handler_;
  Mutex mu_;
  CondVar changed_;
  std::deque<Job> queue_ TY_GUARDED_BY(mu_);
  bool stopping_ TY_GUARDED_BY(mu_) = false;
  std::vector<std::thread> threads_;
  std::unique_ptr<Server> server_;
};

Response PrintTextError(int code, std::string_view message) {
  return {.code = code, .content_type = "text/plain; charset=utf-8", .body = StrCat(message, "\n")};
}

Response AnswerPage(const Pages& pages, const Request& request) {
  if (request.method != "GET" && request.method != "HEAD") return PrintTextError(405, "GET only");
  const auto found = pages.find(std::string_view(request.target).substr(0, request.target.find('?')));
  if (found != pages.end()) return found->second();
  std::string list;
  for (const auto& [name, page] : pages) StrAppend(list, " ", name);
  return PrintTextError(404, StrCat("there is no such page; there are", list));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Service>> Service::Start(const ServiceOptions& options, Handler handler) {
  auto service = std::make_unique<ThreadedService>(options, std::move(handler));
  if (absl::Status opened = service->Open(); !opened.ok()) return opened;
  return service;
}

absl::StatusOr<std::unique_ptr<Server>> ServePages(const std::string& address, Pages pages) {
  TY_ASSIGN_OR_RETURN(ListenAddress listen, ParseListenAddress(address));
  return Server::Start(
      {.listen = std::move(listen),
       .max_body_bytes = 0,
       .max_connections = kPageConnections,
       .max_strangers = kPageConnections,
       .head_timeout = kPageTimeout,
       .body_timeout = kPageTimeout,
       .idle_timeout = kPageTimeout,
       .write_timeout = kPageTimeout,
       .print_error = PrintTextError},
      [](const RequestHead&, const std::optional<Identity>&) { return Verdict(); },
      [pages = std::move(pages)](const ServerRequest& request, const std::unique_ptr<Responder>& responder) {
        responder->Send(AnswerPage(pages, request.request));
      });
}

}  // namespace trainyard::http
