// What the API server answers beside the plain verbs: subresources, logs, proxied requests, reviews, OpenAPI.
#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "apiserver/errors.h"
#include "apiserver/proxy_backend.h"
#include "apiserver/scale.h"
#include "apiserver/server.h"
#include "apiserver/stored_object.h"
#include "base/rfc3339.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::apiserver {
namespace {

// The container whose log is meant: the one that is named, or the only one, or the one that an annotation
// prefers.
absl::StatusOr<std::string> ContainerOf(const Document& pod, std::string_view asked) {
  std::vector<std::string_view> names;
  for (const std::string_view list : {"containers", "initContainers", "ephemeralContainers"}) {
    const Array* containers = ArrayAt(pod, {"spec", list});
    if (containers == nullptr) continue;
    for (const Document& container : *containers) names.push_back(StringAt(container, {"name"}));
  }
  if (asked.empty())
    asked = StringAt(pod, {"metadata", "annotations", "kubectl.kubernetes.io/default-container"});
  const Array* main = ArrayAt(pod, {"spec", "containers"});
  if (asked.empty() && main != nullptr && main->size() == 1) return std::string(names.front());
  std::string list;
  for (const std::string_view name : names) {
    if (name == asked) return std::string(name);
    StrAppend(list, list.empty() ? "" : " ", name);
  }
  const std::string_view pod_name = StringAt(pod, {"metadata", "name"});
  if (asked.empty()) {
    return kube::ToStatus(BadRequest(
        StrCat("a container name must be specified for pod ", pod_name, ", choose one of: [", list, "]")));
  }
  return kube::ToStatus(BadRequest(
      StrCat("container ", Escaped(asked), " is not valid for pod ", pod_name, "; it has: [", list, "]")));
}

// What the container waits for, if it does.
std::string WaitingReason(const Document& pod, std::string_view container) {
  for (const std::string_view list : {"containerStatuses", "initContainerStatuses"}) {
    const Array* statuses = ArrayAt(pod, {"status", list});
    if (statuses == nullptr) continue;
    for (const Document& status : *statuses) {
      if (StringAt(status, {"name"}) == container)
        return std::string(StringAt(status, {"state", "waiting", "reason"}));
    }
  }
  return std::string(StringAt(pod, {"status", "reason"}));
}

absl::StatusOr<PodLogRequest> ParseLogRequest(const Call& call, const Document& pod, absl::Time now) {
  const Query& query = call.query();
  PodLogRequest request{.ns = call.info.ns,
                        .pod = call.info.name,
                        .uid = std::string(StringAt(pod, {"metadata", "uid"})),
                        .previous = query.Flag("previous"),
                        .follow = query.Flag("follow"),
                        .timestamps = query.Flag("timestamps")};
  TY_ASSIGN_OR_RETURN(request.container, ContainerOf(pod, query.Get("container")));
  TY_ASSIGN_OR_RETURN(request.tail_lines, query.Number("tailLines"));
  TY_ASSIGN_OR_RETURN(request.limit_bytes, query.Number("limitBytes"));
  TY_ASSIGN_OR_RETURN(const auto since_seconds, query.Number("sinceSeconds"));
  if (since_seconds) request.since = now - absl::Seconds(*since_seconds);
  if (const std::string_view since = query.Get("sinceTime"); !since.empty()) {
    auto time = ParseTime(since);
    if (!time.ok()) return kube::ToStatus(BadRequest(StrCat("sinceTime: ", Message(time.status()))));
    request.since = *time;
  }
  return request;
}

// What an HTTP connection would have brought along, for a request of this process.
void CompleteInProcess(http::ServerRequest& in) {
  const auto or_json = [](std::string& type) { return type.empty() ? "application/json" : std::move(type); };
  in.headers.emplace_back("Accept", or_json(in.request.accept));
  in.headers.emplace_back("User-Agent", in.user_agent);
  in.body_length = in.request.body.size();
  if (in.request.body.empty()) return;
  in.headers.emplace_back("Content-Type", or_json(in.request.content_type));
  in.body = std::make_shared<http::RequestBody>([] {});
  in.body->Add(in.request.body);
  in.body->End();
}

// Who got in may do everything: the cluster belongs to one user.
Object ReviewStatus(std::string_view kind) {
  const Object everything{{"verbs", Array{"*"}}, {"apiGroups", Array{"*"}}, {"resources", Array{"*"}}};
  if (kind == "SelfSubjectRulesReview") {
    return {{"resourceRules", Array{everything}},
            {"nonResourceRules", Array{Object{{"verbs", Array{"*"}}, {"nonResourceURLs", Array{"*"}}}}},
            {"incomplete", false}};
  }
  if (kind == "TokenReview") return {{"authenticated", false}, {"error", "this server reviews no tokens"}};
  return {{"allowed", true}, {"reason", "the embedded cluster belongs to one user"}};
}

}  // namespace

