#include "kv/gateway/gateway_routes.h"

#include <deque>
#include <map>
#include <utility>

#include "base/json.h"
#include "base/status.h"
#include "base/text.h"
#include "kv/etcd/etcd_server_codec.h"
#include "kv/etcd/etcd_server_watch.h"
#include "kv/gateway/gateway_json.h"

namespace trainyard::kv {
namespace {

using Done = std::function<void(GatewayAnswer)>;
using Wake = std::function<void()>;

// ---- one answer

template <typename Request, typename Response>
void Answer(EtcdCalls& calls, const std::string& body, const Done& done) {
  Request request;
  if (const absl::Status parsed = ParseJson(body, request); !parsed.ok()) {
    return done(GatewayAnswer::Error(parsed));
  }
  calls.Do(request, [done](const absl::StatusOr<Response>& response) {
    done(response.ok() ? GatewayAnswer{.body = PrintJson(*response)}
                       : GatewayAnswer::Error(response.status()));
  });
}

template <typename Request, typename Response>
GatewayRoute Post() {
  return {.answer = Answer<Request, Response>};
}

void Health(EtcdCalls& calls, const std::string& /*body*/, const Done& done) {
  const bool healthy = calls.Newest().ok();
  GatewayAnswer answer = GatewayAnswer::Text(healthy ? 200 : 503, "");
  answer.body = JsonObject().Add("health", healthy ? "true" : "false").Str();
  done(std::move(answer));
}

void VersionAnswer(EtcdCalls& /*calls*/, const std::string& /*body*/, const Done& done) {
  done({.body =
            JsonObject().Add("etcdserver", kServedEtcdVersion).Add("etcdcluster", kServedEtcdVersion).Str()});
}

// ---- a line each

template <typename Request, typename Response>
class SessionLines final : public LineStream {
 public:
  using Session = ServedSession<Request, Response>;
  SessionLines(std::deque<Request> requests, std::unique_ptr<Session> session)
      : requests_(std::move(requests)), session_(std::move(session)) {}

  std::optional<std::string> Next() override {
    while (!requests_.empty() && !session_->Full()) {
      session_->Handle(requests_.front());
      requests_.pop_front();
    }
    std::optional<absl::StatusOr<Response>> next = session_->Next();
    if (next && next->ok()) return StrCat("{\"result\":", PrintJson(**next), "}\n");
    if (!next && !(requests_.empty() && session_->EndsWithRequests())) return std::nullopt;
    ended_ = true;
    if (!next) return std::nullopt;
    return PrintStreamError(next->status());
  }
  bool Ended() const override { return ended_; }
  void Park() override { session_->Park(); }

 private:
  std::deque<Request> requests_;
  std::unique_ptr<Session> session_;
  bool ended_ = false;
};

template <typename Request>
absl::StatusOr<std::deque<Request>> ParseAll(std::string_view body) {
  TY_ASSIGN_OR_RETURN(const std::vector<std::string_view> objects, SplitObjects(body));
  std::deque<Request> requests;
  for (const std::string_view object : objects) {
    TY_RETURN_IF_ERROR(ParseJson(object, requests.emplace_back()));
  }
  return requests;
}

template <typename Request, typename Response>
using NewSession = std::unique_ptr<ServedSession<Request, Response>> (*)(EtcdCalls&, const Wake&);

template <typename Request, typename Response>
GatewayRoute PostStream(NewSession<Request, Response> new_session) {
  return {.stream = [new_session](EtcdCalls& calls, const std::string& body,
                                  const Wake& wake) -> absl::StatusOr<std::unique_ptr<LineStream>> {
    auto requests = ParseAll<Request>(body);
    // To a client of a stream etcd's gateway tells it like this.
    if (!requests.ok()) return absl::UnknownError(absl::string_view(requests.status().message()));
    return std::make_unique<SessionLines<Request, Response>>(*std::move(requests), new_session(calls, wake));
  }};
}

std::map<std::string_view, GatewayRoute> MakeRoutes() {
  namespace pb = etcdserverpb;
  std::map<std::string_view, GatewayRoute> routes;
  routes["/health"] = {.method = "GET", .needs_token = false, .answer = Health};
  routes["/version"] = {.method = "GET", .needs_token = false, .answer = VersionAnswer};
  routes["/v3/kv/range"] = Post<pb::RangeRequest, pb::RangeResponse>();
  routes["/v3/kv/put"] = Post<pb::PutRequest, pb::PutResponse>();
  routes["/v3/kv/deleterange"] = Post<pb::DeleteRangeRequest, pb::DeleteRangeResponse>();
  routes["/v3/kv/txn"] = Post<pb::TxnRequest, pb::TxnResponse>();
  routes["/v3/kv/compaction"] = Post<pb::CompactionRequest, pb::CompactionResponse>();
  routes["/v3/lease/grant"] = Post<pb::LeaseGrantRequest, pb::LeaseGrantResponse>();
  routes["/v3/lease/revoke"] = Post<pb::LeaseRevokeRequest, pb::LeaseRevokeResponse>();
  routes["/v3/kv/lease/revoke"] = routes["/v3/lease/revoke"];
  routes["/v3/maintenance/status"] = Post<pb::StatusRequest, pb::StatusResponse>();
  routes["/v3/lease/keepalive"] = PostStream<pb::LeaseKeepAliveRequest, pb::LeaseKeepAliveResponse>(
      [](EtcdCalls& calls, const Wake& /*wake*/)
          -> std::unique_ptr<ServedSession<pb::LeaseKeepAliveRequest, pb::LeaseKeepAliveResponse>> {
        return std::make_unique<KeepAliveSession>(calls);
      });
  routes["/v3/watch"] = PostStream<pb::WatchRequest, pb::WatchResponse>(
      [](EtcdCalls& calls,
         const Wake& wake) -> std::unique_ptr<ServedSession<pb::WatchRequest, pb::WatchResponse>> {
        return std::make_unique<WatchSession>(calls, WatchSession::Progress::kAlways, wake);
      });
  return routes;
}

}  // namespace

GatewayAnswer GatewayAnswer::Error(const absl::Status& status) {
  return {.code = HttpCode(status.code()), .body = PrintError(status)};
}

GatewayAnswer GatewayAnswer::Text(int code, std::string body) {
  return {.code = code, .body = std::move(body), .content_type = "text/plain; charset=utf-8"};
}

const GatewayRoute* FindRoute(std::string_view path) {
  static const std::map<std::string_view, GatewayRoute> routes = MakeRoutes();
  const auto it = routes.find(path);
  return it == routes.end() ? nullptr : &it->second;
}

}  // namespace trainyard::kv
