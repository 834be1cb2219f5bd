#include "launch/server.h"

#include <future>
#include <list>
#include <utility>

#include "base/access.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/rfc3339.h"
#include "base/status.h"
#include "base/text.h"
#include "embedded/openapi.h"
#include "http/service.h"
#include "kube/error.h"
#include "launch/task_logs.h"

namespace trainyard::launch {
namespace {

constexpr absl::Duration kHeartbeat = absl::Seconds(5);
constexpr std::size_t kMostStreams = 200;

int CodeOf(const absl::Status& status) {
  if (absl::IsInvalidArgument(status)) return 400;
  if (absl::IsUnauthenticated(status)) return 401;
  if (absl::IsNotFound(status) || kube::IsNotFound(status)) return 404;
  if (absl::IsAlreadyExists(status) || absl::IsFailedPrecondition(status)) return 409;
  return 503;
}

http::Response Refusal(const absl::Status& status) {
  return {.code = CodeOf(status), .body = PrintJson(Object{{"error", Message(status)}})};
}

http::Response Json(int code, const Document& document) {
  return {.code = code, .body = PrintJson(document)};
}

http::Response NotAllowed(const std::string& allow) {
  return {.code = 405,
          .body = PrintJson(Object{{"error", StrCat("use ", allow)}}),
          .headers = {{"Allow", allow}}};
}

std::string Argument(const http::ServiceRequest& request, const std::string& name) {
  const auto found = request.query.find(name);
  return found == request.query.end() ? "" : found->second;
}

bool IsSet(const http::ServiceRequest& request, const std::string& name) {
  const std::string value = Argument(request, name);
  return !value.empty() && value != "0" && value != "false";
}

// "localhost:7897", "127.0.0.1", "[::1]:7897"; a client without a word about it is none of a browser's.
bool IsLoopback(std::string_view host) {
  if (host.empty()) return true;
  if (!host.ends_with(']')) {
    if (const std::size_t colon = host.rfind(':'); colon != std::string_view::npos)
      host = host.substr(0, colon);
  }
  if (host == "localhost" || host == "[::1]") return true;
  const auto address = ParseListenAddress(StrCat(host, ":0"));
  return address.ok() && address->IsLoopback();
}

class TaskServer final : public Server {
 public:
  TaskServer(Controller& controller, ServerOptions options)
      : controller_(controller), options_(std::move(options)) {}
  ~TaskServer() override {
    service_.reset();  // streams are closed by that
    const MutexLock lock(mu_);
    streams_.clear();
  }

  absl::Status Open() {
    TY_ASSIGN_OR_RETURN(
        service_,
        http::Service::Start({.address = options_.address,
                              .judge = [this](const http::ServiceRequest& head) { return Judge(head); }},
                             [this](const http::ServiceRequest& request, http::ServiceExchange& exchange) {
                               Handle(request, exchange);
                             }));
    return absl::OkStatus();
  }
  std::string address() const override { return service_->address(); }

 private:
  void Handle(const http::ServiceRequest& request, http::ServiceExchange& exchange) {
    if (request.path == "/healthz") return exchange.Send({.content_type = "text/plain", .body = "ok\n"});
    if (request.path == "/openapi.json")
      return exchange.Send({.body = std::string(embedded::openapi().front().bytes)});
    const std::vector<std::string_view> parts = Split(std::string_view(request.path).substr(1), '/');
    if (parts[0] == "create" && parts.size() == 1)
      return exchange.Send(request.method == "GET" ? CreateByQuery(request) : NotAllowed("GET"));
    if (parts[0] != "tasks" || parts.size() > 3)
      return exchange.Send(Refusal(absl::NotFoundError("there is no such path: see /openapi.json")));
    if (parts.size() == 1) return exchange.Send(OnTasks(request));
    OnTask(request, std::string(parts[1]), parts.size() == 3 ? parts[2] : "", exchange);
  }

  http::ServiceVerdict Judge(const http::ServiceRequest& head) {
    if (head.path == "/healthz" || head.path == "/openapi.json") return {};
    const absl::Status allowed = Check(head);
    if (allowed.ok()) return {.trusted = true};
    if (!options_.token.empty()) wrong_tokens_.Note(head.Header("Authorization"));
    return {.refusal = Refusal(allowed)};
  }

