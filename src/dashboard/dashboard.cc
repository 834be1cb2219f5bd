#include "dashboard/dashboard.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/access.h"
#include "base/document.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/text.h"
#include "dashboard/log_plots.h"
#include "dashboard/observer.h"
#include "dashboard/pages.h"
#include "embedded/web.h"
#include "http/service.h"
#include "kube/error.h"
#include "kube/names.h"
#include "view/reader.h"

namespace trainyard::dashboard {
namespace {

constexpr std::string_view kCookie = "trainyard_token";
constexpr std::string_view kPage = "index.html";
constexpr std::size_t kMostStreams = 100;
constexpr absl::Duration kPingEvery = absl::Seconds(15);

http::Response Json(const Document& document, int code = 200) {
  return {.code = code, .body = PrintJson(document), .headers = {{"Cache-Control", "no-store"}}};
}
http::Response Refuse(int code, std::string_view why) { return Json(Object{{"error", why}}, code); }

// The value of a cookie; "" if there is none.
std::string_view CookieOf(std::string_view header, std::string_view name) {
  for (std::string_view part : Split(header, ';')) {
    while (part.starts_with(' ')) part.remove_prefix(1);
    if (part.size() > name.size() && part.starts_with(name) && part[name.size()] == '=')
      return part.substr(name.size() + 1);
  }
  return "";
}

std::string_view ContentTypeOf(std::string_view file) {
  if (file.ends_with(".html")) return "text/html; charset=utf-8";
  if (file.ends_with(".js")) return "text/javascript; charset=utf-8";
  if (file.ends_with(".css")) return "text/css; charset=utf-8";
  return "image/svg+xml";
}

class Served final : public Dashboard {
 public:
  Served(kube::Transport& transport, Clock& clock, DashboardOptions options)
      : clock_(clock),
        options_(std::move(options)),
        api_(transport, clock, IdSource::Random(), {.attempts = 2}),
        log_plots_(transport, clock),
        observer_(transport, clock, {.ns = options_.ns, .look_every = options_.look_every},
                  {.changed = [this] { Tell("change", R"({"what":"jobs"})"); },
                   .event =
                       [this](const ClusterEvent& event) {
                         Tell("event", PrintJson(PrintEvent(event.event, event.ns)));
                       }}),
        pinger_([this] { Ping(); }) {}

  ~Served() override {
    {
      const MutexLock lock(mu_);
      stopping_ = true;
      changed_.SignalAll();
    }
    service_.reset();  // ends the streams
    pinger_.join();
  }

  absl::Status Listen() {
    auto service = ServeAt(options_.address);
    if (absl::IsUnavailable(service.status()) && options_.other_port) {
      TY_ASSIGN_OR_RETURN(ListenAddress other, ParseListenAddress(options_.address));
      other.port = 0;
      service = ServeAt(other.Text());
    }
    TY_RETURN_IF_ERROR(service);
    service_ = *std::move(service);
    return absl::OkStatus();
  }

  std::string Url() const override {
    return StrCat("http://", service_->address(), "/?token=", options_.token);
  }

 private:
  absl::StatusOr<std::unique_ptr<http::Service>> ServeAt(std::string address) {
    return http::Service::Start({.address = std::move(address),
                                 .judge = [this](const http::ServiceRequest& head) { return Judge(head); }},
                                [this](const http::ServiceRequest& request, http::ServiceExchange& exchange) {
                                  Answer(request, exchange);
                                });
  }

  // Cookies know no ports, and several dashboards may be on one machine.
  std::string CookieName() const {
    const std::string address = service_->address();
    return StrCat(kCookie, "_", address.substr(address.rfind(':') + 1));
  }

  bool Knows(const http::ServiceRequest& request) const {
    const std::string_view cookie = CookieOf(request.Header("Cookie"), CookieName());
    return SameSecret(cookie, options_.token) ||
           SameSecret(BearerToken(request.Header("Authorization")), options_.token);
  }