void ApiServer::Subresource(const CallPtr& call) {
  const RequestInfo& info = call->info;
  const bool is_pod = !call->resource->custom && call->resource->plural == "pods";
  if (is_pod && info.subresource == "log" && info.verb == Verb::kGet) return Log(call);
  if (is_pod && info.subresource == "binding" && info.verb == Verb::kCreate) return writer_->Bind(call);
  if (is_pod && info.subresource == "eviction" && info.verb == Verb::kCreate) return writer_->Evict(call);
  if (info.subresource == "finalize" && call->resource->plural == "namespaces" &&
      info.verb == Verb::kUpdate) {
    return writer_->Update(call);
  }
  if (info.subresource == "scale" && call->version->scale) {
    if (info.verb == Verb::kUpdate || info.verb == Verb::kPatch) return writer_->ChangeScale(call);
    if (info.verb == Verb::kGet) {
      const auto found = reader_->Find(*call);
      if (!found.ok()) return call->Fail(found.status());
      const auto object =
          DecodeStored(call->ApiVersion(), call->resource->kind, found->value, found->mod_revision);
      if (!object.ok()) return call->Fail(object.status());
      return call->Send(200, PrintJson(ScaleOf(*call->version->scale, *object)));
    }
  }
  if (is_pod &&
      (info.subresource == "exec" || info.subresource == "attach" || info.subresource == "portforward")) {
    return call->Fail(
        kube::ApiError{.code = 501,
                       .reason = "NotImplemented",
                       .message = StrCat("pods/", info.subresource,
                                         " is not served by the embedded cluster: its containers are "
                                         "processes of this machine, use its own tools")});
  }
  call->Fail(NoSuchPath(call->target.path));
}

void ApiServer::Log(const CallPtr& call) {
  const auto found = reader_->Find(*call);
  if (!found.ok()) return call->Fail(found.status());
  const auto pod = DecodeStored(call->ApiVersion(), call->resource->kind, found->value, found->mod_revision);
  if (!pod.ok()) return call->Fail(pod.status());
  auto request = ParseLogRequest(*call, *pod, options_.clock->Now());
  if (!request.ok()) return call->Fail(request.status());
  if (options_.logs == nullptr) return call->Fail(BadRequest("this server runs no pods and has no logs"));
  if (StringAt(*pod, {"spec", "nodeName"}).empty()) {
    return call->Fail(BadRequest(StrCat(
        "pod ", call->info.name, " has not been assigned to a node yet; kubectl describe pod says why")));
  }
  request->waiting = WaitingReason(*pod, request->container);
  options_.logs->Read(*request, std::move(call->responder));
}

void ApiServer::Proxy(const CallPtr& call, ProxyTarget target) {
  http::ServerRequest& in = call->in;
  const std::string method = in.request.method;
  constexpr std::array<std::string_view, 7> kMethods = {"GET",    "HEAD",  "POST",   "PUT",
                                                        "DELETE", "PATCH", "OPTIONS"};
  if (std::ranges::find(kMethods, method) == kMethods.end())
    return call->Fail(MethodNotAllowed(method, StrCat(target.plural, "/proxy")));
  if (options_.proxy == nullptr || target.scheme == "https") {
    return call->Fail(kube::ApiError{
        .code = 501,
        .reason = "NotImplemented",
        .message = options_.proxy == nullptr ? "this server runs no pods and reaches none"
                                             : "backends that speak TLS are not proxied by the embedded "
                                               "cluster; use http, or ask the pod itself at its address"});
  }
  auto backend = FindBackend(*options_.store, *resources(), target, proxied_.fetch_add(1));
  if (!backend.ok()) return call->Fail(backend.status());
  if (target.path.empty() && (method == "GET" || method == "HEAD")) {
    // So that links of the page, which are relative to it, lead to where it is.
    kube::Response redirect{.code = 301, .content_type = ""};
    redirect.headers.emplace_back("Location", StrCat(target.prefix, "/", target.query));
    return call->responder->Send(std::move(redirect));
  }
  if (in.body == nullptr) CompleteInProcess(in);
  options_.proxy->Carry({.method = method,
                         .target = std::move(target),
                         .backend = *std::move(backend),
                         .headers = std::move(in.headers),
                         .body_length = in.body_length},
                        std::move(in.body), std::move(call->responder));
}

void ApiServer::Review(const CallPtr& call) {
  auto body = DecodeBody(call->in.request);
  if (!body.ok()) return call->Fail(body.status());
  if (!body->is_object()) return call->Fail(BadRequest("the body must be a JSON object"));
  body->get_object()["apiVersion"] = call->ApiVersion();
  body->get_object()["kind"] = call->resource->kind;
  body->get_object()["status"] = ReviewStatus(call->resource->kind);
  call->Send(201, PrintJson(*body));
}

void ApiServer::DeleteAll(const CallPtr& call) {
  const auto work = [this, call] {
    const auto keys = reader_->Keys(*call);
    if (!keys.ok()) return call->Fail(keys.status());
    writer_->DeleteListed(call, *keys);
  };
  if (slow_ == nullptr) return work();
  slow_->Post(work);
}

// Large documents, made rarely: where they hold up nobody.
void ApiServer::SendOpenApi(const CallPtr& call, const std::shared_ptr<const ResourceTable>& table) {
  const auto work = [this, call, table] {
    auto document = openapi_.Get(table, call->target.path, call->in.request.accept);
    if (!document) return call->Fail(NoSuchPath(call->target.path));
    call->responder->Send(*std::move(document));
  };
  if (slow_ == nullptr) return work();
  slow_->Post(work);
}

}  // namespace trainyard::apiserver