  absl::Status Check(const http::ServiceRequest& request) const {
    const std::string_view sent = request.Header("Authorization");
    if (!options_.token.empty() && !IsToken(sent, options_.token))
      return absl::UnauthenticatedError(StrCat(sent.empty() ? "no token" : "wrong token",
                                               ": send the launcher's token: Authorization: Bearer TOKEN"));
    // A page can make a browser ask anything, under any name that leads here.
    if (options_.token.empty() && (request.from_page || !IsLoopback(request.Header("Host"))))
      return absl::UnauthenticatedError(
          "web pages may not use a launcher without a token, nor may it be called by another name than "
          "localhost or 127.0.0.1");
    return absl::OkStatus();
  }

  http::Response Create(const absl::StatusOr<TaskSpec>& spec) {
    if (!spec.ok()) return Refusal(spec.status());
    if (const absl::Status made = controller_.Create(*spec); !made.ok()) return Refusal(made);
    return Json(201, Object{{"name", spec->name}, {"phase", "Pending"}});
  }
  http::Response CreateByQuery(const http::ServiceRequest& request) {
    return Create(ParseCreateQuery(request.query));
  }

  http::Response OnTasks(const http::ServiceRequest& request) {
    if (request.method == "POST") return Create(ParseTaskSpec(request.body));
    if (request.method != "GET") return NotAllowed("GET, POST");
    Array list;
    for (const auto& task : controller_.List()) list.push_back(TaskDocument(*task));
    return Json(200, Object{{"tasks", std::move(list)}});
  }

  absl::Status NoSuch(const std::string& name) const {
    std::string others;
    for (const auto& task : controller_.List())
      StrAppend(others, others.empty() ? "" : ", ", task->meta.name);
    return absl::NotFoundError(StrCat("there is no task ", Shortened(Escaped(name), 64), "; there ",
                                      others.empty() ? "are none" : StrCat("are: ", others)));
  }

  void OnTask(const http::ServiceRequest& request, const std::string& name, std::string_view what,
              http::ServiceExchange& exchange) {
    const std::shared_ptr<const StoredTask> task = controller_.Find(name);
    if (task == nullptr) return exchange.Send(Refusal(NoSuch(name)));
    const bool get = request.method == "GET";
    if (what.empty()) {
      if (get) return exchange.Send(Json(200, TaskDocument(*task)));
      if (request.method != "DELETE") return exchange.Send(NotAllowed("GET, DELETE"));
      return exchange.Send(Done(controller_.Delete(name)));
    }
    if (what == "cancel")
      return exchange.Send(request.method == "POST" ? Done(controller_.Cancel(name)) : NotAllowed("POST"));
    if (what == "events") return get ? OnEvents(request, name, exchange) : exchange.Send(NotAllowed("GET"));
    if (what == "logs") return get ? OnLogs(request, name, exchange) : exchange.Send(NotAllowed("GET"));
    exchange.Send(Refusal(absl::NotFoundError("a task has no such part: there are cancel, events and logs")));
  }

  static http::Response Done(const absl::Status& status) {
    return status.ok() ? Json(202, Object()) : Refusal(status);
  }

  // Each change of the task as a server-sent event, until it is over.
  void OnEvents(const http::ServiceRequest&, const std::string& name, http::ServiceExchange& exchange) {
    Stream(exchange, "text/event-stream", [this, name](http::ServiceStream& stream) {
      std::string told;
      std::uint64_t seen = 0;
      SteadyTime last = Clock::System().Steady();
      while (!stream.closed()) {
        const std::shared_ptr<const StoredTask> task = controller_.Find(name);
        if (task == nullptr) {
          stream.Write("event: deleted\ndata: {}\n\n");
          return;
        }
        std::string text = PrintJson(TaskDocument(*task));
        const SteadyTime now = Clock::System().Steady();
        if (text != told || now - last >= kHeartbeat) {
          stream.Write(text == told ? ": still here\n\n" : StrCat("data: ", text, "\n\n"));
          last = now;
        }
        told = std::move(text);
        if (IsOver(task->status.phase)) return;
        seen = controller_.AwaitChange(seen, kHeartbeat);
      }
    });
  }