  http::ServiceVerdict Judge(const http::ServiceRequest& head) {
    if (Knows(head)) return {.trusted = true};
    const std::string_view authorization = head.Header("Authorization");
    const std::string_view sent =
        authorization.empty() ? CookieOf(head.Header("Cookie"), CookieName()) : authorization;
    wrong_tokens_.Note(sent);
    if (!head.path.starts_with("/api/")) return {};
    return {.refusal = Refuse(401, StrCat(sent.empty() ? "no token" : "wrong token",
                                          ": open the dashboard with ?token=TOKEN in its address"))};
  }

  void Answer(const http::ServiceRequest& request, http::ServiceExchange& exchange) {
    if (request.method != "GET" && request.method != "HEAD")
      return exchange.Send({.code = 405, .body = R"({"error":"use GET"})", .headers = {{"Allow", "GET"}}});
    // Whoever brings the token in the address gets it as a cookie, and an address without it.
    if (const auto given = request.query.find("token"); request.path == "/" && given != request.query.end()) {
      if (!SameSecret(TrimToken(given->second), options_.token)) {
        wrong_tokens_.Note(given->second);
        return exchange.Send(Page(401));
      }
      return exchange.Send({.code = 303,
                            .content_type = "text/plain",
                            .headers = {{"Location", "/"},
                                        {"Cache-Control", "no-store"},
                                        {"Set-Cookie", StrCat(CookieName(), "=", options_.token,
                                                              "; Path=/; HttpOnly; SameSite=Strict")}}});
    }
    if (request.path.starts_with("/api/")) return AnswerApi(request, exchange);
    for (const embedded::File& file : embedded::web()) {
      if (request.path.substr(1) == file.name || (request.path == "/" && file.name == kPage))
        return exchange.Send(Show(file, 200));
    }
    exchange.Send(Refuse(404, "there is nothing here"));
  }

  // The page itself holds no secret: it says that it needs the token, if it has none.
  static http::Response Page(int code) {
    for (const embedded::File& file : embedded::web()) {
      if (file.name == kPage) return Show(file, code);
    }
    return Refuse(code, "there is no page");
  }
  static http::Response Show(const embedded::File& file, int code) {
    return {.code = code,
            .content_type = std::string(ContentTypeOf(file.name)),
            .body = std::string(file.bytes),
            .headers = {{"Cache-Control", "no-cache"},
                        {"Content-Security-Policy", "default-src 'self'; frame-ancestors 'none'"},
                        {"X-Content-Type-Options", "nosniff"},
                        {"Referrer-Policy", "no-referrer"}}};
  }

  void AnswerApi(const http::ServiceRequest& request, http::ServiceExchange& exchange) {
    observer_.Attend();
    if (request.path == "/api/jobs")
      return exchange.Send(Json(JobsPage(*observer_.Look(), options_.cluster, clock_.Now())));
    if (request.path == "/api/job") return exchange.Send(AnswerJob(request));
    if (request.path == "/api/nodes") return exchange.Send(AnswerNodes());
    if (request.path == "/api/events")
      return exchange.Send(Json(EventsPage(observer_.Events(), clock_.Now())));
    if (request.path == "/api/stream") return BeginStream(exchange);
    exchange.Send(Refuse(404, "there is nothing here"));
  }

  static std::string ArgumentOf(const http::ServiceRequest& request, const std::string& name) {
    const auto found = request.query.find(name);
    return found == request.query.end() ? "" : found->second;
  }