  void OnLogs(const http::ServiceRequest& request, const std::string& name, http::ServiceExchange& exchange) {
    LogQuery query{.task = name, .follow = IsSet(request, "follow")};
    if (const std::string member = Argument(request, "member"); !member.empty()) {
      query.member = ParseMember(member);
      const std::shared_ptr<const StoredTask> task = controller_.Find(name);
      if (!query.member || task == nullptr || !task->status.members.contains(*query.member))
        return exchange.Send(Refusal(absl::NotFoundError(StrCat(
            "task ", name, " has no member ", Shortened(Escaped(member), 64), ": name one as worker-0"))));
    }
    if (const std::string tail = Argument(request, "tail"); !tail.empty()) {
      query.tail = ParseNumber<int>(tail);
      if (!query.tail || *query.tail < 0)
        return exchange.Send(Refusal(absl::InvalidArgumentError("tail must be a number of lines")));
    }
    Stream(exchange, "text/plain; charset=utf-8",
           [this, query](http::ServiceStream& stream) { WriteLogs(controller_, query, stream); });
  }

  // In a thread of its own, which ends when the stream does.
  void Stream(http::ServiceExchange& exchange, std::string type,
              const std::function<void(http::ServiceStream&)>& write) {
    const MutexLock lock(mu_);
    std::erase_if(streams_, [](const std::future<void>& one) {
      return one.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    });
    if (streams_.size() >= kMostStreams)
      return exchange.Send(Refusal(absl::ResourceExhaustedError("too many follow tasks already")));
    streams_.push_back(std::async(std::launch::async, [stream = exchange.Begin(std::move(type)), write] {
      write(*stream);
      stream->End();
    }));
  }

  Controller& controller_;
  const ServerOptions options_;
  WrongTokens wrong_tokens_{"the launcher"};
  Mutex mu_;
  std::list<std::future<void>> streams_ TY_GUARDED_BY(mu_);
  std::unique_ptr<http::Service> service_;
};

}  // namespace

Document TaskDocument(const StoredTask& task) {
  const Document progress = job::PrintProgress(task.status);
  Array members;
  for (const auto& [id, member] : task.status.members) {
    members.push_back(Object{{"name", Print(id)},
                             {"pod", PodName(task.spec.name, id)},
                             {"attempt", member.attempt},
                             {"state", member.state}});
  }
  Object object{{"name", task.meta.name},
                {"phase", Print(task.status.phase)},
                {"reason", task.wrong.empty() ? task.status.reason : task.wrong},
                {"created", PrintTime(task.meta.created)},
                {"members", std::move(members)},
                {"spec", ParseJson(Print(task.spec)).value_or(Document())}};
  for (const char* const field : {"attempt", "restarts", "running", "history", "started", "ended"}) {
    if (const Document* const value = Find(progress, {field})) object[field] = *value;
  }
  return object;
}

absl::StatusOr<TaskSpec> ParseCreateQuery(const std::map<std::string, std::string>& query) {
  TaskSpec spec{.name = "default"};
  for (const auto& [name, value] : query) {
    const auto number = ParseNumber<int>(value);
    if (name == "strategy") {
      const auto strategy = ParseStrategy(value);
      if (!strategy)
        return absl::InvalidArgumentError(StrCat("strategy is AllReduce or ParameterServer, and not '",
                                                 Shortened(Escaped(value), 64), "'"));
      spec.strategy = *strategy;
    } else if (name == "n_worker" || name == "n_ps") {
      if (!number)
        return absl::InvalidArgumentError(
            StrCat(name, " must be a number, and is '", Shortened(Escaped(value), 64), "'"));
      (name == "n_ps" ? spec.ps : spec.workers) = *number;
    } else if (name == "img") {
      spec.image = value;
    } else if (name == "name") {
      spec.name = value;
    } else {
      return absl::InvalidArgumentError(StrCat("there is no ", Shortened(Escaped(name), 64),
                                               ": there are strategy, n_worker, n_ps, img and name"));
    }
  }
  return spec;
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(Controller& controller, ServerOptions options) {
  auto server = std::make_unique<TaskServer>(controller, std::move(options));
  if (absl::Status opened = server->Open(); !opened.ok()) return opened;
  return server;
}

}  // namespace trainyard::launch