  http::Response AnswerJob(const http::ServiceRequest& request) {
    const auto kind = view::ParseKind(ArgumentOf(request, "kind"));
    if (!kind) return Refuse(404, "there is no such kind of job");
    const std::string ns = ArgumentOf(request, "namespace");
    const std::string name = ArgumentOf(request, "name");
    for (const std::string_view wrong :
         {kube::FindDns1123LabelProblem(ns), kube::FindDns1123SubdomainProblem(name)}) {
      if (!wrong.empty())
        return Refuse(400, StrCat("a job is asked for by namespace and name; each ", wrong));
    }
    auto job = view::FindJob(api_, ns, {.kind = kind, .name = name});
    if (absl::IsNotFound(job.status())) return Refuse(404, Message(job.status()));
    if (!job.ok()) return Refuse(503, Message(job.status()));
    const auto page = view::ReadPage(api_, *std::move(job));
    if (!page.ok()) return Refuse(503, Message(page.status()));
    const auto seen = observer_.Look()->Find(*kind, ns, name);
    JobExtras extras{.seen = seen.get(), .plots = log_plots_.Read(*page)};
    // None, where the cluster does not measure.
    if (auto usage = view::ReadUsage(api_, ns); usage.ok()) extras.usage = *std::move(usage);
    return Json(JobPage(*page, std::move(extras), clock_.Now()));
  }

  http::Response AnswerNodes() {
    const auto nodes = api_.ListAll(kube::Resource::Nodes(), "", {});
    const auto pods = api_.ListAll(kube::Resource::Pods(), options_.ns, {});
    if (!nodes.ok() || !pods.ok()) return Refuse(503, Message(nodes.ok() ? pods.status() : nodes.status()));
    std::vector<kube::CompactNode> all_nodes;
    std::vector<kube::CompactPod> all_pods;
    for (const std::string& item : nodes->items) {
      if (auto node = kube::ParseNode(item); node.ok()) all_nodes.push_back(*std::move(node));
    }
    for (const std::string& item : pods->items) {
      if (auto pod = kube::ParsePod(item); pod.ok()) all_pods.push_back(*std::move(pod));
    }
    return Json(NodesPage(all_nodes, all_pods, clock_.Now()));
  }

  void BeginStream(http::ServiceExchange& exchange) {
    const MutexLock lock(mu_);
    std::erase_if(streams_, [](const auto& stream) { return stream->closed(); });
    if (streams_.size() >= kMostStreams) return exchange.Send(Refuse(503, "too many pages are open"));
    auto stream = exchange.Begin("text/event-stream");
    stream->Offer(": hello\n\n");
    streams_.push_back(std::move(stream));
    changed_.SignalAll();
  }

  void Tell(std::string_view event, std::string_view data) {
    const MutexLock lock(mu_);
    for (const auto& stream : streams_) stream->Offer(StrCat("event: ", event, "\ndata: ", data, "\n\n"));
    std::erase_if(streams_, [](const auto& stream) { return stream->closed(); });
  }

  void Ping() {
    const MutexLock lock(mu_);
    while (!stopping_) {
      if (streams_.empty()) {
        changed_.Wait(mu_);
      } else {
        changed_.WaitUntil(mu_, Clock::System().Steady() + kPingEvery);
      }
      std::erase_if(streams_, [](const auto& stream) { return stream->closed(); });
      if (streams_.empty()) continue;
      observer_.Attend();
      for (const auto& stream : streams_) stream->Offer(": ping\n\n");
    }
  }

  Clock& clock_;
  const DashboardOptions options_;
  WrongTokens wrong_tokens_{"the dashboard"};
  kube::Api api_;
  Mutex mu_;
  CondVar changed_;
  bool stopping_ TY_GUARDED_BY(mu_) = false;
  std::vector<std::shared_ptr<http::ServiceStream>> streams_ TY_GUARDED_BY(mu_);
  LogPlots log_plots_;
  Observer observer_;
  std::thread pinger_;
  std::unique_ptr<http::Service> service_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Dashboard>> Dashboard::Start(kube::Transport& transport, Clock& clock,
                                                            DashboardOptions options) {
  if (options.token.empty()) {
    TY_ASSIGN_OR_RETURN(options.token, NewToken());
  }
  auto served = std::make_unique<Served>(transport, clock, std::move(options));
  TY_RETURN_IF_ERROR(served->Listen());
  return served;
}

}  // namespace trainyard::dashboard
